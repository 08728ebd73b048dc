/** The instances of one service in memory; lookups send no request. */
import type { ReadingOptions } from '../caches/cached-znode.ts';
import { ChildrenCache } from '../caches/children-cache.ts';
import type { Check } from '../codecs/standard-schema.ts';
import { instanceOf, rawInstanceOf } from './instance-json.ts';
import type { ServiceInstance } from './service-instance.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/**
 * A cache of the instances of one service, by the names of their znodes; invalid data are shown as
 * a `decodeError`. Made by `ServiceRegistry.cache`. (Curator's ServiceCache.)
 */
export class ServiceCache<Payload = unknown> extends ChildrenCache<ServiceInstance<Payload>> {
  /** Made by `ServiceRegistry.cache`. */
  constructor(source: SessionSource, path: string, payloadCheck: Check<Payload> | undefined, options: ReadingOptions = {}) {
    super(source, path, { ...options, decode: (data, _path, stat) => instanceOf(rawInstanceOf(data), stat, payloadCheck) });
  }

  /** The valid instances, enabled or not, sorted by id. */
  get instances(): readonly ServiceInstance<Payload>[] {
    return [...this].flatMap(({ data }) => (data === undefined ? [] : [data])).sort((one, other) => (one.id < other.id ? -1 : 1));
  }
}
