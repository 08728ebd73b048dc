import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.Stat;

/**
 * Connects with ZooKeeper's client and SASL, and prints what each user may do.
 *
 * <p>Arguments: for each attempt its name, host:port, the section of the JAAS file ("-" for no
 * SASL) and a path. Prints one line for each: the name, a tab, and the outcome in words.
 */
public final class SaslClient {
  /** Above any delay of a busy machine; only a failure takes this long. */
  private static final int PATIENCE_SECONDS = 20;

  public static void main(String[] args) throws Exception {
    for (int at = 0; at < args.length; at += 4) {
      System.out.println(args[at] + "\t" + outcomeOf(args[at + 1], args[at + 2], args[at + 3]));
    }
    System.exit(0);
  }

  private static String outcomeOf(String connect, String section, String path) throws Exception {
    ZKClientConfig config = new ZKClientConfig();
    boolean usesSasl = !section.equals("-");
    config.setProperty(ZKClientConfig.ENABLE_CLIENT_SASL_KEY, String.valueOf(usesSasl));
    if (usesSasl) config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, section);
    AtomicReference<KeeperState> last = new AtomicReference<>();
    CountDownLatch ready = new CountDownLatch(1);
    ZooKeeper zk =
        new ZooKeeper(
            connect,
            10_000,
            event -> {
              last.set(event.getState());
              boolean isReady = event.getState() == (usesSasl ? KeeperState.SaslAuthenticated : KeeperState.SyncConnected);
              if (isReady || event.getState() == KeeperState.AuthFailed) ready.countDown();
            },
            config);
    try {
      if (!ready.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) return "never ready: " + last.get();
      zk.create(path, new byte[0], ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
      String acl =
          zk.getACL(path, new Stat()).stream()
              .map(each -> each.getId().getScheme() + ":" + each.getId().getId())
              .collect(Collectors.joining(" "));
      zk.delete(path, -1);
      return "created with the ACL " + acl;
    } catch (KeeperException error) {
      return error.code().name();
    } finally {
      zk.close();
    }
  }
}
