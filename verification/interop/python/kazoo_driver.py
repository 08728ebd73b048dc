"""Drives every operation of kazoo against one server and prints one JSON line per check.

Usage: kazoo_driver.py '{"connect": "127.0.0.1:2181", "superAuth": "super:secret", ...}' The
facts about the server are arguments, so that the same checks work with Apache ZooKeeper and any
compatible server.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

from kazoo import exceptions as errors
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.states import EventType
from kazoo.security import ACL, Id, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_acl, make_digest_acl

FACTS = json.loads(sys.argv[1])
CONNECT = FACTS["connect"]
# Above any delay of a busy machine; only a failure takes this long.
PATIENCE = 20


def report(line):
    print(json.dumps(line), flush=True)


def client(**options):
    """A connected client; a long session by default, so that a slow machine does not end it."""
    made = KazooClient(hosts=options.pop("hosts", CONNECT), timeout=options.pop("timeout", 10), **options)
    made.start(timeout=PATIENCE)
    return made


def raises(kind, call, *args, **kwargs):
    try:
        result = call(*args, **kwargs)
    except kind:
        return
    except Exception as error:  # a wrong error is as wrong as none
        raise AssertionError(f"expected {kind.__name__}, got {error!r}") from error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


def equal(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


class Events:
    """Records watch events and waits for the next one."""

    def __init__(self):
        self.condition = threading.Condition()
        self.list = []

    def __call__(self, event):
        with self.condition:
            self.list.append(event)
            self.condition.notify_all()

    def next(self):
        with self.condition:
            assert self.condition.wait_for(lambda: self.list, PATIENCE), "no event came"
            return self.list.pop(0)

    def expect(self, kind, path):
        event = self.next()
        equal((event.type, event.path), (kind, path))

    def none(self):
        with self.condition:
            assert not self.list, f"unexpected {self.list!r}"


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {PATIENCE} s")


CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@check
def creates_reads_and_deletes_a_znode(zk, base):
    equal(zk.create(base + "/a", b"one"), base + "/a")
    data, stat = zk.get(base + "/a")
    equal(data, b"one")
    equal((stat.version, stat.cversion, stat.aversion), (0, 0, 0))
    equal((stat.dataLength, stat.numChildren, stat.ephemeralOwner), (3, 0, 0))
    assert stat.czxid == stat.mzxid == stat.pzxid > 0
    assert abs(stat.ctime / 1000 - time.time()) < 60
    equal(stat.ctime, stat.mtime)
    zk.delete(base + "/a")
    equal(zk.exists(base + "/a"), None)


@check
def create_with_stat_answers_path_and_stat(zk, base):
    path, stat = zk.create(base + "/a", b"12345", include_data=True)
    equal(path, base + "/a")
    equal((stat.dataLength, stat.version), (5, 0))
    path, stat = zk.create(base + "/e", b"", ephemeral=True, include_data=True)
    equal(stat.ephemeralOwner, zk.client_id[0])


@check
def sequences_count_up_below_one_parent(zk, base):
    names = [zk.create(base + "/s-", b"", sequence=True) for _ in range(3)]
    equal(names, [f"{base}/s-{n:010d}" for n in range(3)])
    zk.delete(names[2])
    equal(zk.create(base + "/other-", b"", sequence=True, ephemeral=True), base + "/other-0000000003")


@check
def makepath_and_ensure_path_make_parents(zk, base):
    zk.create(base + "/x/y/z", b"", makepath=True)
    zk.ensure_path(base + "/x/y/w/v")
    equal(sorted(zk.get_children(base + "/x/y")), ["w", "z"])
    zk.delete(base + "/x", recursive=True)
    equal(zk.exists(base + "/x"), None)


@check
def refusals_have_their_own_exceptions(zk, base):
    raises(errors.NoNodeError, zk.get, base + "/no")
    raises(errors.NoNodeError, zk.get_children, base + "/no")
    raises(errors.NoNodeError, zk.get_acls, base + "/no")
    raises(errors.NoNodeError, zk.set, base + "/no", b"")
    raises(errors.NoNodeError, zk.delete, base + "/no")
    raises(errors.NoNodeError, zk.create, base + "/no/child", b"")
    zk.create(base + "/a", b"")
    raises(errors.NodeExistsError, zk.create, base + "/a", b"")
    raises(errors.BadVersionError, zk.set, base + "/a", b"", version=7)
    raises(errors.BadVersionError, zk.delete, base + "/a", version=7)
    raises(errors.BadVersionError, zk.set_acls, base + "/a", OPEN_ACL_UNSAFE, version=7)
    zk.create(base + "/a/b", b"")
    raises(errors.NotEmptyError, zk.delete, base + "/a")
    zk.create(base + "/e", b"", ephemeral=True)
    raises(errors.NoChildrenForEphemeralsError, zk.create, base + "/e/c", b"")
    raises(errors.InvalidACLError, zk.create, base + "/bad", b"", acl=[ACL(31, Id("nosuch", "x"))])
    raises(errors.BadArgumentsError, zk.create, base + "/bad\x01", b"")
    raises(errors.BadArgumentsError, zk.delete, "/zookeeper")
    raises(errors.NodeExistsError, zk.create, "/", b"")


@check
def set_moves_version_mzxid_and_mtime(zk, base):
    zk.create(base + "/a", b"")
    before = zk.exists(base + "/a")
    for version in range(3):
        stat = zk.set(base + "/a", b"x" * version, version=version)
        equal(stat.version, version + 1)
    assert stat.mzxid > before.mzxid and stat.czxid == before.czxid and stat.mtime >= before.mtime
    zk.set(base + "/a", b"unconditional", version=-1)
    equal(zk.get(base + "/a")[0], b"unconditional")


@check
def children_come_with_stat_and_count_in_cversion(zk, base):
    for name in ("a", "b", "c"):
        zk.create(f"{base}/{name}", b"")
    zk.delete(base + "/b")
    children, stat = zk.get_children(base, include_data=True)
    equal(sorted(children), ["a", "c"])
    equal((stat.numChildren, stat.cversion), (2, 4))


@check
def null_empty_and_binary_data_are_kept(zk, base):
    zk.create(base + "/empty", b"")
    equal(zk.get(base + "/empty")[0], b"")
    every = bytes(range(256))
    zk.create(base + "/every", every)
    equal(zk.get(base + "/every")[0], every)


@check
def unicode_paths_work(zk, base):
    path = base + "/ünïcödé-名前"
    equal(zk.create(path, b"x"), path)
    equal(zk.get_children(base), ["ünïcödé-名前"])


@check
def nearly_a_mebibyte_fits_and_more_cuts_the_connection(zk, base):
    path = base + "/big"
    zk.create(path, b"")
    room = 1048575 - 20 - len(path)
    zk.set(path, b"x" * room)
    equal(len(zk.get(path)[0]), room)
    other = client()
    try:
        raises((errors.ConnectionLoss, errors.SessionExpiredError), other.set, path, b"x" * (room + 1))
        equal(len(zk.get(path)[0]), room)
        until(lambda: other.connected, "reconnecting")
        equal(other.exists(path).version, 1)
    finally:
        other.stop()
        other.close()


@check
def acls_are_stored_versioned_and_enforced(zk, base):
    zk.create(base + "/a", b"", acl=[make_acl("world", "anyone", read=True, admin=True)])
    acl, stat = zk.get_acls(base + "/a")
    equal((acl[0].perms, stat.aversion), (17, 0))
    raises(errors.NoAuthError, zk.set, base + "/a", b"")
    raises(errors.NoAuthError, zk.create, base + "/a/b", b"")
    stat = zk.set_acls(base + "/a", OPEN_ACL_UNSAFE, version=0)
    equal(stat.aversion, 1)
    zk.set(base + "/a", b"")
    zk.create(base + "/r", b"", acl=READ_ACL_UNSAFE)
    raises(errors.NoAuthError, zk.set_acls, base + "/r", OPEN_ACL_UNSAFE)


@check
def digest_auth_admits_its_user_only(zk, base):
    acl = make_digest_acl("ann", "secret", all=True)
    zk.create(base + "/a", b"hidden", acl=[acl])
    raises(errors.NoAuthError, zk.get, base + "/a")
    if tuple(FACTS["version"]) >= (3, 9, 2):
        raises(errors.NoAuthError, zk.exists, base + "/a")
    raises(errors.NoAuthError, zk.get_acls, base + "/a")
    ann = client(auth_data=[("digest", "ann:secret")])
    try:
        equal(ann.get(base + "/a")[0], b"hidden")
        equal(ann.get_acls(base + "/a")[0][0].id, acl.id)
        own = ann.create(base + "/own", b"", acl=[ACL(31, Id("auth", ""))])
        equal(ann.get_acls(own)[0][0].id, acl.id)
    finally:
        ann.stop()
        ann.close()


@check
def super_user_passes_every_acl(zk, base):
    zk.create(base + "/a", b"hidden", acl=[make_digest_acl("nobody", "knows", all=True)])
    master = client()
    try:
        master.add_auth("digest", FACTS["superAuth"])
        equal(master.get(base + "/a")[0], b"hidden")
        master.delete(base + "/a")
    finally:
        master.stop()
        master.close()


@check
def an_unknown_auth_scheme_fails(zk, base):
    other = client()
    try:
        raises(errors.AuthFailedError, other.add_auth, "nosuch", "x:y")
    finally:
        other.stop()
        other.close()


@check
def a_transaction_applies_all_of_it(zk, base):
    zk.create(base + "/old", b"")
    transaction = zk.transaction()
    transaction.create(base + "/a", b"1")
    transaction.create(base + "/s-", b"", sequence=True)
    transaction.create(base + "/e", b"", ephemeral=True)
    transaction.set_data(base + "/a", b"2", version=0)
    transaction.check(base + "/a", version=1)
    transaction.delete(base + "/old")
    results = transaction.commit()
    equal(results[0], base + "/a")
    assert results[1].startswith(base + "/s-")
    equal((results[3].version, results[4], results[5]), (1, True, True))
    equal(zk.get(base + "/a")[0], b"2")
    equal(zk.exists(base + "/a").czxid, zk.exists(base + "/e").czxid)


@check
def a_failed_transaction_changes_nothing(zk, base):
    transaction = zk.transaction()
    transaction.create(base + "/a", b"")
    transaction.check(base + "/missing", version=0)
    transaction.create(base + "/b", b"")
    first, second, third = transaction.commit()
    assert isinstance(first, errors.RolledBackError), repr(first)
    assert isinstance(second, errors.NoNodeError), repr(second)
    assert isinstance(third, errors.RuntimeInconsistency), repr(third)
    equal(zk.get_children(base), [])


@check
def data_exists_and_child_watches_fire_once(zk, base):
    events = Events()
    equal(zk.exists(base + "/a", watch=events), None)
    zk.create(base + "/a", b"")
    events.expect(EventType.CREATED, base + "/a")
    zk.get(base + "/a", watch=events)
    zk.set(base + "/a", b"1")
    events.expect(EventType.CHANGED, base + "/a")
    zk.set(base + "/a", b"2")
    zk.get_children(base + "/a", watch=events)
    zk.create(base + "/a/b", b"")
    events.expect(EventType.CHILD, base + "/a")
    zk.get_children(base + "/a/b", watch=events)
    zk.delete(base + "/a/b")
    events.expect(EventType.DELETED, base + "/a/b")
    zk.exists(base + "/a", watch=events)
    zk.delete(base + "/a")
    events.expect(EventType.DELETED, base + "/a")
    zk.sync(base)
    events.none()


@check
def another_client_hears_of_changes(zk, base):
    events = Events()
    other = client()
    try:
        other.get_children(base, watch=events)
        zk.create(base + "/a", b"")
        events.expect(EventType.CHILD, base)
    finally:
        other.stop()
        other.close()


@check
def data_watchers_go_on_after_a_reconnect(zk, base):
    seen = []
    other = client()
    try:
        zk.create(base + "/a", b"old")
        other.DataWatch(base + "/a", lambda data, stat: seen.append(data))
        equal(seen, [b"old"])
        lost = threading.Event()
        other.add_listener(lambda state: lost.set() if state == KazooState.SUSPENDED else None)
        # Cuts the socket as a broken network would. kazoo then forgets plain watches; its watchers
        # set theirs again.
        other._connection._socket.shutdown(2)
        assert lost.wait(PATIENCE), "the client did not notice"
        zk.set(base + "/a", b"new")
        until(lambda: seen[-1:] == [b"new"], "the event of the change")
        zk.set(base + "/a", b"newer")
        until(lambda: seen[-1:] == [b"newer"], "the event of the next change")
    finally:
        other.stop()
        other.close()


@check
def sync_answers_its_path(zk, base):
    equal(zk.sync(base), base)


@check
def pipelined_requests_are_answered_in_order(zk, base):
    zk.create(base + "/n", b"")
    pending = [zk.set_async(base + "/n", str(n).encode()) for n in range(200)]
    reads = [zk.get_async(base + "/n") for _ in range(50)]
    equal([item.get(timeout=PATIENCE).version for item in pending], list(range(1, 201)))
    equal({item.get(timeout=PATIENCE)[0] for item in reads}, {b"199"})


@check
def a_chroot_hides_the_rest(zk, base):
    zk.create(base + "/app", b"")
    inside = client(hosts=f"{CONNECT}{base}/app")
    try:
        equal(inside.create("/a", b"x"), "/a")
        events = Events()
        inside.get("/a", watch=events)
        zk.set(base + "/app/a", b"y")
        events.expect(EventType.CHANGED, "/a")
        equal(inside.get_children("/"), ["a"])
    finally:
        inside.stop()
        inside.close()


@check
def ephemerals_go_with_their_session(zk, base):
    other = client()
    other.create(base + "/e", b"", ephemeral=True)
    equal(zk.exists(base + "/e").ephemeralOwner, other.client_id[0])
    events = Events()
    zk.exists(base + "/e", watch=events)
    other.stop()
    other.close()
    events.expect(EventType.DELETED, base + "/e")


@contextlib.contextmanager
def holder_of(path):
    """A process that holds a session of each timeout with an ephemeral znode: the brief one at
    path, the long one beside it.
    """
    holder = subprocess.Popen([sys.executable, __file__, sys.argv[1], "--hold", path], stdout=subprocess.PIPE, text=True)
    try:
        line = holder.stdout.readline()
        assert line, "the holder said nothing"
        yield holder, json.loads(line)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


@check
def a_session_moves_to_a_new_connection_by_id_and_password(zk, base):
    with holder_of(base + "/e") as (holder, identities):
        session, password = identities["long"]
        # It keeps its connection and does nothing, or it would resume the session.
        os.kill(holder.pid, signal.SIGSTOP)
        second = KazooClient(hosts=CONNECT, timeout=10, client_id=(session, bytes.fromhex(password)))
        try:
            second.start(timeout=PATIENCE)
            equal(second.client_id[0], session)
            equal(zk.exists(base + "/e-long").ephemeralOwner, session)
        finally:
            second.stop()
            second.close()


@check
def a_wrong_password_gives_a_new_session(zk, base):
    first = client()
    identity = first.client_id
    states = []
    second = KazooClient(hosts=CONNECT, timeout=10, client_id=(identity[0], b"\x07" * 16))
    second.add_listener(states.append)
    try:
        second.start(timeout=PATIENCE)
        until(lambda: second.connected and second.client_id[0] != identity[0], "getting a new session")
    finally:
        first.stop()
        second.stop()
        first.close()
        second.close()


@check
def a_dead_clients_session_expires(zk, base):
    with holder_of(base + "/e") as (holder, identities):
        events = Events()
        equal(zk.exists(base + "/e", watch=events).ephemeralOwner, identities["brief"][0])
        os.kill(holder.pid, signal.SIGKILL)
        events.expect(EventType.DELETED, base + "/e")
        # Each at its own time: the process of both has ended.
        equal(zk.exists(base + "/e-long").ephemeralOwner, identities["long"][0])


@check
def timeouts_are_negotiated_within_the_servers_bounds(zk, base):
    # kazoo does not expose the granted timeout, so ask the server.
    for wanted, granted in ((0.5, FACTS["minSessionTimeout"]), (3600, FACTS["maxSessionTimeout"])):
        other = client(timeout=wanted)

        def listed():
            return [line for line in zk.command(b"cons").splitlines() if f"sid=0x{other.client_id[0]:x}," in line]

        until(listed, "listing the connection")
        assert all(f",to={granted}," in line for line in listed()), listed()
        other.stop()
        other.close()


@check
def a_read_only_client_is_served_by_a_read_write_server(zk, base):
    other = client(read_only=True)
    try:
        equal(other.client_state, "CONNECTED")
        other.create(base + "/a", b"")
    finally:
        other.stop()
        other.close()


@check
def reconfig_is_refused(zk, base):
    raises((errors.ReconfigDisabledError, errors.UnimplementedError), zk.reconfig, "", "1", None)


@check
def the_config_znode_can_be_read(zk, base):
    data, stat = zk.get("/zookeeper/config")
    equal((data, stat.aversion), (b"", -1))


@check
def four_letter_words_answer(zk, base):
    equal(zk.command(b"ruok"), "imok")
    assert "Mode: standalone" in zk.command(b"srvr")
    assert "zk_server_state\tstandalone" in zk.command(b"mntr")
    equal(zk.server_version()[:2], tuple(FACTS["version"][:2]))


@check
def a_hard_quota_refuses(zk, base):
    if not FACTS["enforceQuota"]:
        raise Skipped("the server does not enforce quotas")
    zk.create(base + "/a", b"")
    quota = "/zookeeper/quota" + base + "/a"
    zk.ensure_path(quota)
    zk.create(quota + "/zookeeper_limits", b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2")
    zk.create(quota + "/zookeeper_stats", b"count=0,bytes=0")
    zk.create(base + "/a/b", b"12")
    raises(errors.QuotaExceededError, zk.create, base + "/a/c", b"")
    until(lambda: zk.get(quota + "/zookeeper_stats")[0].startswith(b"count=2,bytes=2"), "counting")
    zk.delete("/zookeeper/quota" + base, recursive=True)


@check
def recipes_work_on_it(zk, base):
    other = client()
    try:
        with zk.Lock(base + "/lock", "one"):
            equal(other.Lock(base + "/lock", "two").acquire(blocking=False), False)
        lock = other.Lock(base + "/lock", "two")
        equal(lock.acquire(timeout=PATIENCE), True)
        lock.release()
        counter = zk.Counter(base + "/counter")
        counter += 3
        equal(other.Counter(base + "/counter").value, 3)
        queue = zk.Queue(base + "/queue")
        queue.put(b"first")
        queue.put(b"second")
        equal(other.Queue(base + "/queue").get(), b"first")
        leading = threading.Event()
        election = other.Election(base + "/election", "two")
        runner = threading.Thread(target=lambda: election.run(leading.set))
        runner.start()
        assert leading.wait(PATIENCE), "no election finished"
        runner.join(PATIENCE)
    finally:
        other.stop()
        other.close()


@check
def data_and_children_watchers_follow_changes(zk, base):
    seen = []
    zk.create(base + "/a", b"0")

    @zk.DataWatch(base + "/a")
    def on_data(data, stat):
        seen.append(data)
        return len(seen) < 3

    zk.set(base + "/a", b"1")
    until(lambda: seen[-1:] == [b"1"], "the data watcher")
    zk.set(base + "/a", b"2")
    until(lambda: seen[-1:] == [b"2"], "the data watcher")


class Skipped(Exception):
    pass


def hold(path):
    """Keeps two sessions with an ephemeral znode each until it is killed."""
    identities = {}
    # The brief one is not the shortest: a machine may pause for that long.
    for name, timeout, ephemeral in (
        ("brief", 4 * FACTS["minSessionTimeout"], path),
        ("long", FACTS["maxSessionTimeout"], path + "-long"),
    ):
        holder = client(timeout=timeout / 1000)
        holder.create(ephemeral, b"", ephemeral=True)
        session, password = holder.client_id
        identities[name] = (session, password.hex())
    report(identities)
    signal.pause()


@check
def the_program_of_the_readme_runs_and_runs_again(zk, base):
    readme = (pathlib.Path(__file__).parents[3] / "README.md").read_text(encoding="utf8")
    program = re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE).group(1)
    assert "127.0.0.1:2181" in program
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("127.0.0.1:2181", CONNECT)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
        )
        assert done.returncode == 0, done.stdout
        for expected in ('{"colour": "green"}', "['w-0000000", "locked"):
            assert expected in done.stdout, done.stdout


def main():
    zk = client()
    root = "/kazoo-" + uuid.uuid4().hex[:8]
    zk.create(root, b"")
    for number, function in enumerate(CHECKS):
        name = function.__name__.replace("_", " ")
        base = f"{root}/{number}"
        try:
            zk.create(base, b"")
            function(zk, base)
            report({"check": name, "ok": True})
        except Skipped as reason:
            report({"check": name, "skipped": str(reason)})
        except Exception as error:
            report({"check": name, "ok": False, "detail": f"{type(error).__name__}: {error}"})
    zk.stop()
    zk.close()


if __name__ == "__main__":
    if "--hold" in sys.argv:
        hold(sys.argv[3])
    else:
        main()
