import java.util.Collection;
import java.util.stream.Collectors;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/**
 * Curator's service discovery, for CuratorPeer: one instance to register, and its view of a
 * service.
 */
final class CuratorServices {
    /** A payload that is an object: written with the name of this class. */
    public static class Zone {
        public String zone;

        @Override
        public String toString() {
            return "zone " + zone;
        }
    }

    private CuratorServices() {}

    /**
     * With {@code writesEnabled} all fields are written; otherwise, as by default, {@code enabled}
     * is omitted.
     */
    static <T> CuratorPeer.Recipe discovery(String path, Class<T> payloadClass, boolean writesEnabled) throws Exception {
        ServiceDiscovery<T> discovery = ServiceDiscoveryBuilder.builder(payloadClass)
                .client(CuratorPeer.zk)
                .basePath(path)
                .serializer(new JsonInstanceSerializer<>(payloadClass, !writesEnabled))
                .build();
        discovery.start();
        return new Services<>(discovery, payloadClass);
    }

    private static final class Services<T> implements CuratorPeer.Recipe {
        final ServiceDiscovery<T> discovery;
        final Class<T> payloadClass;
        ServiceInstance<T> own;
        ServiceCache<T> cache;
        ServiceProvider<T> provider;

        Services(ServiceDiscovery<T> discovery, Class<T> payloadClass) {
            this.discovery = discovery;
            this.payloadClass = payloadClass;
        }

        @Override
        public String tell(String verb, String[] arguments) throws Exception {
            switch (verb) {
                case "register":
                    own = instance(arguments[0], arguments[1], arguments[2], true, ServiceType.valueOf(arguments[3]));
                    discovery.registerService(own);
                    return "";
                case "change":
                    own = instance(own.getName(), own.getId(), arguments[0], arguments[1].equals("on"), own.getServiceType());
                    discovery.updateService(own);
                    return "";
                case "unregister":
                    discovery.unregisterService(own);
                    return "";
                case "names":
                    return discovery.queryForNames().stream().sorted().collect(Collectors.joining(","));
                case "instances":
                    return shown(discovery.queryForInstances(arguments[0]));
                case "watch":
                    cache = discovery.serviceCacheBuilder().name(arguments[0]).build();
                    cache.start();
                    provider = discovery.serviceProviderBuilder().serviceName(arguments[0]).build();
                    provider.start();
                    return "";
                case "cached":
                    return shown(cache.getInstances());
                case "choose":
                    ServiceInstance<T> chosen = provider.getInstance();
                    return chosen == null ? "none" : chosen.getId();
                default:
                    return CuratorPeer.unknown(verb);
            }
        }

        /** All at one address, so that only the payload, and whether it is enabled, changes. */
        ServiceInstance<T> instance(String name, String id, String payload, boolean isEnabled, ServiceType type) throws Exception {
            ServiceInstanceBuilder<T> builder = ServiceInstance.<T>builder()
                    .name(name)
                    .id(id)
                    .address("10.0.0.1")
                    .port(8080)
                    .payload(payloadOf(payload))
                    .serviceType(type)
                    .uriSpec(new UriSpec("{scheme}://{address}:{port}/{id}"))
                    .enabled(isEnabled);
            return builder.build();
        }

        T payloadOf(String text) {
            if (payloadClass == String.class) return payloadClass.cast(text);
            Zone zone = new Zone();
            zone.zone = text;
            return payloadClass.cast(zone);
        }

        String shown(Collection<ServiceInstance<T>> instances) {
            return instances.stream()
                    .map(each -> String.join(
                            " ",
                            each.getId(),
                            each.buildUriSpec(),
                            String.valueOf(each.getPayload()),
                            each.getServiceType().name(),
                            each.isEnabled() ? "on" : "off"))
                    .sorted()
                    .collect(Collectors.joining(","));
        }
    }
}
