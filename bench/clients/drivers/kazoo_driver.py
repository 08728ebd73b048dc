"""Drives kazoo: reads commands from standard input, one JSON object per line, and answers each with
a line. See node-driver.js, which does the same.
"""
import collections
import json
import os
import resource
import sys
import threading
import time

from kazoo.client import KazooClient

# Only every eighth request of a lane is timed, so that timing costs little.
TIMED_EVERY = 8


def cpu_seconds():
    """User and system time of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def percentile(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * share))]


def opened():
    client = KazooClient(hosts=sys.argv[1], timeout=30.0)
    client.start()
    return client


def closed(client):
    client.stop()
    client.close()


def say(answer):
    print(json.dumps(answer), flush=True)


def operation(client, command, index):
    """The operation of a lane: a function that returns the result to wait for, and one that checks
    it.
    """
    root, znodes, size = command["root"], command["znodes"], command["bytes"]
    data = b"x" * size
    at = index * 61

    def path():
        nonlocal at
        at += 1
        return "%s/%d" % (root, at % znodes)

    def check(answer):
        if len(answer[0]) != size:
            raise ValueError("expected %d bytes, got %d" % (size, len(answer[0])))

    if command["op"] == "getData":
        return [lambda: client.get_async(path())], check
    if command["op"] == "setData":
        return [lambda: client.set_async(path(), data)], lambda answer: None
    own = "%s/e-%d-%d" % (root, os.getpid(), index)
    return [lambda: client.create_async(own, b"", ephemeral=True), lambda: client.delete_async(own)], lambda answer: None


def load(client, command):
    """Keeps `inFlight` requests in flight from one thread: waits for the oldest, then sends the
    next one of its lane.
    """
    lanes = [operation(client, command, index) for index in range(command["inFlight"])]
    operations, times, turn = 0, [], 0
    cpu, start = cpu_seconds(), time.perf_counter()
    end = start + command["seconds"]
    waiting = collections.deque()
    for lane in lanes:
        waiting.append((lane, 0, lane[0][0](), start))
    while waiting:
        (steps, check), step, result, begun = waiting.popleft()
        check(result.get())
        step += 1
        if step == len(steps):
            step = 0
            operations += 1
            now = None
            if begun is not None:
                now = time.perf_counter()
                times.append(now - begun)
            turn += 1
            begun = None
            if turn % TIMED_EVERY == 0:
                begun = now = time.perf_counter()
            if (now or time.perf_counter()) >= end:
                continue
        waiting.append(((steps, check), step, steps[step](), begun))
    seconds = time.perf_counter() - start
    return {
        "operations": operations,
        "seconds": seconds,
        "cpuSeconds": cpu_seconds() - cpu,
        "p50Us": percentile(times, 0.5) * 1e6,
        "p99Us": percentile(times, 0.99) * 1e6,
    }


def watch(client, command):
    count = command["count"]
    left = count
    fired = threading.Event()

    def on_event(event):
        nonlocal left
        left -= 1
        if left == 0:
            fired.set()

    results = [client.get_async("%s/%d" % (command["root"], index), watch=on_event) for index in range(count)]
    for result in results:
        result.get()
    cpu = cpu_seconds()
    say({"armed": count})
    fired.wait()
    return {"events": count, "cpuSeconds": cpu_seconds() - cpu}


def connect(client, command):
    times, cpu = [], cpu_seconds()
    for _ in range(command["times"]):
        start = time.perf_counter()
        closed(opened())
        times.append(time.perf_counter() - start)
    return {"connects": command["times"], "cpuSeconds": cpu_seconds() - cpu, "p50Us": percentile(times, 0.5) * 1e6}


def main():
    client = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "open":
                client = opened()
                say({})
            elif command["do"] == "quit":
                closed(client)
                say({})
                return
            else:
                say({"load": load, "watch": watch, "connect": connect}[command["do"]](client, command))
        except Exception as error:  # report every error to the bench
            say({"error": repr(error)})


main()
