/**
 * The client library on the virtual wire: the same session machine, the same promises. What it
 * reports to its caller is recorded beside what came over the wire, so that checkers can compare
 * the two.
 */
import {
  type Client,
  connect,
  type CreateMode as CreateModeName,
  type CreateSettings,
  KeeperError,
  op,
  type ReadOp,
  type WatchListener,
  type WriteOp,
} from '@tskeeper/client';
import {
  type Acl,
  type AddWatchRequest,
  AddWatchMode,
  type AuthRequest,
  type CheckWatchesRequest,
  type ChildrenPageRequest,
  CreateMode,
  type CreateRequest,
  type CreateTTLRequest,
  type DeleteRequest,
  EventType,
  type GetDataRequest,
  type GetEphemeralsRequest,
  type Millis,
  type MultiOp,
  type MultiRequest,
  OpCode,
  type SessionId,
  type SetACLRequest,
  type SetDataRequest,
  WatcherType,
} from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { ClientDelivery } from '../record/recording.ts';
import { writeKey } from '../record/write-key.ts';
import type { Actor, ClientRequest } from './actor.ts';
import { type ClientMachine, type ClientWorld, serverPort } from './client-world.ts';
import type { SaslLogin } from './sasl-login.ts';
import { WireTransport } from './wire-transport.ts';

export interface LibraryClientOptions {
  readonly name: string;
  readonly address: string;
  readonly timeoutMs: Millis;
  readonly credentials?: string | undefined;
  readonly sasl?: SaslLogin | undefined;
  /** Whether it accepts a server in read-only mode. */
  readonly acceptsReadOnly?: boolean | undefined;
  /** Whether it uses the servers of the ensemble's configuration. */
  readonly followsConfig?: boolean | undefined;
}

/** Calls that are not a single request, or of a kind that the library also makes by itself. */
const notComparedOperations: ReadonlySet<string> = new Set([
  'removeWatches',
  'closeSession',
  'auth',
  'getChildrenPage',
  'getChildrenDataPage',
]);
const modeNames = new Map(Object.entries(CreateMode).map(([name, flags]) => [flags as number, name as CreateModeName]));
const watcherTypes = new Map(Object.entries(WatcherType).map(([name, type]) => [type as number, name as keyof typeof WatcherType]));
const eventTypes: Readonly<Record<string, number>> = {
  NodeCreated: EventType.nodeCreated,
  NodeDeleted: EventType.nodeDeleted,
  NodeDataChanged: EventType.nodeDataChanged,
  NodeChildrenChanged: EventType.nodeChildrenChanged,
};

export class LibraryClient implements Actor {
  readonly name: string;
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #options: LibraryClientOptions;
  readonly #network: ClientMachine;
  readonly #transport: WireTransport;
  /** The listener of all watches that it sets; it counts events. */
  readonly #listener: WatchListener = () => {
    this.deliveredEventCount++;
  };
  #client: Client | undefined;
  #outstanding = 0;
  #isAbandoned = false;
  /** Number of events that listeners received. */
  deliveredEventCount = 0;
  /** Sessions that ended without its request. */
  readonly lostSessions: SessionId[] = [];

  constructor(world: ClientWorld, random: SeededRandom, options: LibraryClientOptions) {
    this.name = options.name;
    this.#world = world;
    this.#random = random;
    this.#options = options;
    this.#network = world.clientNetwork(options.name, options.address);
    this.#transport = new WireTransport(this.#network);
    world.recording.libraryClients.add(options.name);
    void this.#connect();
  }

  get ready(): boolean {
    return this.#client?.state === 'connected';
  }

  get acceptsRequests(): boolean {
    return this.#client !== undefined && this.#client.endReason === undefined;
  }

  get outstandingCount(): number {
    return this.#outstanding;
  }

  get session(): SessionId {
    return this.#client?.sessionId ?? 0n;
  }

  get wire(): VirtualCnxn | undefined {
    const { stream } = this.#transport;
    return stream === undefined ? undefined : this.#network.wireOf(stream);
  }

  /** Each server, at each port where it may accept clients. */
  #servers(): string {
    return this.#world.servers
      .flatMap(({ name, clientPorts = [serverPort] }) => clientPorts.toSorted((a, b) => a - b).map((port) => `${name}:${port}`))
      .join(',');
  }

  /**
   * A client that follows the configuration and was away while all servers moved knows none of them:
   * its program gives it the list anew.
   */
  updateServerList(): void {
    if (this.#options.followsConfig === true && !this.ready) this.#client?.updateServerList(this.#servers());
  }

  async #connect(): Promise<void> {
    if (this.#isAbandoned) return;
    const { timeoutMs, credentials, sasl, acceptsReadOnly = false, followsConfig = false } = this.#options;
    const world = this.#world;
    const servers = this.#servers();
    const auth = credentials === undefined ? [] : [{ scheme: 'digest', auth: credentials }];
    try {
      const client = await connect(servers, {
        sessionTimeoutMs: timeoutMs,
        connectTimeoutMs: Infinity,
        readOnly: acceptsReadOnly,
        followConfig: followsConfig,
        auth,
        ...(sasl !== undefined && { sasl: { mechanism: 'DIGEST-MD5' as const, ...sasl } }),
        transport: this.#transport,
        clock: world.clock,
        random: this.#random,
      });
      this.#client = client;
      client.on('event', ({ type, path, zxid }) => this.#recordDelivery('event', `${eventTypes[type]} ${path} ${zxid}`));
      client.on('state', () => {
        if (client.endReason !== undefined) this.#onSessionEnded(client);
      });
    } catch (error) {
      // The session may end before the client knows that it has one.
      if (KeeperError.is(error, 'SessionExpired')) this.#scheduleReconnect();
      else world.recording.violations.push(`${this.name} failed to connect: ${String(error)}`);
    }
  }

  #recordDelivery(kind: ClientDelivery['kind'], text: string, key?: string): void {
    this.#world.recording.clientDeliveries.push({ client: this.name, atMs: this.#world.clock.elapsedMs, kind, text, key });
  }

  /** Its session has ended. Like a program, it starts another. */
  #onSessionEnded(client: Client): void {
    if (this.#client !== client) return;
    if (client.endReason !== 'closed') this.lostSessions.push(client.sessionId);
    if (client.endReason === 'expired') this.#recordDelivery('expired', `${client.sessionId}`);
    this.#client = undefined;
    const { clock } = this.#world;
    // Not in this turn: calls that failed with the session are reported after its end.
    clock.at(clock.elapsedMs + 1, 'over', undefined, () => this.#recordDelivery('closed', `${this.#outstanding}`));
    this.#scheduleReconnect();
  }

  #scheduleReconnect(): void {
    const { clock } = this.#world;
    clock.at(clock.elapsedMs + 2 + this.#random.below(60), 'begin anew', undefined, () => void this.#connect());
  }

  submit(ask: ClientRequest): void {
    const client = this.#client;
    if (client === undefined) return;
    const call = this.#call(client, ask);
    if (call === undefined) return;
    this.#outstanding++;
    const settled = (outcome: string) => {
      this.#outstanding--;
      if (!notComparedOperations.has(ask.name)) this.#recordDelivery('reply', outcome, writeKey(ask.record));
    };
    call.then(
      (value) => settled(ask.name === 'exists' && value === null ? 'NoNode' : 'Ok'),
      (error: unknown) => {
        if (!(error instanceof KeeperError))
          this.#world.recording.violations.push(`${this.name}: ${ask.name} failed with ${String(error)}`);
        else settled(error.outcome === 'refused' ? error.code : error.outcome);
      },
    );
  }

  /** The library's call for this request; undefined if there is none. */
  #call(client: Client, { name, record }: ClientRequest): Promise<unknown> | undefined {
    const watch = (record as Partial<GetDataRequest> | undefined)?.watch === true ? { watch: this.#listener } : {};
    const { path } = (record ?? {}) as { readonly path: string };
    switch (name) {
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL':
        return client.create(path, (record as CreateRequest).data, createSettings(record as CreateTTLRequest));
      case 'delete':
        return client.delete(path, { version: (record as DeleteRequest).version });
      case 'setData':
        return client.setData(path, (record as SetDataRequest).data, { version: (record as SetDataRequest).version });
      case 'setACL':
        return client.setACL(path, (record as SetACLRequest).acl as readonly Acl[], { version: (record as SetACLRequest).version });
      case 'getData':
        return client.getData(path, watch);
      case 'exists':
        return client.exists(path, watch);
      case 'getChildren':
      case 'getChildren2':
        return client.getChildren(path, watch);
      case 'getChildrenPage':
      case 'getChildrenDataPage':
        return this.#list(client, record as ChildrenPageRequest, name === 'getChildrenDataPage', watch);
      case 'getACL':
        return client.getACL(path);
      case 'sync':
        return client.sync(path);
      case 'getAllChildrenNumber':
        return client.getAllChildrenNumber(path);
      case 'getEphemerals':
        return client.getEphemerals((record as GetEphemeralsRequest).prefixPath ?? '/');
      case 'whoAmI':
        return client.whoAmI();
      case 'multi':
        return (record as MultiRequest).ops.some(isKeeperOp) ? undefined : client.multi((record as MultiRequest).ops.map(writeOf));
      case 'multiRead':
        return client.multiRead((record as MultiRequest).ops.map(readOf));
      case 'addWatch': {
        const mode = (record as AddWatchRequest).mode === AddWatchMode.persistent ? 'persistent' : 'persistentRecursive';
        return client.addWatch(path, { mode, watch: this.#listener });
      }
      case 'removeWatches': {
        const type = watcherTypes.get((record as CheckWatchesRequest).type)!;
        return client.removeWatches(path, { type });
      }
      case 'auth':
        return client.addAuth((record as AuthRequest).scheme!, (record as AuthRequest).auth!);
      case 'closeSession':
        return client.close();
      default:
        return undefined;
    }
  }

  /** All pages, beginning with the first. */
  async #list(
    client: Client,
    { path, countMax }: ChildrenPageRequest,
    data: boolean,
    watch: { readonly watch?: WatchListener },
  ): Promise<void> {
    const fromZxid = Number(client.lastZxid);
    const fromMs = this.#world.clock.elapsedMs;
    const names: string[] = [];
    for await (const { name } of client.children(path, { pageSize: Math.max(1, countMax), data, retry: true, ...watch })) names.push(name);
    const toZxid = Number(client.lastZxid);
    this.#world.recording.listings.push({ client: this.name, path, fromZxid, toZxid, fromMs, toMs: this.#world.clock.elapsedMs, names });
  }

  reset(): void {
    this.wire?.forward.resetAfter(0);
  }

  halfClose(): void {
    this.reset();
  }

  /** The link to the server goes dead, so that the client has to connect to another. */
  redial(): void {
    const { wire } = this;
    wire?.forward.cut();
    wire?.backward.cut();
  }

  goOffline(ms: Millis): void {
    const links = this.#world.servers.map(({ name }) => this.#world.link(this.name, name));
    for (const link of links) link.cut();
    const { clock } = this.#world;
    clock.at(clock.elapsedMs + ms, 'awake', undefined, () => {
      for (const link of links) link.heal();
    });
  }

  /** Its program has ended: nothing more is sent or received. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#network.unplug();
  }
}

function createSettings({ flags, acl, ttl }: Pick<CreateTTLRequest, 'flags' | 'acl'> & { readonly ttl?: Millis }): CreateSettings {
  // A request with a TTL mode always has a TTL.
  return { mode: modeNames.get(flags)!, acl: acl as readonly Acl[], ...(ttl !== undefined && { ttlMs: ttl }) } as CreateSettings;
}

/** The library has no operation of ClickHouse Keeper. */
function isKeeperOp({ kind }: MultiOp): boolean {
  return OpCode[kind] >= OpCode.filteredList && OpCode[kind] <= OpCode.listRecursive;
}

function writeOf(each: MultiOp): WriteOp {
  switch (each.kind) {
    case 'create':
    case 'create2':
    case 'createContainer':
    case 'createTTL':
      return op.create(each.path!, each.data, createSettings(each));
    case 'delete':
      return op.delete(each.path!, { version: each.version });
    case 'check':
      return op.check(each.path!, { version: each.version });
    case 'setData':
      return op.setData(each.path!, each.data, { version: each.version });
    default:
      throw new Error(`a ${each.kind} cannot be part of a multi`);
  }
}

function readOf(each: MultiOp): ReadOp {
  if (each.kind === 'getData') return op.getData(each.path);
  if (each.kind === 'getChildren') return op.getChildren(each.path);
  throw new Error(`a ${each.kind} cannot be part of a multiRead`);
}
