import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * Drives the Java client with its asynchronous calls: reads commands from standard input, one JSON
 * object per line, and answers each with a line. See node-driver.js, which does the same.
 */
public class JavaClient {
    /** Only every eighth request of a lane is timed, so that timing costs little. */
    static final int TIMED_EVERY = 8;

    static final OperatingSystemMXBean PROCESS = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    static String connectString;

    public static void main(String[] args) throws Exception {
        connectString = args[0];
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ZooKeeper client = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                switch (text(line, "do")) {
                    case "open":
                        client = open();
                        say("{}");
                        break;
                    case "load":
                        say(load(client, line));
                        break;
                    case "watch":
                        say(watch(client, line));
                        break;
                    case "connect":
                        say(connect(number(line, "times")));
                        break;
                    case "quit":
                        client.close();
                        say("{}");
                        return;
                    default:
                        throw new IllegalArgumentException(line);
                }
            } catch (Exception e) {
                say("{\"error\":\"" + e.toString().replace('"', '\'').replace('\n', ' ') + "\"}");
            }
        }
    }

    static void say(String answer) {
        System.out.println(answer);
        System.out.flush();
    }

    static String text(String line, String key) {
        Matcher matcher = Pattern.compile("\"" + key + "\":\"?([^\",}]*)").matcher(line);
        if (!matcher.find()) throw new IllegalArgumentException("no " + key + " in " + line);
        return matcher.group(1);
    }

    static int number(String line, String key) {
        return Integer.parseInt(text(line, key));
    }

    static ZooKeeper open() throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(connectString, 30_000, event -> {
            if (event.getState() == KeeperState.SyncConnected) connected.countDown();
        });
        connected.await();
        return client;
    }

    static double cpuSeconds() {
        return PROCESS.getProcessCpuTime() / 1e9;
    }

    /**
     * All lanes run on the client's event thread, so they share nothing except the signal of their
     * end.
     */
    static class Load {
        final ZooKeeper client;
        final String root;
        final int znodes;
        final int bytes;
        final byte[] data;
        final long endNanos;
        final CountDownLatch lanesLeft;
        final AtomicReference<String> failure = new AtomicReference<>();
        long operations;
        long[] nanos = new long[1024];
        int timed;

        Load(ZooKeeper client, String line, int inFlight) {
            this.client = client;
            root = text(line, "root");
            znodes = number(line, "znodes");
            bytes = number(line, "bytes");
            data = new byte[bytes];
            endNanos = System.nanoTime() + (long) (Double.parseDouble(text(line, "seconds")) * 1e9);
            lanesLeft = new CountDownLatch(inFlight);
        }

        void done(long startNanos) {
            operations++;
            if (startNanos == 0) return;
            if (timed == nanos.length) nanos = Arrays.copyOf(nanos, timed * 2);
            nanos[timed++] = System.nanoTime() - startNanos;
        }
    }

    static class Lane {
        final Load load;
        final String op;
        final String own;
        int at;
        int turn;
        long startNanos;

        Lane(Load load, String op, int index) {
            this.load = load;
            this.op = op;
            at = index * 61;
            own = load.root + "/e-" + ProcessHandle.current().pid() + "-" + index;
        }

        String path() {
            return load.root + "/" + at++ % load.znodes;
        }

        void next() {
            if (System.nanoTime() >= load.endNanos || load.failure.get() != null) {
                load.lanesLeft.countDown();
                return;
            }
            startNanos = turn++ % TIMED_EVERY == 0 ? System.nanoTime() : 0;
            switch (op) {
                case "getData":
                    load.client.getData(path(), false, (rc, path, ctx, data, stat) -> answered(rc == 0 && data.length != load.bytes ? -1 : rc), null);
                    break;
                case "setData":
                    load.client.setData(path(), load.data, -1, (rc, path, ctx, stat) -> answered(rc), null);
                    break;
                default:
                    AsyncCallback.StringCallback created = (rc, path, ctx, name) -> {
                        if (rc != 0) answered(rc);
                        else load.client.delete(own, -1, (code, deleted, context) -> answered(code), null);
                    };
                    load.client.create(own, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL, created, null);
            }
        }

        void answered(int rc) {
            if (rc != 0) load.failure.compareAndSet(null, "the answer was " + Code.get(rc));
            load.done(startNanos);
            next();
        }
    }

    static String load(ZooKeeper client, String line) throws Exception {
        int inFlight = number(line, "inFlight");
        Load load = new Load(client, line, inFlight);
        double cpu = cpuSeconds();
        long start = System.nanoTime();
        // The first requests are sent by this thread, which the event thread may overtake: an
        // operation counts when it is answered.
        for (int i = 0; i < inFlight; i++) new Lane(load, text(line, "op"), i).next();
        load.lanesLeft.await();
        double seconds = (System.nanoTime() - start) / 1e9;
        cpu = cpuSeconds() - cpu;
        if (load.failure.get() != null) throw new IllegalStateException(load.failure.get());
        long[] sorted = Arrays.copyOf(load.nanos, load.timed);
        Arrays.sort(sorted);
        return String.format(
                "{\"operations\":%d,\"seconds\":%f,\"cpuSeconds\":%f,\"p50Us\":%f,\"p99Us\":%f}",
                load.operations, seconds, cpu, percentile(sorted, 0.5), percentile(sorted, 0.99));
    }

    /** In microseconds. */
    static double percentile(long[] sorted, double share) {
        return sorted[Math.min(sorted.length - 1, (int) (sorted.length * share))] / 1e3;
    }

    static String watch(ZooKeeper client, String line) throws Exception {
        String root = text(line, "root");
        int count = number(line, "count");
        CountDownLatch armed = new CountDownLatch(count);
        AtomicInteger left = new AtomicInteger(count);
        CountDownLatch fired = new CountDownLatch(1);
        for (int i = 0; i < count; i++) {
            // One watcher each, as in a program that watches many things.
            client.getData(root + "/" + i, event -> {
                if (left.decrementAndGet() == 0) fired.countDown();
            }, (rc, path, ctx, data, stat) -> armed.countDown(), null);
        }
        armed.await();
        double cpu = cpuSeconds();
        say("{\"armed\":" + count + "}");
        fired.await();
        return String.format("{\"events\":%d,\"cpuSeconds\":%f}", count, cpuSeconds() - cpu);
    }

    static String connect(int times) throws Exception {
        long[] nanos = new long[times];
        double cpu = cpuSeconds();
        for (int i = 0; i < times; i++) {
            long start = System.nanoTime();
            open().close();
            nanos[i] = System.nanoTime() - start;
        }
        cpu = cpuSeconds() - cpu;
        Arrays.sort(nanos);
        return String.format("{\"connects\":%d,\"cpuSeconds\":%f,\"p50Us\":%f}", times, cpu, percentile(nanos, 0.5));
    }
}
