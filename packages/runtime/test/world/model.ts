/**
 * What a tree of znodes must do, said as plainly as possible: a map from paths to objects. It shares no code with the server, takes
 * requests as clients make them, and knows nothing of logs, connections or watches.
 */
import {
  CreateMode,
  type CreateRequest,
  type DeleteRequest,
  ErrorCode,
  EventType,
  type Millis,
  type MultiOp,
  type MultiResult,
  type SessionId,
  type SetDataRequest,
  type Stat,
  type Zxid,
} from '@tskeeper/protocol';

export interface ModelZnode {
  data: Buffer | null;
  owner: SessionId;
  version: number;
  /** Creates below it. */
  creates: number;
  czxid: Zxid;
  mzxid: Zxid;
  pzxid: Zxid;
  ctime: Millis;
  mtime: Millis;
  children: Set<string>;
}

/** Something watchers are told of. */
export interface Change {
  readonly zxid: Zxid;
  readonly path: string;
  readonly type: number;
  /** One of several of its txn that have no order among themselves. */
  readonly unordered: boolean;
}

/** What a request must be answered with: an error, or a record. */
export interface Answer {
  readonly err: number;
  readonly body?: unknown;
}

export class Model {
  #znodes = new Map<string, ModelZnode>();
  readonly changes: Change[] = [];
  #zxid: Zxid = 0;
  #time: Millis = 0;
  #session: SessionId = 0n;

  constructor() {
    for (const path of ['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota']) {
      this.#znodes.set(path, znode(Buffer.alloc(0)));
    }
    this.#znodes.get('/')!.children.add('zookeeper');
    this.#znodes.get('/zookeeper')!.children = new Set(['config', 'quota']);
  }

  /** The txn that the next writes belong to. */
  begin(zxid: Zxid, time: Millis, session: SessionId): void {
    this.#zxid = zxid;
    this.#time = time;
    this.#session = session;
  }

  get paths(): Iterable<string> {
    return this.#znodes.keys();
  }

  znode(path: string): ModelZnode | undefined {
    return this.#znodes.get(path);
  }

  /** Puts something there that no request has made. */
  plant(path: string, planted: Partial<ModelZnode>): void {
    this.#znodes.set(path, { ...znode(null), ...planted });
    if (path !== '/') this.#znodes.get(parentOf(path))!.children.add(nameOf(path));
  }

  stat(path: string): Stat {
    const { czxid, mzxid, pzxid, ctime, mtime, version, creates, owner, data, children } = this.#znodes.get(path)!;
    return {
      czxid,
      mzxid,
      ctime,
      mtime,
      version,
      cversion: (creates * 2 - children.size) | 0,
      aversion: path === '/zookeeper/config' ? -1 : 0,
      ephemeralOwner: owner,
      dataLength: data?.length ?? 0,
      numChildren: children.size,
      pzxid,
    };
  }

  create(request: CreateRequest): Answer & { readonly path?: string } {
    const asked = request.path!;
    const parent = this.#znodes.get(parentOf(asked));
    if (parent === undefined) return { err: ErrorCode.NoNode };
    const { flags } = request;
    const isSequential = flags === CreateMode.persistentSequential || flags === CreateMode.ephemeralSequential;
    const path = isSequential ? asked + counterText(parent.creates) : asked;
    if (this.#znodes.has(path)) return { err: ErrorCode.NodeExists };
    if (parent.owner !== 0n) return { err: ErrorCode.NoChildrenForEphemerals };
    const isEphemeral = flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
    const fresh = znode(request.data === null ? null : Buffer.from(request.data));
    fresh.owner = isEphemeral ? this.#session : 0n;
    fresh.czxid = fresh.mzxid = fresh.pzxid = this.#zxid;
    fresh.ctime = fresh.mtime = this.#time;
    this.#znodes.set(path, fresh);
    parent.children.add(nameOf(path));
    parent.creates = (parent.creates + 1) | 0;
    parent.pzxid = this.#zxid;
    this.#changed(path, EventType.nodeCreated);
    return { err: ErrorCode.Ok, path };
  }

  delete({ path, version }: DeleteRequest): Answer {
    const found = this.#znodes.get(path!);
    if (found === undefined) return { err: ErrorCode.NoNode };
    if (version !== -1 && version !== found.version) return { err: ErrorCode.BadVersion };
    if (found.children.size > 0) return { err: ErrorCode.NotEmpty };
    this.#remove(path!);
    return { err: ErrorCode.Ok };
  }

  setData({ path, data, version }: SetDataRequest): Answer {
    const found = this.#znodes.get(path!);
    if (found === undefined) return { err: ErrorCode.NoNode };
    if (version !== -1 && version !== found.version) return { err: ErrorCode.BadVersion };
    found.data = data === null ? null : Buffer.from(data);
    found.version = (found.version + 1) | 0;
    found.mzxid = this.#zxid;
    found.mtime = this.#time;
    this.#changed(path!, EventType.nodeDataChanged);
    return { err: ErrorCode.Ok };
  }

  check({ path, version }: DeleteRequest): Answer {
    const found = this.#znodes.get(path!);
    if (found === undefined) return { err: ErrorCode.NoNode };
    return { err: version !== -1 && version !== found.version ? ErrorCode.BadVersion : ErrorCode.Ok };
  }

  /** All of it or nothing. */
  multi(ops: readonly MultiOp[]): readonly MultiResult[] {
    const before = this.#copy();
    const { length } = this.changes;
    const results: MultiResult[] = [];
    for (const [index, op] of ops.entries()) {
      const { err, result } = this.#part(op);
      if (err !== ErrorCode.Ok) {
        this.#znodes = before;
        this.changes.length = length;
        return ops.map((_, at) => ({
          kind: 'error',
          err: at < index ? ErrorCode.Ok : at === index ? err : ErrorCode.RuntimeInconsistency,
        }));
      }
      results.push(result!);
    }
    return results;
  }

  #part(op: MultiOp): { readonly err: number; readonly result?: MultiResult } {
    switch (op.kind) {
      case 'create':
      case 'create2': {
        const { err, path } = this.create(op);
        if (err !== ErrorCode.Ok) return { err };
        return {
          err,
          result: op.kind === 'create' ? { kind: 'create', path: path! } : { kind: 'create2', path: path!, stat: this.stat(path!) },
        };
      }
      case 'delete':
        return { ...this.delete(op), result: { kind: 'delete' } };
      case 'check':
        return { ...this.check(op), result: { kind: 'check' } };
      case 'setData': {
        const { err } = this.setData(op);
        return err === ErrorCode.Ok ? { err, result: { kind: 'setData', stat: this.stat(op.path!) } } : { err };
      }
      default:
        throw new Error(`the model does not know ${op.kind}`);
    }
  }

  /** The end of a session; its ephemerals go, in the order in which they are listed, or in any order when they are not. */
  closeSession(session: SessionId, order: readonly string[] | null): string[] {
    const owned = [...this.#znodes].filter(([, { owner }]) => owner === session).map(([path]) => path);
    for (const path of order ?? []) if (owned.includes(path)) this.#remove(path);
    for (const path of owned) if (this.#znodes.has(path)) this.#remove(path, true);
    return owned;
  }

  #remove(path: string, unordered = false): void {
    this.#znodes.delete(path);
    const parent = this.#znodes.get(parentOf(path))!;
    parent.children.delete(nameOf(path));
    parent.pzxid = this.#zxid;
    this.#changed(path, EventType.nodeDeleted, unordered);
  }

  #changed(path: string, type: number, unordered = false): void {
    this.changes.push({ zxid: this.#zxid, path, type, unordered });
  }

  #copy(): Map<string, ModelZnode> {
    return new Map(Array.from(this.#znodes, ([path, each]) => [path, { ...each, children: new Set(each.children) }]));
  }
}

function znode(data: Buffer | null): ModelZnode {
  return { data, owner: 0n, version: 0, creates: 0, czxid: 0, mzxid: 0, pzxid: 0, ctime: 0, mtime: 0, children: new Set() };
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Ten digits; a negative number keeps its sign in front of them. */
function counterText(counter: number): string {
  return counter < 0 ? `-${String(-counter).padStart(9, '0')}` : String(counter).padStart(10, '0');
}
