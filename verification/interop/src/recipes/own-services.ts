/** Our service discovery with the verbs of java/CuratorServices.java. */
import type { Client } from '@tskeeper/client';
import {
  type Registration,
  type ServiceCache,
  type ServiceInstance,
  type ServiceProvider,
  ServiceDiscovery,
  type ServiceType,
  buildUri,
} from '@tskeeper/recipes';

import { callOptions, type Verbs } from './verbs.ts';

/** The name of the class of an object payload on Curator's side. */
const zoneClass = 'CuratorServices$Zone';

type Payload = string | { readonly '@class': string; readonly zone: string };

const typeOfWord: Readonly<Record<string, Exclude<ServiceType, 'dynamicSequential'>>> = {
  DYNAMIC: 'dynamic',
  STATIC: 'static',
  PERMANENT: 'permanent',
};
const wordOfType: Readonly<Record<ServiceType, string>> = {
  dynamic: 'DYNAMIC',
  static: 'STATIC',
  permanent: 'PERMANENT',
  dynamicSequential: 'DYNAMIC_SEQUENTIAL',
};

export function serviceVerbs(zk: Client, path: string, hasZones: boolean): Verbs {
  const registry = new ServiceDiscovery<Payload>(zk, path);
  const payloadOf = (text: string): Payload => (hasZones ? { '@class': zoneClass, zone: text } : text);
  let registration: Registration<Payload> | undefined;
  let cache: ServiceCache<Payload> | undefined;
  let provider: ServiceProvider<Payload> | undefined;
  return {
    async register(name, id, payload, type) {
      registration = await registry.register(
        {
          name,
          id,
          address: '10.0.0.1',
          port: 8080,
          payload: payloadOf(payload),
          serviceType: typeOfWord[type],
          uriSpec: '{scheme}://{address}:{port}/{id}',
        },
        callOptions,
      );
      return '';
    },
    async change(payload, enabled) {
      await registration!.update({ payload: payloadOf(payload), enabled: enabled === 'on' }, callOptions);
      return '';
    },
    async unregister() {
      await registration!.unregister();
      return '';
    },
    async names() {
      return [...(await registry.names(callOptions))].sort().join(',');
    },
    async instances(name) {
      return shown(await registry.instances(name, callOptions));
    },
    async watch(name) {
      cache = registry.cache(name);
      provider = registry.provider(name);
      await Promise.all([cache.ready(callOptions), provider.ready(callOptions)]);
      return '';
    },
    async cached() {
      return shown(cache!.instances);
    },
    async choose() {
      return provider!.choose()?.id ?? 'none';
    },
  };
}

function shown(instances: readonly ServiceInstance<Payload>[]): string {
  return instances
    .map((each) => {
      const payload = typeof each.payload === 'string' ? each.payload : `zone ${each.payload.zone}`;
      return [each.id, buildUri(each), payload, wordOfType[each.serviceType], each.enabled ? 'on' : 'off'].join(' ');
    })
    .sort()
    .join(',');
}
