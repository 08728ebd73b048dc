"""A process with one session of kazoo that uses kazoo's recipes as lines on its standard input
request.

Usage: kazoo_peer.py host:port session-timeout-in-seconds

A line is `number TAB handle TAB verb TAB argument ...`, its answer `number TAB ok|error TAB
text`. `open` gives a handle a recipe; a thread of the handle executes its lines in order, so
that one may wait while others continue. No text contains a tab or a line break.
"""

import datetime
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.recipe.lock import Lock, ReadLock, WriteLock

# Above any delay of a busy machine; only a failure takes this long.
PATIENCE = 20

zk = KazooClient(hosts=sys.argv[1], timeout=float(sys.argv[2]))


class NamedLock(Lock):
    """A Lock whose contenders have other names, as those of Curator do."""

    def __init__(self, client, path, name):
        self._NODE_NAME = name
        self._EXCLUDE_NAMES = [name]
        super().__init__(client, path)


class LockVerbs:
    def __init__(self, lock):
        self.lock = lock

    def acquire(self):
        self.lock.acquire(timeout=PATIENCE)
        return getattr(self.lock, "node", "")

    def try_acquire(self):
        return "yes" if self.lock.acquire(blocking=False) else "no"

    def release(self):
        return "yes" if self.lock.release() else "no"

    def contenders(self):
        return ",".join(self.lock.contenders())

    def count_up(self, path, rounds):
        """Reads and writes a counter without its version while holding the lock; no other process
        may be inside.
        """
        for _ in range(int(rounds)):
            self.lock.acquire(timeout=PATIENCE)
            try:
                zk.create(path + "/inside", ephemeral=True)
            except NodeExistsError as error:
                raise AssertionError("another client is inside") from error
            value, _ = zk.get(path)
            zk.set(path, str(int(value) + 1).encode())
            zk.delete(path + "/inside")
            self.lock.release()
        return rounds


class ElectionVerbs:
    def __init__(self, path, identifier):
        self.election = zk.Election(path, identifier)
        self.resigned = threading.Event()
        self.thread = None

    def lead(self):
        leading = threading.Event()

        def work():
            leading.set()
            self.resigned.wait()

        self.thread = threading.Thread(target=self.election.run, args=(work,), daemon=True)
        self.thread.start()
        assert leading.wait(PATIENCE), "it does not lead"
        return ""

    def resign(self):
        self.resigned.set()
        self.thread.join(PATIENCE)
        return ""

    def contenders(self):
        return ",".join(self.election.contenders())


class QueueVerbs:
    def __init__(self, path):
        self.queue = zk.Queue(path)

    def put(self, value, priority="100"):
        self.queue.put(value.encode(), int(priority))
        return ""

    def take(self):
        value = self.queue.get()
        return "nothing" if value is None else value.decode()

    poll = take


class LockingQueueVerbs:
    def __init__(self, path):
        self.queue = zk.LockingQueue(path)

    def put(self, value, priority="100"):
        self.queue.put(value.encode(), int(priority))
        return ""

    def take(self):
        value = self.queue.get(PATIENCE)
        return "nothing" if value is None else value.decode()

    def consume(self):
        return "yes" if self.queue.consume() else "no"

    def release(self):
        return "yes" if self.queue.release() else "no"


class BarrierVerbs:
    def __init__(self, path):
        self.barrier = zk.Barrier(path)

    def raise_(self):
        self.barrier.create()
        return ""

    def wait(self):
        assert self.barrier.wait(PATIENCE), "the barrier stands"
        return ""

    def remove(self):
        return "yes" if self.barrier.remove() else "no"


class DoubleBarrierVerbs:
    def __init__(self, path, size, identifier):
        self.barrier = zk.DoubleBarrier(path, int(size), identifier)

    def enter(self):
        self.barrier.enter()
        assert self.barrier.participating, "it is not inside"
        return ""

    def leave(self):
        self.barrier.leave()
        return ""


class PartyVerbs:
    def __init__(self, party):
        self.party = party

    def join(self):
        self.party.join()
        return ""

    def leave(self):
        self.party.leave()
        return ""

    def members(self):
        return ",".join(sorted(self.party))


class LeaseVerbs:
    def __init__(self, ask):
        self.ask = ask

    def try_acquire(self, duration_ms):
        return "yes" if self.ask(datetime.timedelta(milliseconds=int(duration_ms))) else "no"


class PartitionerVerbs:
    """Works on its share; while it owns an item it has an ephemeral znode below `inside`, which no
    other process may have.
    """

    def __init__(self, path, identifier, items, time_boundary_ms):
        self.partitioner = zk.SetPartitioner(
            path, items.split(","), identifier=identifier, time_boundary=int(time_boundary_ms) / 1000
        )
        self.inside = path + "/inside"
        self.mine = []
        self.trouble = ""
        self.asked = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        """kazoo leaves this to the program: to release the share when that is requested."""
        while not self.asked.wait(0.01) and not self.partitioner.failed:
            if self.partitioner.release:
                self.let_go()
                self.partitioner.release_set()
            elif self.partitioner.acquired and not self.mine:
                for item in list(self.partitioner):
                    try:
                        zk.create(self.inside + "/" + item, ephemeral=True)
                        self.mine.append(item)
                    except NodeExistsError:
                        self.trouble = "another process works on " + item
        self.let_go()

    def let_go(self):
        while self.mine:
            zk.delete(self.inside + "/" + self.mine[-1])
            self.mine.pop()

    def owned(self):
        assert not self.trouble, self.trouble
        assert not self.partitioner.failed, "it is no longer a member"
        return ",".join(sorted(self.mine))

    def close(self):
        self.asked.set()
        self.thread.join(PATIENCE)
        self.partitioner.finish()
        return ""


class CounterVerbs:
    def __init__(self, path, curator="no"):
        self.counter = zk.Counter(path, support_curator=curator == "curator")

    def add(self, value):
        self.counter += int(value)
        return str(self.counter.post_value)

    def value(self):
        return str(self.counter.value)


KINDS = {
    "lock": lambda path: LockVerbs(zk.Lock(path)),
    "named-lock": lambda path, name: LockVerbs(NamedLock(zk, path, name)),
    "read-lock": lambda path: LockVerbs(ReadLock(zk, path)),
    "write-lock": lambda path: LockVerbs(WriteLock(zk, path)),
    "semaphore": lambda path, size: LockVerbs(zk.Semaphore(path, max_leases=int(size))),
    "election": ElectionVerbs,
    "queue": QueueVerbs,
    "locking-queue": LockingQueueVerbs,
    "barrier": BarrierVerbs,
    "double-barrier": DoubleBarrierVerbs,
    "party": lambda path, identifier: PartyVerbs(zk.Party(path, identifier)),
    "shallowParty": lambda path, identifier: PartyVerbs(zk.ShallowParty(path, identifier)),
    "lease": lambda path, holder: LeaseVerbs(lambda duration: zk.NonBlockingLease(path, duration, holder)),
    "multi-lease": lambda path, holder, count: LeaseVerbs(lambda duration: zk.MultiNonBlockingLease(int(count), path, duration, holder)),
    "partitioner": PartitionerVerbs,
    "counter": CounterVerbs,
}

answering = threading.Lock()


def answer(number, kind, text):
    with answering:
        print(f"{number}\t{kind}\t{text}", flush=True)


class Handle(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.told = queue.Queue()
        self.recipe = None
        self.start()

    def run(self):
        while True:
            number, verb, arguments = self.told.get()
            try:
                if verb == "open":
                    kind, *arguments = arguments
                    self.recipe = KINDS[kind](*arguments)
                    answer(number, "ok", "")
                else:
                    answer(number, "ok", getattr(self.recipe, verb)(*arguments))
            except Exception as error:
                answer(number, "error", repr(error).replace("\n", " "))


def main():
    zk.start(timeout=PATIENCE)
    print(f"0\tok\t{zk.client_id[0]:x}", flush=True)
    handles = {}
    for line in sys.stdin:
        number, handle, verb, *arguments = line.rstrip("\n").split("\t")
        if handle not in handles:
            handles[handle] = Handle()
        handles[handle].told.put((number, verb, arguments))
    zk.stop()


main()
