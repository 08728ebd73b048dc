/** The instances of one service in memory; lookups send no request. */
import type { ConcurrencyOption } from '../caches/cached-znode.ts';
import { ChildrenCache } from '../caches/children-cache.ts';
import type { Validator } from '../codecs/standard-schema.ts';
import { parseInstance, parseRawInstance } from './instance-json.ts';
import type { ServiceInstance } from './service-instance.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/**
 * A cache of the instances of one service, by the names of their znodes; invalid data are shown as
 * a `decodeError`. Made by `ServiceDiscovery.cache`. (Curator's ServiceCache.)
 */
export class ServiceCache<Payload = unknown> extends ChildrenCache<ServiceInstance<Payload>> {
  /** Made by `ServiceDiscovery.cache`. */
  constructor(source: SessionSource, path: string, payloadValidator: Validator<Payload> | undefined, options: ConcurrencyOption = {}) {
    super(source, path, { ...options, decode: (data, _path, stat) => parseInstance(parseRawInstance(data), stat, payloadValidator) });
  }

  /** The valid instances, enabled or not, sorted by id. */
  get instances(): readonly ServiceInstance<Payload>[] {
    return [...this].flatMap(({ data }) => (data === undefined ? [] : [data])).sort((one, other) => (one.id < other.id ? -1 : 1));
  }
}
