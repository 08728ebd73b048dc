/**
 * Which services there are, and where: service discovery, on the paths and in the form of Curator's x-discovery.
 *
 *     /services
 *       └─ api                        a service
 *            ├─ 10.0.0.1:8080         an instance: ephemeral, with JSON that says where it is
 *            └─ 10.0.0.2:8080
 *
 *     register   create base/name/id, as an ephemeral (dynamic) or not; kept until it is unregistered, and with `Sessions` in each session
 *     find       getChildren and getData, or a cache of them; and of those that can be used one, by a strategy
 */
import type { Acl } from '@tskeeper/client';
import { checkOptions as checkNamedOptions, checkValue, childPath } from '@tskeeper/client/internal';
import { callOptions, checkCallOptions, checkCount, checkName, checkPlace, checkSettings } from '../given.ts';
import type { ReadingOptions } from '../caches/cached-znode.ts';
import { reasonOf } from '../models/model-value.ts';
import { type Check, checked } from '../codecs/standard-schema.ts';
import { PersistentNode } from '../nodes/persistent-node.ts';
import { RecipeError } from '../recipe-error.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { unlessGone } from '../waiting/unless-gone.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { instanceOf, type RawInstance, rawInstanceOf, rawWith } from './instance-json.ts';
import { Registration } from './registration.ts';
import { ServiceCache } from './service-cache.ts';
import {
  changeKind,
  type InstanceChange,
  type PayloadSettings,
  type ServiceInstance,
  serviceKind,
  type ServiceSettings,
} from './service-instance.ts';
import { ServiceProvider, type ServiceProviderOptions } from './service-provider.ts';
import { partsOfUriSpec } from './uri-spec.ts';

/** How services are kept. */
export interface ServiceRegistryOptions<Payload> {
  /** Of the instances, and of what stands above them, if it has to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /** Judges payloads: a function that returns the value or throws what is wrong, or a schema. Default: they are taken for what the program says they are. */
  readonly payload?: Check<Payload> | undefined;
}

/** How to register. */
export interface RegisterOptions extends WaitOptions {
  /**
   * As in `PersistentNodeOptions`: two that live, and both take the same id over, do so in turns for ever. Default: false, an id that another session has is
   * waited for.
   */
  readonly takesOver?: boolean | undefined;
}

/** Services, and the instances of each. (Curator's ServiceDiscovery.) */
export class ServiceRegistry<Payload = unknown> {
  /** The znode below which services are. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #acl: readonly Acl[] | undefined;
  readonly #payloadCheck: Check<Payload> | undefined;

  /**
   * Nothing is asked of a server yet. `source`: a client, whose end is the end of what is registered with it, or `Sessions`. Throws a TypeError for what is
   * no client or no path.
   */
  constructor(source: SessionSource, path: string, options: ServiceRegistryOptions<Payload> = {}) {
    checkPlace(source, path);
    checkSettings(options, 'ServiceRegistry', arguments.length);
    const { acl, payload } = options;
    this.path = path;
    this.#source = source;
    this.#acl = acl;
    this.#payloadCheck = payload;
  }

  /**
   * Registers an instance, and resolves when it can be found: until it is unregistered, made again should somebody delete its znode, and with `Sessions` in each
   * session. While another session has the id, as that of a process that has just died, it waits until that is gone: for as long as a session lasts.
   *
   * Rejects as `PersistentNode.ready` does, and is not registered then; with a RecipeError, Refused, for a payload that is not right. Throws a TypeError for what
   * makes no sense.
   */
  async register(service: ServiceSettings<Payload>, options: RegisterOptions = {}): Promise<Registration<Payload>> {
    checkCount(arguments.length, 2, 'register(service, options)');
    checkValue(service, serviceKind, 'register: the service');
    checkCallOptions(options, callOptions.register, 'register');
    options.signal?.throwIfAborted();
    const { takesOver, ...waitOptions } = options;
    const { name, address, port, serviceType = 'dynamic', id = port === undefined ? address : `${address}:${port}` } = service;
    const path = this.#pathOf(name, id);
    const raw = this.#rawOf(service, id, path);
    const mode = serviceType === 'dynamic' ? 'ephemeral' : 'persistent';
    const node = new PersistentNode(this.#source, path, JSON.stringify(raw), { mode, acl: this.#acl, takesOver });
    try {
      await node.ready(waitOptions);
    } catch (error) {
      await node.close();
      throw error;
    }
    return new Registration<Payload>(this.#source, node, raw, (payload) => this.#checkPayload(path, payload));
  }

  /**
   * Names of the services that have, or had just now, instances; in no defined order. Rejects as `Client.getChildren` does, but for NoNode, and with a
   * RecipeError, TimedOut.
   */
  async names(options: WaitOptions = {}): Promise<readonly string[]> {
    checkCount(arguments.length, 1, 'names(options)');
    using limit = this.#limit(options, `the services of ${this.path}`);
    return await this.#childrenOf(this.path, limit);
  }

  /**
   * The instances of a service, enabled or not, by id; none when there is no such service. What makes no sense is left out; a `cache` shows it. Rejects as
   * `Client.getChildren` and `Client.getData` do, but for NoNode, and with a RecipeError, TimedOut.
   */
  async instances(name: string, options: WaitOptions = {}): Promise<readonly ServiceInstance<Payload>[]> {
    checkCount(arguments.length, 2, 'instances(name, options)');
    using limit = this.#limit(options, `the instances of ${name}`);
    const ids = await this.#childrenOf(this.#pathOf(name), limit);
    const found = await Promise.all(ids.map((id) => this.#read(this.#pathOf(name, id), limit)));
    const instances = found.flatMap((each) => (each === undefined || each instanceof RecipeError ? [] : [each]));
    return instances.sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /**
   * One of them; undefined when it is not there. Rejects as `Client.getData` does, but for NoNode, and with a RecipeError: TimedOut; Mismatch, when its data
   * make no sense.
   */
  async instance(name: string, id: string, options: WaitOptions = {}): Promise<ServiceInstance<Payload> | undefined> {
    checkCount(arguments.length, 3, 'instance(name, id, options)');
    using limit = this.#limit(options, `the instance ${id} of ${name}`);
    const found = await this.#read(this.#pathOf(name, id), limit);
    if (found instanceof RecipeError) throw found;
    return found;
  }

  /**
   * Says something else of an instance that somebody has registered: disables it, say. It lasts for as long as its znode; its owner makes the next one as it was.
   * Fields that this package does not know stay. Rejects as `Client.update` does, with NoNode when it is not there, and with a RecipeError: TimedOut; Mismatch, when its
   * data make no sense; Refused, for a payload that is not right.
   */
  async update(name: string, id: string, change: InstanceChange<Payload>, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 4, 'update(name, id, change, options)');
    checkValue(change, changeKind, 'update: the change');
    using limit = this.#limit(options, `the change of the instance ${id} of ${name}`);
    const path = this.#pathOf(name, id);
    this.#checkPayload(path, change.payload);
    const changed = (data: Uint8Array | null) => {
      try {
        return JSON.stringify(rawWith(rawInstanceOf(data), change));
      } catch (cause) {
        throw mismatch(path, cause);
      }
    };
    const { signal } = limit;
    await inSessions(this.#source, signal, (zk) => zk.update(path, changed, { ...untilTheEnd, idempotent: true, signal }));
  }

  /** A cache of the instances of a service, until it is closed or the session ends; with `Sessions` through all of them. */
  cache(name: string, options: ReadingOptions = {}): ServiceCache<Payload> {
    checkCount(arguments.length, 2, 'cache(name, options)');
    const path = this.#pathOf(name);
    checkNamedOptions(options, callOptions.read, 'cache(name, options)');
    return new ServiceCache(this.#source, path, this.#payloadCheck, options);
  }

  /** Instances of a service to use, until it is closed; with `Sessions` through all of them. Throws a RangeError for numbers that make no sense. */
  provider(name: string, options: ServiceProviderOptions<Payload> = {}): ServiceProvider<Payload> {
    checkCount(arguments.length, 2, 'provider(name, options)');
    const path = this.#pathOf(name);
    return new ServiceProvider(this.#source, name, (source) => new ServiceCache(source, path, this.#payloadCheck), options);
  }

  #limit(options: WaitOptions, what: string): Limit {
    return new Limit(this.#source, options, what);
  }

  async #childrenOf(path: string, { signal }: Limit): Promise<readonly string[]> {
    const found = await inSessions(this.#source, signal, (zk) => unlessGone(zk.getChildren(path, { ...untilTheEnd, signal })));
    return found?.children ?? [];
  }

  /** undefined when it is not there; a Mismatch when its data make no sense. */
  async #read(path: string, { signal }: Limit): Promise<ServiceInstance<Payload> | RecipeError | undefined> {
    const found = await inSessions(this.#source, signal, (zk) => unlessGone(zk.getData(path, { ...untilTheEnd, signal })));
    if (found === undefined) return undefined;
    try {
      return instanceOf(rawInstanceOf(found.data), found.stat, this.#payloadCheck);
    } catch (cause) {
      return mismatch(path, cause);
    }
  }

  #pathOf(...names: readonly string[]): string {
    return names.reduce((path, name) => {
      checkName(name, 'the name or the id of a service');
      return childPath(path, name);
    }, this.path);
  }

  #rawOf(service: ServiceSettings<Payload>, id: string, path: string): RawInstance {
    const {
      name,
      address,
      port = null,
      sslPort = null,
      serviceType = 'dynamic',
      uriSpec = null,
      enabled = true,
      registrationTimeMs = 0,
    } = service;
    const { payload = null }: PayloadSettings<unknown> = service;
    this.#checkPayload(path, payload);
    if (uriSpec !== null) partsOfUriSpec(uriSpec);
    return rawWith({}, { name, id, address, port, sslPort, payload, registrationTimeMs, serviceType, uriSpec, enabled });
  }

  /** Throws a RecipeError, Refused. undefined: there is none to be written. */
  #checkPayload(path: string, payload: unknown): void {
    try {
      if (this.#payloadCheck !== undefined && payload !== undefined) checked(this.#payloadCheck, payload);
    } catch (cause) {
      throw new RecipeError('Refused', `the payload of ${path} is not right: ${reasonOf(cause)}`, { cause });
    }
  }
}

function mismatch(path: string, cause: unknown): RecipeError {
  return new RecipeError('Mismatch', `the data of ${path} are not an instance of a service: ${reasonOf(cause)}`, { cause });
}
