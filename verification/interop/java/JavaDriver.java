import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Transaction;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Drives the API of the Java client against one server and prints one JSON line per check.
 *
 * <p>Usage: JavaDriver host:port super:password version minSessionTimeoutMs maxSessionTimeoutMs
 * tickTimeMs extendedTypes enforceQuota
 */
public class JavaDriver {
    /** Seconds. Above any delay of a busy machine; only a failure takes this long. */
    static final int PATIENCE = 20;
    /**
     * Timeout of a session that should expire, in shortest timeouts: a machine may pause for one of
     * them.
     */
    static final int BRIEF = 4;

    static String server;
    static String superAuth;
    static boolean is38;
    static int minTimeout;
    static int maxTimeout;
    static boolean extendedTypes;
    static boolean enforceQuota;

    static ZooKeeper zk;
    /** The check's own znode. */
    static String base;

    interface Check {
        void run() throws Exception;
    }

    static final Map<String, Check> CHECKS = new java.util.LinkedHashMap<>();

    /** Records a watcher's events, session events separate from watch events. */
    static class Events implements Watcher {
        final BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        final List<KeeperState> states = Collections.synchronizedList(new ArrayList<>());
        final Object changed = new Object();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() == EventType.None) {
                synchronized (changed) {
                    states.add(event.getState());
                    changed.notifyAll();
                }
            } else {
                events.add(event);
            }
        }

        void expect(EventType type, String path) throws Exception {
            WatchedEvent event = events.poll(PATIENCE, TimeUnit.SECONDS);
            require(event != null, "no event came, expected " + type + " " + path);
            require(event.getType() == type && path.equals(event.getPath()), "event " + event + ", expected " + type + " " + path);
        }

        void expectNone() {
            require(events.isEmpty(), "unexpected " + events);
        }

        /** Waits until the state was reported once more than {@code seen} times. */
        void await(KeeperState state, int seen) throws Exception {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
            synchronized (changed) {
                while (Collections.frequency(states, state) <= seen) {
                    long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
                    require(left > 0, "state " + state + " did not come, but " + states);
                    changed.wait(left);
                }
            }
        }

        int times(KeeperState state) {
            synchronized (changed) {
                return Collections.frequency(states, state);
            }
        }
    }

    /**
     * A TCP proxy before the server that can cut its connections and go silent, as a network does.
     */
    static class Proxy implements AutoCloseable {
        final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        final Set<Socket> sockets = Collections.synchronizedSet(new HashSet<>());
        volatile boolean refusing;

        Proxy() throws IOException {
            start(this::accept);
        }

        String address() {
            return "127.0.0.1:" + listener.getLocalPort();
        }

        void accept() {
            try {
                for (;;) {
                    Socket client = listener.accept();
                    if (refusing) {
                        client.close();
                        continue;
                    }
                    int colon = server.lastIndexOf(':');
                    Socket target = new Socket(server.substring(0, colon), Integer.parseInt(server.substring(colon + 1)));
                    sockets.add(client);
                    sockets.add(target);
                    start(() -> pump(client, target));
                    start(() -> pump(target, client));
                }
            } catch (IOException closed) {
                // The proxy has been closed.
            }
        }

        void pump(Socket from, Socket to) {
            byte[] buffer = new byte[65536];
            try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
                for (int count = in.read(buffer); count > 0; count = in.read(buffer)) {
                    out.write(buffer, 0, count);
                }
            } catch (IOException gone) {
                // One side has closed; closing the streams closes the other.
            }
        }

        void cut() throws IOException {
            synchronized (sockets) {
                for (Socket socket : sockets) {
                    socket.close();
                }
                sockets.clear();
            }
        }

        static void start(Runnable task) {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            thread.start();
        }

        @Override
        public void close() throws IOException {
            listener.close();
            cut();
        }
    }

    static void require(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object actual, Object expected) {
        require(expected == null ? actual == null : expected.equals(actual), "got " + actual + ", expected " + expected);
    }

    static void fails(Code code, Check call) throws Exception {
        try {
            call.run();
        } catch (KeeperException e) {
            require(e.code() == code, "got " + e.code() + ", expected " + code);
            return;
        }
        throw new AssertionError("nothing failed, expected " + code);
    }

    static void until(String what, BooleanSupplier condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (!condition.getAsBoolean()) {
            require(System.nanoTime() < deadline, what + " did not happen");
            Thread.sleep(20);
        }
    }

    static ZooKeeper connect(String where, int timeout, Events events) throws Exception {
        ZooKeeper made = new ZooKeeper(where, timeout, events);
        events.await(KeeperState.SyncConnected, 0);
        return made;
    }

    static String make(String name, String data, CreateMode mode) throws Exception {
        return zk.create(base + name, data == null ? null : data.getBytes(UTF_8), Ids.OPEN_ACL_UNSAFE, mode);
    }

    static String text(byte[] data) {
        return data == null ? null : new String(data, UTF_8);
    }

    static void checks() {
        CHECKS.put("creates of every mode", () -> {
            equal(make("/p", "1", CreateMode.PERSISTENT), base + "/p");
            equal(make("/e", "", CreateMode.EPHEMERAL), base + "/e");
            equal(make("/s-", "", CreateMode.PERSISTENT_SEQUENTIAL), base + "/s-0000000002");
            equal(make("/es-", "", CreateMode.EPHEMERAL_SEQUENTIAL), base + "/es-0000000003");
            equal(make("/c", "", CreateMode.CONTAINER), base + "/c");
            equal(zk.exists(base + "/e", false).getEphemeralOwner(), zk.getSessionId());
            equal(zk.exists(base + "/c", false).getEphemeralOwner(), 0L);
            Stat stat = new Stat();
            equal(zk.create(base + "/with-stat", new byte[3], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, stat), base + "/with-stat");
            equal(stat.getDataLength(), 3);
            equal(stat.getCzxid(), zk.exists(base, false).getPzxid());
        });
        CHECKS.put("TTL znodes, where they are allowed", () -> {
            if (!extendedTypes) {
                fails(Code.UNIMPLEMENTED, () -> zk.create(base + "/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, null, 100));
                return;
            }
            Stat stat = new Stat();
            zk.create(base + "/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, stat, 300);
            equal(stat.getEphemeralOwner(), 0L);
            equal(zk.create(base + "/t-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, null, 3600_000), base + "/t-0000000001");
            Events events = new Events();
            // It may have been deleted already.
            if (zk.exists(base + "/t", events) != null) {
                events.expect(EventType.NodeDeleted, base + "/t");
            }
            require(zk.exists(base + "/t-0000000001", false) != null, "the long-lived one went too");
        });
        CHECKS.put("a container goes after its last child", () -> {
            make("/c", null, CreateMode.CONTAINER);
            make("/c/child", null, CreateMode.PERSISTENT);
            Events events = new Events();
            zk.exists(base + "/c", events);
            zk.delete(base + "/c/child", -1);
            events.expect(EventType.NodeDeleted, base + "/c");
        });
        CHECKS.put("null and empty data are distinguished", () -> {
            make("/null", null, CreateMode.PERSISTENT);
            make("/empty", "", CreateMode.PERSISTENT);
            equal(zk.getData(base + "/null", false, null), null);
            equal(zk.getData(base + "/empty", false, null).length, 0);
        });
        CHECKS.put("refusals have their codes", () -> {
            fails(Code.NONODE, () -> zk.getData(base + "/no", false, null));
            fails(Code.NONODE, () -> zk.getChildren(base + "/no", false));
            fails(Code.NONODE, () -> zk.getACL(base + "/no", null));
            fails(Code.NONODE, () -> zk.setData(base + "/no", null, -1));
            fails(Code.NONODE, () -> zk.delete(base + "/no", -1));
            fails(Code.NONODE, () -> make("/no/child", null, CreateMode.PERSISTENT));
            fails(Code.NONODE, () -> zk.getAllChildrenNumber(base + "/no"));
            make("/a", null, CreateMode.PERSISTENT);
            fails(Code.NODEEXISTS, () -> make("/a", null, CreateMode.PERSISTENT));
            fails(Code.BADVERSION, () -> zk.setData(base + "/a", null, 5));
            fails(Code.BADVERSION, () -> zk.delete(base + "/a", 5));
            fails(Code.BADVERSION, () -> zk.setACL(base + "/a", Ids.OPEN_ACL_UNSAFE, 5));
            make("/a/b", null, CreateMode.PERSISTENT);
            fails(Code.NOTEMPTY, () -> zk.delete(base + "/a", -1));
            make("/e", null, CreateMode.EPHEMERAL);
            fails(Code.NOCHILDRENFOREPHEMERALS, () -> make("/e/c", null, CreateMode.PERSISTENT));
            fails(Code.INVALIDACL, () -> zk.create(base + "/x", null, Arrays.asList(new ACL(31, new Id("nosuch", "x"))), CreateMode.PERSISTENT));
            fails(Code.INVALIDACL, () -> zk.create(base + "/x", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
            fails(Code.BADARGUMENTS, () -> zk.delete("/zookeeper", -1));
        });
        CHECKS.put("stats count what happened", () -> {
            make("/a", "1", CreateMode.PERSISTENT);
            make("/a/b", null, CreateMode.PERSISTENT);
            make("/a/c", null, CreateMode.PERSISTENT);
            zk.delete(base + "/a/b", -1);
            zk.setData(base + "/a", "22".getBytes(UTF_8), 0);
            zk.setACL(base + "/a", Ids.OPEN_ACL_UNSAFE, 0);
            Stat stat = new Stat();
            equal(text(zk.getData(base + "/a", false, stat)), "22");
            equal(Arrays.asList(stat.getVersion(), stat.getCversion(), stat.getAversion(), stat.getNumChildren(), stat.getDataLength()), Arrays.asList(1, 3, 1, 1, 2));
            require(stat.getMzxid() > stat.getPzxid() && stat.getPzxid() > stat.getCzxid() && stat.getMtime() >= stat.getCtime(), stat.toString());
            equal(zk.getAllChildrenNumber(base + "/a"), 1);
        });
        CHECKS.put("ACLs, digest users and the super user", () -> {
            Events events = new Events();
            ZooKeeper ann = connect(server, 10_000, events);
            ann.addAuthInfo("digest", "ann:secret".getBytes(UTF_8));
            ann.create(base + "/a", "hidden".getBytes(UTF_8), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            equal(ann.getACL(base + "/a", null).get(0).getId().getScheme(), "digest");
            fails(Code.NOAUTH, () -> zk.getData(base + "/a", false, null));
            fails(Code.NOAUTH, () -> zk.setACL(base + "/a", Ids.OPEN_ACL_UNSAFE, -1));
            fails(Code.NOAUTH, () -> zk.getACL(base + "/a", null));
            // A user who may read but not administer sees no password hashes.
            List<ACL> readable = new ArrayList<>(ann.getACL(base + "/a", null));
            readable.add(new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE));
            ann.setACL(base + "/a", readable, -1);
            equal(zk.getACL(base + "/a", null).get(0).getId().getId(), "ann:x");
            ZooKeeper master = connect(server, 10_000, new Events());
            master.addAuthInfo("digest", superAuth.getBytes(UTF_8));
            master.setACL(base + "/a", Ids.READ_ACL_UNSAFE, -1);
            master.delete(base + "/a", -1);
            Set<String> schemes = new HashSet<>();
            for (ClientInfo info : ann.whoAmI()) {
                schemes.add(info.getAuthScheme() + ":" + info.getUser());
            }
            equal(schemes, new HashSet<>(Arrays.asList("ip:127.0.0.1", "digest:ann")));
            ann.close();
            master.close();
        });
        CHECKS.put("an unknown auth scheme fails the session", () -> {
            Events events = new Events();
            ZooKeeper other = connect(server, 10_000, events);
            other.addAuthInfo("nosuch", new byte[1]);
            events.await(KeeperState.AuthFailed, 0);
            fails(Code.AUTHFAILED, () -> other.exists("/", false));
            other.close();
        });
        CHECKS.put("a multi of every kind of operation", () -> {
            make("/old", null, CreateMode.PERSISTENT);
            List<Op> ops = new ArrayList<>(Arrays.asList(
                Op.create(base + "/a", "1".getBytes(UTF_8), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.create(base + "/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL.toFlag()),
                Op.setData(base + "/a", "2".getBytes(UTF_8), 0),
                Op.check(base + "/a", 1),
                Op.create(base + "/c", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER.toFlag()),
                Op.delete(base + "/old", 0)));
            if (extendedTypes) {
                ops.add(Op.create(base + "/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, 3600_000));
            }
            List<OpResult> results = zk.multi(ops);
            equal(((OpResult.CreateResult) results.get(0)).getPath(), base + "/a");
            equal(((OpResult.CreateResult) results.get(1)).getPath(), base + "/s-0000000002");
            equal(((OpResult.SetDataResult) results.get(2)).getStat().getVersion(), 1);
            require(results.get(3) instanceof OpResult.CheckResult && results.get(5) instanceof OpResult.DeleteResult, results.toString());
            // All parts are one txn.
            equal(zk.exists(base + "/a", false).getCzxid(), zk.exists(base + "/c", false).getCzxid());
            equal(zk.exists(base + "/old", false), null);
            Transaction transaction = zk.transaction().delete(base + "/a", -1).create(base + "/b", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            equal(transaction.commit().size(), 2);
        });
        CHECKS.put("a failed multi changes nothing and says which", () -> {
            try {
                zk.multi(Arrays.asList(
                    Op.create(base + "/a", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                    Op.delete(base + "/missing", -1),
                    Op.setData(base, null, -1)));
                throw new AssertionError("it succeeded");
            } catch (KeeperException e) {
                equal(e.code(), Code.NONODE);
                List<Integer> codes = new ArrayList<>();
                for (OpResult result : e.getResults()) {
                    codes.add(((OpResult.ErrorResult) result).getErr());
                }
                equal(codes, Arrays.asList(0, Code.NONODE.intValue(), Code.RUNTIMEINCONSISTENCY.intValue()));
            }
            equal(zk.exists(base + "/a", false), null);
        });
        CHECKS.put("a multi of reads answers each", () -> {
            make("/a", "1", CreateMode.PERSISTENT);
            List<OpResult> results = zk.multi(Arrays.asList(Op.getData(base + "/a"), Op.getChildren(base), Op.getData(base + "/no")));
            equal(text(((OpResult.GetDataResult) results.get(0)).getData()), "1");
            equal(((OpResult.GetChildrenResult) results.get(1)).getChildren(), Arrays.asList("a"));
            equal(((OpResult.ErrorResult) results.get(2)).getErr(), Code.NONODE.intValue());
        });
        CHECKS.put("one-shot watches of every kind", () -> {
            Events events = new Events();
            zk.exists(base + "/a", events);
            make("/a", null, CreateMode.PERSISTENT);
            events.expect(EventType.NodeCreated, base + "/a");
            zk.getData(base + "/a", events, null);
            zk.setData(base + "/a", null, -1);
            events.expect(EventType.NodeDataChanged, base + "/a");
            zk.getChildren(base + "/a", events);
            make("/a/b", null, CreateMode.PERSISTENT);
            events.expect(EventType.NodeChildrenChanged, base + "/a");
            zk.getChildren(base + "/a/b", events, new Stat());
            zk.delete(base + "/a/b", -1);
            events.expect(EventType.NodeDeleted, base + "/a/b");
            zk.exists(base + "/a", events);
            zk.delete(base + "/a", -1);
            events.expect(EventType.NodeDeleted, base + "/a");
            zk.exists(base, false);
            events.expectNone();
        });
        CHECKS.put("persistent watches stay", () -> {
            Events events = new Events();
            make("/a", null, CreateMode.PERSISTENT);
            zk.addWatch(base + "/a", events, AddWatchMode.PERSISTENT);
            for (int i = 0; i < 2; i++) {
                zk.setData(base + "/a", null, -1);
                events.expect(EventType.NodeDataChanged, base + "/a");
                make("/a/b", null, CreateMode.PERSISTENT);
                events.expect(EventType.NodeChildrenChanged, base + "/a");
                zk.delete(base + "/a/b", -1);
                events.expect(EventType.NodeChildrenChanged, base + "/a");
            }
            zk.delete(base + "/a", -1);
            events.expect(EventType.NodeDeleted, base + "/a");
            make("/a", null, CreateMode.PERSISTENT);
            events.expect(EventType.NodeCreated, base + "/a");
        });
        CHECKS.put("persistent recursive watches see all below", () -> {
            Events events = new Events();
            zk.addWatch(base, events, AddWatchMode.PERSISTENT_RECURSIVE);
            make("/a", null, CreateMode.PERSISTENT);
            events.expect(EventType.NodeCreated, base + "/a");
            make("/a/b", null, CreateMode.PERSISTENT);
            events.expect(EventType.NodeCreated, base + "/a/b");
            zk.setData(base + "/a/b", null, -1);
            events.expect(EventType.NodeDataChanged, base + "/a/b");
            zk.delete(base + "/a/b", -1);
            events.expect(EventType.NodeDeleted, base + "/a/b");
            zk.multi(Arrays.asList(Op.setData(base + "/a", null, -1), Op.delete(base + "/a", -1)));
            events.expect(EventType.NodeDataChanged, base + "/a");
            events.expect(EventType.NodeDeleted, base + "/a");
            events.expectNone();
        });
        CHECKS.put("watch events carry the zxid of their txn", () -> {
            Events events = new Events();
            make("/a", null, CreateMode.PERSISTENT);
            zk.exists(base + "/a", events);
            Stat stat = zk.setData(base + "/a", null, -1);
            WatchedEvent event = events.events.poll(PATIENCE, TimeUnit.SECONDS);
            equal(event.getZxid(), is38 ? -1L : stat.getMzxid());
        });
        CHECKS.put("watches are removed one by one, by type and all at once", () -> {
            Events one = new Events();
            Events two = new Events();
            make("/a", null, CreateMode.PERSISTENT);
            fails(Code.NOWATCHER, () -> zk.removeWatches(base + "/a", one, WatcherType.Data, false));
            zk.getData(base + "/a", one, null);
            zk.getData(base + "/a", two, null);
            zk.removeWatches(base + "/a", one, WatcherType.Data, false);
            one.expect(EventType.DataWatchRemoved, base + "/a");
            zk.setData(base + "/a", null, -1);
            two.expect(EventType.NodeDataChanged, base + "/a");
            one.expectNone();
            zk.getChildren(base + "/a", one);
            zk.removeAllWatches(base + "/a", WatcherType.Children, false);
            one.expect(EventType.ChildWatchRemoved, base + "/a");
            zk.addWatch(base + "/a", one, AddWatchMode.PERSISTENT);
            zk.removeWatches(base + "/a", one, WatcherType.Any, false);
            one.expect(EventType.PersistentWatchRemoved, base + "/a");
            zk.setData(base + "/a", null, -1);
            zk.exists(base, false);
            one.expectNone();
            if (!is38) {
                zk.addWatch(base + "/a", two, AddWatchMode.PERSISTENT_RECURSIVE);
                zk.removeAllWatches(base + "/a", WatcherType.PersistentRecursive, false);
                two.expect(EventType.PersistentWatchRemoved, base + "/a");
            }
        });
        CHECKS.put("watches are dropped locally when the server cannot be asked", () -> {
            try (Proxy proxy = new Proxy()) {
                Events session = new Events();
                ZooKeeper other = connect(proxy.address(), 10_000, session);
                Events events = new Events();
                other.getChildren(base, events);
                proxy.refusing = true;
                proxy.cut();
                session.await(KeeperState.Disconnected, 0);
                other.removeWatches(base, events, WatcherType.Children, true);
                events.expect(EventType.ChildWatchRemoved, base);
                proxy.refusing = false;
                session.await(KeeperState.SyncConnected, 1);
                other.close();
            }
        });
        CHECKS.put("watches are set again after a reconnect, and missed events are delivered", () -> {
            try (Proxy proxy = new Proxy()) {
                make("/same", null, CreateMode.PERSISTENT);
                make("/changed", null, CreateMode.PERSISTENT);
                make("/deleted", null, CreateMode.PERSISTENT);
                make("/parent", null, CreateMode.PERSISTENT);
                Events session = new Events();
                ZooKeeper other = connect(proxy.address(), 10_000, session);
                long id = other.getSessionId();
                Map<String, Events> heard = new HashMap<>();
                for (String name : Arrays.asList("same", "changed", "deleted", "parent", "created", "kept", "below")) {
                    heard.put(name, new Events());
                }
                other.getData(base + "/same", heard.get("same"), null);
                other.getData(base + "/changed", heard.get("changed"), null);
                other.getData(base + "/deleted", heard.get("deleted"), null);
                other.getChildren(base + "/parent", heard.get("parent"));
                other.exists(base + "/created", heard.get("created"));
                other.addWatch(base + "/same", heard.get("kept"), AddWatchMode.PERSISTENT);
                other.addWatch(base + "/parent", heard.get("below"), AddWatchMode.PERSISTENT_RECURSIVE);
                proxy.refusing = true;
                proxy.cut();
                session.await(KeeperState.Disconnected, 0);
                zk.setData(base + "/changed", null, -1);
                zk.delete(base + "/deleted", -1);
                make("/parent/child", null, CreateMode.PERSISTENT);
                make("/created", null, CreateMode.PERSISTENT);
                proxy.refusing = false;
                session.await(KeeperState.SyncConnected, 1);
                equal(other.getSessionId(), id);
                heard.get("changed").expect(EventType.NodeDataChanged, base + "/changed");
                heard.get("deleted").expect(EventType.NodeDeleted, base + "/deleted");
                heard.get("parent").expect(EventType.NodeChildrenChanged, base + "/parent");
                heard.get("created").expect(EventType.NodeCreated, base + "/created");
                // A persistent watch does not receive what it missed, but it receives later events.
                heard.get("below").expectNone();
                other.exists(base, false);
                zk.setData(base + "/same", null, -1);
                heard.get("same").expect(EventType.NodeDataChanged, base + "/same");
                heard.get("kept").expect(EventType.NodeDataChanged, base + "/same");
                zk.setData(base + "/parent/child", null, -1);
                heard.get("below").expect(EventType.NodeDataChanged, base + "/parent/child");
                other.close();
            }
        });
        CHECKS.put("identities are given again after a reconnect", () -> {
            try (Proxy proxy = new Proxy()) {
                Events session = new Events();
                ZooKeeper other = connect(proxy.address(), 10_000, session);
                other.addAuthInfo("digest", "bob:hidden".getBytes(UTF_8));
                other.create(base + "/a", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
                proxy.cut();
                session.await(KeeperState.SyncConnected, 1);
                other.setData(base + "/a", null, -1);
                other.close();
            }
        });
        CHECKS.put("a partitioned session expires, and its client learns it on return", () -> {
            try (Proxy proxy = new Proxy()) {
                Events session = new Events();
                ZooKeeper other = connect(proxy.address(), BRIEF * minTimeout, session);
                other.create(base + "/e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
                Events events = new Events();
                require(zk.exists(base + "/e", events) != null, "it has expired before it was cut off");
                proxy.refusing = true;
                proxy.cut();
                events.expect(EventType.NodeDeleted, base + "/e");
                proxy.refusing = false;
                session.await(KeeperState.Expired, 0);
                fails(Code.SESSIONEXPIRED, () -> other.exists(base, false));
                other.close();
            }
        });
        CHECKS.put("a session goes on in another handle by id and password", () -> {
            try (Proxy proxy = new Proxy()) {
                Events session = new Events();
                ZooKeeper first = connect(proxy.address(), 10_000, session);
                first.create(base + "/e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
                // Otherwise it would resume its session at an arbitrary moment.
                proxy.refusing = true;
                Events second = new Events();
                ZooKeeper heir = new ZooKeeper(server, 10_000, second, first.getSessionId(), first.getSessionPasswd());
                second.await(KeeperState.SyncConnected, 0);
                equal(heir.getSessionId(), first.getSessionId());
                session.await(KeeperState.Disconnected, 0);
                equal(heir.getEphemerals(), Arrays.asList(base + "/e"));
                // The first one to close ends the session for both.
                heir.close();
                equal(zk.exists(base + "/e", false), null);
                proxy.refusing = false;
                session.await(KeeperState.Expired, 0);
                first.close();
            }
        });
        CHECKS.put("a wrong password is answered as expired", () -> {
            ZooKeeper first = connect(server, 10_000, new Events());
            Events second = new Events();
            ZooKeeper thief = new ZooKeeper(server, 10_000, second, first.getSessionId(), new byte[16]);
            second.await(KeeperState.Expired, 0);
            thief.close();
            first.close();
        });
        CHECKS.put("session timeouts are negotiated", () -> {
            ZooKeeper low = connect(server, minTimeout / 2, new Events());
            equal(low.getSessionTimeout(), minTimeout);
            ZooKeeper high = connect(server, 3600_000, new Events());
            equal(high.getSessionTimeout(), maxTimeout);
            low.close();
            high.close();
        });
        CHECKS.put("ephemerals are listed by prefix and go with the session", () -> {
            ZooKeeper other = connect(server, 10_000, new Events());
            other.create(base + "/x", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            other.create(base + "/x/1", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            other.create(base + "/2", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            equal(new HashSet<>(other.getEphemerals()), new HashSet<>(Arrays.asList(base + "/x/1", base + "/2")));
            equal(other.getEphemerals(base + "/x"), Arrays.asList(base + "/x/1"));
            equal(other.getEphemerals("/nowhere"), Collections.emptyList());
            Events events = new Events();
            zk.exists(base + "/2", events);
            other.close();
            events.expect(EventType.NodeDeleted, base + "/2");
        });
        CHECKS.put("a read-only client is served", () -> {
            Events events = new Events();
            ZooKeeper other = new ZooKeeper(server, 10_000, events, true);
            events.await(KeeperState.SyncConnected, 0);
            other.create(base + "/a", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            other.close();
        });
        CHECKS.put("a chroot hides the rest", () -> {
            make("/app", null, CreateMode.PERSISTENT);
            ZooKeeper inside = connect(server + base + "/app", 10_000, new Events());
            Events events = new Events();
            inside.addWatch("/", events, AddWatchMode.PERSISTENT_RECURSIVE);
            equal(inside.create("/a", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), "/a");
            events.expect(EventType.NodeCreated, "/a");
            require(zk.exists(base + "/app/a", false) != null, "it is elsewhere");
            inside.close();
        });
        CHECKS.put("sync, config and reconfig", () -> {
            CountDownLatch synced = new CountDownLatch(1);
            zk.sync(base, (rc, path, context) -> {
                if (rc == 0 && path.equals(base)) {
                    synced.countDown();
                }
            }, null);
            require(synced.await(PATIENCE, TimeUnit.SECONDS), "sync did not answer its path");
            Stat stat = new Stat();
            byte[] config = zk.getConfig(false, stat);
            require(config == null || config.length == 0, "the config is not empty");
            equal(stat.getAversion(), -1);
            Events events = new Events();
            ZooKeeperAdmin admin = new ZooKeeperAdmin(server, 10_000, events);
            events.await(KeeperState.SyncConnected, 0);
            fails(Code.RECONFIGDISABLED, () -> admin.reconfigure((String) null, "1", null, -1, null));
            admin.close();
        });
        CHECKS.put("pipelined requests are answered in order", () -> {
            make("/n", null, CreateMode.PERSISTENT);
            List<Integer> versions = Collections.synchronizedList(new ArrayList<>());
            AtomicInteger bad = new AtomicInteger();
            CountDownLatch done = new CountDownLatch(400);
            AsyncCallback.StatCallback callback = (rc, path, context, stat) -> {
                if (rc == 0) {
                    versions.add(stat.getVersion());
                } else {
                    bad.incrementAndGet();
                }
                done.countDown();
            };
            for (int i = 0; i < 200; i++) {
                zk.setData(base + "/n", null, -1, callback, null);
                zk.exists(base + "/n", false, callback, null);
            }
            require(done.await(PATIENCE, TimeUnit.SECONDS), "not all were answered");
            equal(bad.get(), 0);
            for (int i = 0; i < 400; i++) {
                equal(versions.get(i), i / 2 + 1);
            }
        });
        CHECKS.put("nearly a mebibyte fits and more cuts the connection", () -> {
            make("/big", null, CreateMode.PERSISTENT);
            int room = 1048575 - 20 - (base + "/big").length();
            zk.setData(base + "/big", new byte[room], -1);
            equal(zk.getData(base + "/big", false, null).length, room);
            Events session = new Events();
            ZooKeeper other = connect(server, 10_000, session);
            fails(Code.CONNECTIONLOSS, () -> other.setData(base + "/big", new byte[room + 1], -1));
            session.await(KeeperState.SyncConnected, 1);
            equal(other.exists(base + "/big", false).getVersion(), 1);
            other.close();
        });
        CHECKS.put("a hard quota refuses", () -> {
            if (!enforceQuota) {
                return;
            }
            make("/a", null, CreateMode.PERSISTENT);
            StringBuilder path = new StringBuilder("/zookeeper/quota");
            for (String part : (base + "/a").substring(1).split("/")) {
                path.append('/').append(part);
                try {
                    zk.create(path.toString(), null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                } catch (KeeperException.NodeExistsException e) {
                    // Another check's quota created it.
                }
            }
            zk.create(path + "/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2".getBytes(UTF_8), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            zk.create(path + "/zookeeper_stats", "count=0,bytes=0".getBytes(UTF_8), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            make("/a/b", "12", CreateMode.PERSISTENT);
            fails(Code.QUOTAEXCEEDED, () -> make("/a/c", null, CreateMode.PERSISTENT));
            require(text(zk.getData(path + "/zookeeper_stats", false, null)).startsWith("count=2,bytes=2"), "it counts wrongly");
        });
    }

    static String json(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    public static void main(String[] arguments) throws Exception {
        server = arguments[0];
        superAuth = arguments[1];
        is38 = arguments[2].startsWith("3.8");
        minTimeout = Integer.parseInt(arguments[3]);
        maxTimeout = Integer.parseInt(arguments[4]);
        extendedTypes = arguments[6].equals("1");
        enforceQuota = arguments[7].equals("1");
        checks();
        zk = connect(server, 10_000, new Events());
        String root = zk.create("/java-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
        int number = 0;
        for (Map.Entry<String, Check> check : CHECKS.entrySet()) {
            String result = "\"ok\": true";
            try {
                base = zk.create(root + "/" + number++, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                check.getValue().run();
            } catch (Exception | AssertionError e) {
                result = "\"ok\": false, \"detail\": " + json(e.toString());
            }
            System.out.println("{\"check\": " + json(check.getKey()) + ", " + result + "}");
        }
        zk.close();
        // The proxy's threads and those of handles that a failed check left open must not keep the
        // process alive.
        System.exit(0);
    }
}
