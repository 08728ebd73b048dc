import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;

/**
 * Curator's caches, for CuratorPeer: {@code shown} is each path with its data and version, in the
 * order of paths.
 */
final class CuratorCaches {
    private CuratorCaches() {}

    static CuratorPeer.Recipe children(String path) throws Exception {
        PathChildrenCache cache = new PathChildrenCache(CuratorPeer.zk, path, true);
        cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        return shows(() -> {
            Map<String, ChildData> all = new TreeMap<>();
            for (ChildData each : cache.getCurrentData()) all.put(each.getPath(), each);
            return all;
        });
    }

    static CuratorPeer.Recipe tree(String path) throws Exception {
        TreeCache cache = new TreeCache(CuratorPeer.zk, path);
        cache.start();
        return shows(() -> {
            Map<String, ChildData> all = new TreeMap<>();
            gather(cache, path, all);
            return all;
        });
    }

    private static void gather(TreeCache cache, String path, Map<String, ChildData> all) {
        ChildData data = cache.getCurrentData(path);
        Map<String, ChildData> children = cache.getCurrentChildren(path);
        if (data == null || children == null) return;
        all.put(path, data);
        for (String name : children.keySet()) gather(cache, path + "/" + name, all);
    }

    private interface Look {
        Map<String, ChildData> take();
    }

    private static CuratorPeer.Recipe shows(Look look) {
        return (verb, arguments) -> {
            if (!verb.equals("shown")) return CuratorPeer.unknown(verb);
            StringBuilder text = new StringBuilder();
            look.take().forEach((path, each) -> text.append(path).append('=').append(new String(each.getData(), UTF_8)).append('@').append(each.getStat().getVersion()).append(' '));
            return text.toString().trim();
        };
    }
}
