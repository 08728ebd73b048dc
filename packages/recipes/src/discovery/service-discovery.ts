/**
 * Service discovery, with the paths and the format of Curator's x-discovery.
 *
 *     /services
 *       └─ api                        a service
 *            ├─ 10.0.0.1:8080         an instance: ephemeral, with its address as JSON
 *            └─ 10.0.0.2:8080
 *
 *     register   create base/name/id, as an ephemeral (dynamic) or not; kept until it is
 *                unregistered, and with `Sessions` in each session
 *     find       getChildren and getData, or a cache of them; a strategy chooses a usable one
 */
import type { Acl } from '@tskeeper/client';
import { checkOptions as checkNamedOptions, checkValue, childPath } from '@tskeeper/client/internal';
import {
  callOptionTypes,
  checkCallOptions,
  checkArgumentCount,
  checkName,
  checkSourceAndPath,
  checkConstructorOptions,
} from '../validation.ts';
import type { ConcurrencyOption } from '../caches/cached-znode.ts';
import { messageOf } from '../models/model-value.ts';
import { type Validator, validate } from '../codecs/standard-schema.ts';
import { PersistentNode } from '../nodes/persistent-node.ts';
import { RecipeError } from '../recipe-error.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';
import type { WaitOptions } from '../wait-options.ts';
import { parseInstance, type RawInstance, parseRawInstance, mergeRawInstance } from './instance-json.ts';
import { Registration } from './registration.ts';
import { ServiceCache } from './service-cache.ts';
import {
  instanceChangeType,
  type InstanceChange,
  type PayloadSettings,
  type ServiceInstance,
  serviceSettingsType,
  type ServiceSettings,
} from './service-instance.ts';
import { ServiceProvider, type ServiceProviderOptions } from './service-provider.ts';
import { parseUriSpec } from './uri-spec.ts';

/** How services are kept. */
export interface ServiceDiscoveryOptions<Payload> {
  /**
   * The ACL of the instances, and of their parents if they have to be created. Default: all
   * permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * Validates payloads: a function that returns the value or throws, or a schema. Default: no
   * validation.
   */
  readonly payloadValidator?: Validator<Payload> | undefined;
}

/** How to register. */
export interface RegisterOptions extends WaitOptions {
  /**
   * As in `PersistentNodeOptions`: two live instances that both take over the same id do so in
   * turns forever. Default: false, waits while another session has the id.
   */
  readonly takeOver?: boolean | undefined;
}

/** Services, and the instances of each. (Curator's ServiceDiscovery.) */
export class ServiceDiscovery<Payload = unknown> {
  /** The znode above those of the services. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #acl: readonly Acl[] | undefined;
  readonly #payloadValidator: Validator<Payload> | undefined;

  /**
   * Sends no request. `source`: a client, with whose session its registrations end, or `Sessions`.
   * Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ServiceDiscoveryOptions<Payload> = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'ServiceDiscovery', arguments.length);
    const { acl, payloadValidator } = options;
    this.path = path;
    this.#source = source;
    this.#acl = acl;
    this.#payloadValidator = payloadValidator;
  }

  /**
   * Registers an instance, and resolves when other clients can find it. It stays until it is
   * unregistered: its znode is created again if another client deletes it, and with `Sessions` in
   * each session. While another session has the id, such as that of a process that has just died,
   * it waits until that session ends.
   *
   * Rejects as `PersistentNode.ready` does, and is not registered then; with a RecipeError,
   * Refused, for an invalid payload. Throws a TypeError for invalid fields.
   */
  async register(service: ServiceSettings<Payload>, options: RegisterOptions = {}): Promise<Registration<Payload>> {
    checkArgumentCount(arguments.length, 2, 'register(service, options)');
    checkValue(service, serviceSettingsType, 'register: the service');
    checkCallOptions(options, callOptionTypes.register, 'register');
    options.signal?.throwIfAborted();
    const { takeOver, ...waitOptions } = options;
    const { name, address, port, serviceType = 'dynamic', id = port === undefined ? address : `${address}:${port}` } = service;
    const path = this.#pathOf(name, id);
    const raw = this.#rawOf(service, id, path);
    const mode = serviceType === 'dynamic' ? 'ephemeral' : 'persistent';
    const node = new PersistentNode(this.#source, path, JSON.stringify(raw), { mode, acl: this.#acl, takeOver });
    try {
      await node.ready(waitOptions);
    } catch (error) {
      await node.close();
      throw error;
    }
    return new Registration<Payload>(this.#source, node, raw, (payload) => this.#validatePayload(path, payload));
  }

  /**
   * The names of the services that have instances now, or had until a moment ago; in no defined
   * order. Rejects as `Client.getChildren` does, except with NoNode, and with a RecipeError,
   * TimedOut.
   */
  async names(options: WaitOptions = {}): Promise<readonly string[]> {
    checkArgumentCount(arguments.length, 1, 'names(options)');
    using deadline = this.#deadline(options, `the services of ${this.path}`);
    return await this.#childrenOf(this.path, deadline);
  }

  /**
   * The instances of a service, enabled or not, sorted by id; none if the service does not exist.
   * Instances with invalid data are left out; a `cache` shows them. Rejects as `Client.getChildren`
   * and `Client.getData` do, except with NoNode, and with a RecipeError, TimedOut.
   */
  async instances(name: string, options: WaitOptions = {}): Promise<readonly ServiceInstance<Payload>[]> {
    checkArgumentCount(arguments.length, 2, 'instances(name, options)');
    using deadline = this.#deadline(options, `the instances of ${name}`);
    const ids = await this.#childrenOf(this.#pathOf(name), deadline);
    const found = await Promise.all(ids.map((id) => this.#read(this.#pathOf(name, id), deadline)));
    const instances = found.flatMap((each) => (each === undefined || each instanceof RecipeError ? [] : [each]));
    return instances.sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /**
   * One of the instances; undefined if it does not exist. Rejects as `Client.getData` does, except
   * with NoNode, and with a RecipeError: TimedOut; Mismatch, when its data are invalid.
   */
  async instance(name: string, id: string, options: WaitOptions = {}): Promise<ServiceInstance<Payload> | undefined> {
    checkArgumentCount(arguments.length, 3, 'instance(name, id, options)');
    using deadline = this.#deadline(options, `instance ${id} of ${name}`);
    const found = await this.#read(this.#pathOf(name, id), deadline);
    if (found instanceof RecipeError) throw found;
    return found;
  }

  /**
   * Changes fields of an instance that any client has registered, for example to disable it. The
   * change lasts as long as its znode; its owner creates the next one as before. Fields that this
   * package does not know stay. Rejects as `Client.update` does, with NoNode when it does not
   * exist, and with a RecipeError: TimedOut; Mismatch, when its data are invalid; Refused, for an
   * invalid payload.
   */
  async update(name: string, id: string, change: InstanceChange<Payload>, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 4, 'update(name, id, change, options)');
    checkValue(change, instanceChangeType, 'update: the change');
    using deadline = this.#deadline(options, `a change of instance ${id} of ${name}`);
    const path = this.#pathOf(name, id);
    this.#validatePayload(path, change.payload);
    const changed = (data: Uint8Array | null) => {
      try {
        return JSON.stringify(mergeRawInstance(parseRawInstance(data), change));
      } catch (cause) {
        throw instanceMismatch(path, cause);
      }
    };
    const { signal } = deadline;
    await runAcrossSessions(this.#source, signal, (zk) => zk.update(path, changed, { ...retryForever, idempotent: true, signal }));
  }

  /**
   * A cache of the instances of a service, until it is closed or the session ends; with `Sessions`
   * in each session.
   */
  cache(name: string, options: ConcurrencyOption = {}): ServiceCache<Payload> {
    checkArgumentCount(arguments.length, 2, 'cache(name, options)');
    const path = this.#pathOf(name);
    checkNamedOptions(options, callOptionTypes.read, 'cache(name, options)');
    return new ServiceCache(this.#source, path, this.#payloadValidator, options);
  }

  /**
   * Chooses instances of a service to use, until it is closed; with `Sessions` in each session.
   * Throws a RangeError for numbers out of range.
   */
  provider(name: string, options: ServiceProviderOptions<Payload> = {}): ServiceProvider<Payload> {
    checkArgumentCount(arguments.length, 2, 'provider(name, options)');
    const path = this.#pathOf(name);
    return new ServiceProvider(this.#source, name, (source) => new ServiceCache(source, path, this.#payloadValidator), options);
  }

  #deadline(options: WaitOptions, what: string): Deadline {
    return new Deadline(this.#source, options, what);
  }

  async #childrenOf(path: string, { signal }: Deadline): Promise<readonly string[]> {
    const found = await runAcrossSessions(this.#source, signal, (zk) =>
      undefinedIfNoNode(zk.getChildren(path, { ...retryForever, signal })),
    );
    return found?.children ?? [];
  }

  /** undefined if it does not exist; a Mismatch if its data are invalid. */
  async #read(path: string, { signal }: Deadline): Promise<ServiceInstance<Payload> | RecipeError | undefined> {
    const found = await runAcrossSessions(this.#source, signal, (zk) => undefinedIfNoNode(zk.getData(path, { ...retryForever, signal })));
    if (found === undefined) return undefined;
    try {
      return parseInstance(parseRawInstance(found.data), found.stat, this.#payloadValidator);
    } catch (cause) {
      return instanceMismatch(path, cause);
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
    this.#validatePayload(path, payload);
    if (uriSpec !== null) parseUriSpec(uriSpec);
    return mergeRawInstance({}, { name, id, address, port, sslPort, payload, registrationTimeMs, serviceType, uriSpec, enabled });
  }

  /** Throws a RecipeError, Refused. undefined: there is no payload to write. */
  #validatePayload(path: string, payload: unknown): void {
    try {
      if (this.#payloadValidator !== undefined && payload !== undefined) validate(this.#payloadValidator, payload);
    } catch (cause) {
      throw new RecipeError('Refused', `invalid payload for ${path}: ${messageOf(cause)}`, { cause });
    }
  }
}

function instanceMismatch(path: string, cause: unknown): RecipeError {
  return new RecipeError('Mismatch', `the data of ${path} are not an instance of a service: ${messageOf(cause)}`, { cause });
}
