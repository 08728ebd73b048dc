import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicNumber;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * A process with one session of Curator that uses Curator's recipes as lines on its standard input
 * request.
 *
 * <p>Usage: CuratorPeer host:port session-timeout-in-ms
 *
 * <p>A line is {@code number TAB handle TAB verb TAB argument ...}, its answer {@code number TAB
 * ok|error TAB text}. {@code open} gives a handle a recipe; a thread of the handle executes its
 * lines in order, since Curator's locks belong to threads.
 */
public class CuratorPeer {
    /** Seconds. Above any delay of a busy machine; only a failure takes this long. */
    static final int PATIENCE = 20;

    static CuratorFramework zk;

    interface Recipe {
        String tell(String verb, String[] arguments) throws Exception;
    }

    interface Kind {
        Recipe open(String[] arguments) throws Exception;
    }

    static final Map<String, Kind> KINDS = new HashMap<>();

    static String unknown(String verb) {
        throw new IllegalArgumentException("no such verb: " + verb);
    }

    static String yes(boolean isSo) {
        return isSo ? "yes" : "no";
    }

    static void inTime(boolean isSo, String otherwise) {
        if (!isSo) throw new IllegalStateException(otherwise);
    }

    /**
     * Reads and writes a counter without its version while holding the lock; no other process may
     * be inside.
     */
    static void countUp(InterProcessLock lock, String path, int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            inTime(lock.acquire(PATIENCE, TimeUnit.SECONDS), "no lock");
            try {
                zk.create().withMode(CreateMode.EPHEMERAL).forPath(path + "/inside");
            } catch (KeeperException.NodeExistsException error) {
                throw new IllegalStateException("another client is inside", error);
            }
            int value = Integer.parseInt(new String(zk.getData().forPath(path), UTF_8));
            zk.setData().forPath(path, String.valueOf(value + 1).getBytes(UTF_8));
            zk.delete().forPath(path + "/inside");
            lock.release();
        }
    }

    static Recipe lock(InterProcessLock lock) {
        return (verb, arguments) -> {
            switch (verb) {
                case "acquire":
                    inTime(lock.acquire(PATIENCE, TimeUnit.SECONDS), "no lock");
                    return "";
                case "try_acquire":
                    return yes(lock.acquire(0, TimeUnit.SECONDS));
                case "release":
                    lock.release();
                    return "";
                case "contenders":
                    return names(((InterProcessMutex) lock).getParticipantNodes());
                case "count_up":
                    countUp(lock, arguments[0], Integer.parseInt(arguments[1]));
                    return arguments[1];
                default:
                    return unknown(verb);
            }
        };
    }

    /**
     * A revocable lock. {@code await_asked} runs on its thread, which releases the lock; Curator
     * calls on another thread.
     */
    static Recipe revocableLock(String path) {
        InterProcessMutex lock = new InterProcessMutex(zk, path);
        CountDownLatch asked = new CountDownLatch(1);
        lock.makeRevocable(forLock -> asked.countDown());
        Recipe plain = lock(lock);
        return (verb, arguments) -> {
            switch (verb) {
                case "asked":
                    return yes(asked.getCount() == 0);
                case "await_asked":
                    inTime(asked.await(PATIENCE, TimeUnit.SECONDS), "a revocation request");
                    return "";
                case "revoke":
                    Revoker.attemptRevoke(zk, arguments[0]);
                    return "";
                default:
                    return plain.tell(verb, arguments);
            }
        };
    }

    static String names(Collection<String> paths) {
        return paths.stream().map(each -> each.substring(each.lastIndexOf('/') + 1)).collect(Collectors.joining(","));
    }

    static Recipe semaphore(InterProcessSemaphoreV2 semaphore) {
        List<Lease> leases = new ArrayList<>();
        return (verb, arguments) -> {
            switch (verb) {
                case "acquire":
                    Lease lease = semaphore.acquire(PATIENCE, TimeUnit.SECONDS);
                    inTime(lease != null, "no lease");
                    leases.add(lease);
                    return lease.getNodeName();
                case "release":
                    semaphore.returnLease(leases.remove(0));
                    return "";
                case "contenders":
                    return names(semaphore.getParticipantNodes());
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe latch(String path, String id) {
        LeaderLatch latch = new LeaderLatch(zk, path, id);
        return (verb, arguments) -> {
            switch (verb) {
                case "lead":
                    latch.start();
                    inTime(latch.await(PATIENCE, TimeUnit.SECONDS), "it does not lead");
                    return "";
                case "resign":
                    latch.close();
                    return "";
                case "leader":
                    return latch.getLeader().getId();
                case "contenders":
                    return latch.getParticipants().stream().map(Participant::getId).collect(Collectors.joining(","));
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe selector(String path, String id) {
        CountDownLatch leads = new CountDownLatch(1);
        CountDownLatch resigned = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(zk, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                leads.countDown();
                resigned.await();
            }
        });
        selector.setId(id);
        return (verb, arguments) -> {
            switch (verb) {
                case "lead":
                    selector.start();
                    inTime(leads.await(PATIENCE, TimeUnit.SECONDS), "it does not lead");
                    return "";
                case "resign":
                    resigned.countDown();
                    selector.close();
                    return "";
                case "leader":
                    return selector.getLeader().getId();
                case "contenders":
                    return selector.getParticipants().stream().map(Participant::getId).collect(Collectors.joining(","));
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe barrier(String path) {
        DistributedBarrier barrier = new DistributedBarrier(zk, path);
        return (verb, arguments) -> {
            switch (verb) {
                case "raise_":
                    barrier.setBarrier();
                    return "";
                case "wait":
                    inTime(barrier.waitOnBarrier(PATIENCE, TimeUnit.SECONDS), "the barrier stands");
                    return "";
                case "remove":
                    barrier.removeBarrier();
                    return "";
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe doubleBarrier(String path, int size) {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(zk, path, size);
        return (verb, arguments) -> {
            switch (verb) {
                case "enter":
                    inTime(barrier.enter(PATIENCE, TimeUnit.SECONDS), "the others do not come");
                    return "";
                case "leave":
                    inTime(barrier.leave(PATIENCE, TimeUnit.SECONDS), "the others do not leave");
                    return "";
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe queue(String path) {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(zk, path);
        return (verb, arguments) -> {
            switch (verb) {
                case "put":
                    queue.offer(arguments[0].getBytes(UTF_8));
                    return "";
                case "take":
                    byte[] value = queue.poll(PATIENCE, TimeUnit.SECONDS);
                    return value == null ? "nothing" : new String(value, UTF_8);
                case "poll":
                    byte[] now = queue.poll();
                    return now == null ? "nothing" : new String(now, UTF_8);
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe member(String path, String id, String data) {
        GroupMember member = new GroupMember(zk, path, id, data.getBytes(UTF_8));
        return (verb, arguments) -> {
            switch (verb) {
                case "join":
                    member.start();
                    return "";
                case "leave":
                    member.close();
                    return "";
                case "members":
                    // At one moment: a member seen now may be gone in the next look.
                    return new TreeMap<>(member.getCurrentMembers()).entrySet().stream()
                            .map(each -> each.getKey() + "=" + new String(each.getValue(), UTF_8))
                            .collect(Collectors.joining(","));
                default:
                    return unknown(verb);
            }
        };
    }

    interface Step {
        void take() throws Exception;
    }

    static Recipe kept(Step keep, Step drop) {
        return (verb, arguments) -> {
            switch (verb) {
                case "keep":
                    keep.take();
                    return "";
                case "drop":
                    drop.take();
                    return "";
                default:
                    return unknown(verb);
            }
        };
    }

    /**
     * {@code set} uses the version that it received last, as every careful change of a value does.
     */
    static Recipe sharedValue(String path, String seed) throws Exception {
        SharedValue shared = new SharedValue(zk, path, seed.getBytes(UTF_8));
        shared.start();
        AtomicReference<VersionedValue<byte[]>> seen = new AtomicReference<>(shared.getVersionedValue());
        return (verb, arguments) -> {
            switch (verb) {
                case "value":
                    seen.set(shared.getVersionedValue());
                    return new String(seen.get().getValue(), UTF_8);
                case "set":
                    return yes(shared.trySetValue(seen.get(), arguments[0].getBytes(UTF_8)));
                default:
                    return unknown(verb);
            }
        };
    }

    static Recipe sharedCount(String path) throws Exception {
        SharedCount count = new SharedCount(zk, path, 0);
        count.start();
        return (verb, arguments) -> {
            switch (verb) {
                case "value":
                    return String.valueOf(count.getCount());
                case "add":
                    while (true) {
                        VersionedValue<Integer> now = count.getVersionedValue();
                        int next = now.getValue() + Integer.parseInt(arguments[0]);
                        if (count.trySetCount(now, next)) return String.valueOf(next);
                    }
                default:
                    return unknown(verb);
            }
        };
    }

    static <T> Recipe number(DistributedAtomicNumber<T> number, Function<String, T> parse) {
        return (verb, arguments) -> {
            AtomicValue<T> value;
            switch (verb) {
                case "value":
                    value = number.get();
                    break;
                case "add":
                    do value = number.add(parse.apply(arguments[0]));
                    while (!value.succeeded());
                    break;
                default:
                    return unknown(verb);
            }
            return value.postValue().toString();
        };
    }

    static {
        KINDS.put("lock", a -> lock(new InterProcessMutex(zk, a[0])));
        KINDS.put("revocable-lock", a -> revocableLock(a[0]));
        KINDS.put("semaphore-mutex", a -> lock(new InterProcessSemaphoreMutex(zk, a[0])));
        KINDS.put("read-lock", a -> lock(new InterProcessReadWriteLock(zk, a[0]).readLock()));
        KINDS.put("write-lock", a -> lock(new InterProcessReadWriteLock(zk, a[0]).writeLock()));
        KINDS.put("multi-lock", a -> lock(new InterProcessMultiLock(zk, Arrays.asList(a))));
        KINDS.put("semaphore", a -> semaphore(new InterProcessSemaphoreV2(zk, a[0], Integer.parseInt(a[1]))));
        KINDS.put("latch", a -> latch(a[0], a[1]));
        KINDS.put("selector", a -> selector(a[0], a[1]));
        KINDS.put("barrier", a -> barrier(a[0]));
        KINDS.put("double-barrier", a -> doubleBarrier(a[0], Integer.parseInt(a[1])));
        KINDS.put("queue", a -> queue(a[0]));
        KINDS.put("item-queue", a -> CuratorQueues.queue(a[0], a[1], a[2]));
        KINDS.put("member", a -> member(a[0], a[1], a[2]));
        KINDS.put("children-cache", a -> CuratorCaches.children(a[0]));
        KINDS.put("tree-cache", a -> CuratorCaches.tree(a[0]));
        KINDS.put("persistent-node", a -> {
            PersistentNode node = new PersistentNode(zk, CreateMode.EPHEMERAL, false, a[0], a[1].getBytes(UTF_8));
            return kept(node::start, node::close);
        });
        KINDS.put("ttl-node", a -> {
            PersistentTtlNode node = new PersistentTtlNode(zk, a[0], Long.parseLong(a[2]), a[1].getBytes(UTF_8));
            return kept(node::start, node::close);
        });
        KINDS.put("services", a -> CuratorServices.discovery(a[0], String.class, a[1].equals("all")));
        KINDS.put("zoned-services", a -> CuratorServices.discovery(a[0], CuratorServices.Zone.class, false));
        KINDS.put("shared-value", a -> sharedValue(a[0], a[1]));
        KINDS.put("shared-count", a -> sharedCount(a[0]));
        KINDS.put("atomic-long", a -> number(new DistributedAtomicLong(zk, a[0], new RetryOneTime(10)), Long::valueOf));
        KINDS.put("atomic-integer", a -> number(new DistributedAtomicInteger(zk, a[0], new RetryOneTime(10)), Integer::valueOf));
    }

    static synchronized void answer(String number, String kind, String text) {
        System.out.println(number + "\t" + kind + "\t" + text);
        System.out.flush();
    }

    static class Handle {
        final ExecutorService thread = Executors.newSingleThreadExecutor(work -> {
            Thread made = new Thread(work);
            made.setDaemon(true);
            return made;
        });
        Recipe recipe;

        void tell(String number, String verb, String[] arguments) {
            thread.execute(() -> {
                try {
                    if (verb.equals("open")) {
                        recipe = KINDS.get(arguments[0]).open(Arrays.copyOfRange(arguments, 1, arguments.length));
                        answer(number, "ok", "");
                    } else {
                        answer(number, "ok", recipe.tell(verb, arguments));
                    }
                } catch (Throwable error) {
                    answer(number, "error", error.toString().replace('\n', ' '));
                }
            });
        }
    }

    public static void main(String[] args) throws Exception {
        zk = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), PATIENCE * 1000, new RetryOneTime(100));
        zk.start();
        inTime(zk.blockUntilConnected(PATIENCE, TimeUnit.SECONDS), "no connection");
        answer("0", "ok", Long.toHexString(zk.getZookeeperClient().getZooKeeper().getSessionId()));
        Map<String, Handle> handles = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            handles.computeIfAbsent(words[1], ignored -> new Handle()).tell(words[0], words[2], Arrays.copyOfRange(words, 3, words.length));
        }
        zk.close();
    }
}
