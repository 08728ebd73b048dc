import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import java.util.Iterator;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;

/**
 * Curator's queues whose items have their own encoding, for CuratorPeer. They pass items to a
 * consumer, so what is taken is what the consumer has received.
 */
final class CuratorQueues {
    private static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, UTF_8);
        }
    };

    private CuratorQueues() {}

    /**
     * {@code consumes} is no, yes, or the path of its locks, with which an item stays until the
     * consumer has finished it; an item that begins with "held" takes forever.
     */
    static CuratorPeer.Recipe queue(String path, String order, String consumes) throws Exception {
        BlockingQueue<String> handed = new LinkedBlockingQueue<>();
        QueueConsumer<String> consumer = new QueueConsumer<String>() {
            @Override
            public void consumeMessage(String item) throws Exception {
                handed.put(item);
                if (item.startsWith("held")) new CountDownLatch(1).await();
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
        QueueBuilder<String> builder = QueueBuilder.builder(CuratorPeer.zk, consumes.equals("no") ? null : consumer, TEXT, path);
        if (consumes.startsWith("/")) builder.lockPath(consumes);
        Queue queue = queueOf(builder, order);
        queue.base.start();
        return (verb, arguments) -> {
            switch (verb) {
                case "put":
                    queue.putter.put(arguments[0], arguments.length > 1 ? arguments[1] : "");
                    return "";
                case "put_all":
                    Iterator<String> items = Arrays.asList(arguments).iterator();
                    MultiItem<String> all = () -> items.hasNext() ? items.next() : null;
                    ((DistributedQueue<String>) queue.base).putMulti(all);
                    return "";
                case "take":
                    String item = handed.poll(CuratorPeer.PATIENCE, TimeUnit.SECONDS);
                    return item == null ? "nothing" : item;
                case "poll":
                    String now = handed.poll();
                    return now == null ? "nothing" : now;
                case "remove":
                    return String.valueOf(((DistributedIdQueue<String>) queue.base).remove(arguments[0]));
                case "close":
                    queue.base.close();
                    return "";
                default:
                    return CuratorPeer.unknown(verb);
            }
        };
    }

    interface Putter {
        void put(String item, String label) throws Exception;
    }

    private static final class Queue {
        final QueueBase<String> base;
        final Putter putter;

        Queue(QueueBase<String> base, Putter putter) {
            this.base = base;
            this.putter = putter;
        }
    }

    private static Queue queueOf(QueueBuilder<String> builder, String order) {
        switch (order) {
            case "plain":
                DistributedQueue<String> plain = builder.buildQueue();
                return new Queue(plain, (item, label) -> plain.put(item));
            case "id":
                DistributedIdQueue<String> withIds = builder.buildIdQueue();
                return new Queue(withIds, withIds::put);
            case "priority":
                // Checks after every item whether a more urgent one has arrived.
                DistributedPriorityQueue<String> urgent = builder.buildPriorityQueue(0);
                return new Queue(urgent, (item, label) -> urgent.put(item, Integer.parseInt(label)));
            case "delay":
                DistributedDelayQueue<String> delayed = builder.buildDelayQueue();
                return new Queue(delayed, (item, label) -> delayed.put(item, Long.parseLong(label)));
            default:
                throw new IllegalArgumentException("no such order: " + order);
        }
    }
}
