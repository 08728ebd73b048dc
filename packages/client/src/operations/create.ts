/** The settings of a create, and which of ZooKeeper's create requests encodes them. */
import {
  type Acl,
  CreateMode as Flags,
  ErrorCode,
  type Millis,
  OpCode,
  openAcl,
  pathError,
  writeCreateRequest,
  writeCreateTTLRequest,
  type Writer,
} from '@tskeeper/protocol';
import { RequestFailure } from '../keeper-error.ts';

/** The mode of a znode with a TTL. Names as in ZooKeeper's CreateMode (ZOOKEEPER-2169). */
export type TtlCreateMode = 'persistentWithTtl' | 'persistentSequentialWithTtl';

/**
 * The lifetime of a znode, and whether its name gets a number. Names as in ZooKeeper's CreateMode.
 */
export type CreateMode = 'persistent' | 'ephemeral' | 'persistentSequential' | 'ephemeralSequential' | 'container' | TtlCreateMode;

/** Bytes, text (sent as UTF-8), or no data. */
export type Data = Uint8Array | string | null;

/** The settings of a znode without a TTL. */
export interface PlainCreateSettings {
  /** Permissions. Default: every client may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /** Default: `persistent`. */
  readonly mode?: Exclude<CreateMode, TtlCreateMode> | undefined;
  /** Only for the modes with a TTL. Default: none. */
  readonly ttlMs?: undefined;
}

/**
 * The settings of a znode that servers delete after it has had neither changes nor children for
 * `ttlMs`.
 */
export interface TtlCreateSettings {
  /** Permissions. Default: every client may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * Requires `extendedTypesEnabled` on the servers; otherwise the create fails with Unimplemented.
   */
  readonly mode: TtlCreateMode;
  /** Time without changes and children after which servers delete it, in ms: 1 to 2^40 - 1. */
  readonly ttlMs: Millis;
}

/** The settings of a create. */
export type CreateSettings = PlainCreateSettings | TtlCreateSettings;

export function toBytes(data: Data | undefined): Uint8Array | null {
  if (data === undefined || data === null) return null;
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  if (data instanceof Uint8Array) return data;
  throw new TypeError(`data must be a Uint8Array, a string or null, not ${typeof data}`);
}

/**
 * Validates a path in the client, as servers do not validate all paths, and answer NoNode for some
 * that cannot exist.
 */
export function checkPath(path: string): void {
  const fault = typeof path === 'string' ? pathError(path) : `must be a string, not ${typeof path}`;
  if (fault !== undefined) throw new RequestFailure(ErrorCode.BadArguments, 'notSent', `a path ${fault}`);
}

/** The server appends a number to the path of a sequential znode, so it may end with a slash. */
export function checkCreatePath(path: string, mode: CreateMode): void {
  checkPath(isSequential(mode) ? `${path}1` : path);
}

export function isSequential(mode: CreateMode): boolean {
  return mode === 'persistentSequential' || mode === 'ephemeralSequential' || mode === 'persistentSequentialWithTtl';
}

function hasTtl(mode: CreateMode): boolean {
  return mode === 'persistentWithTtl' || mode === 'persistentSequentialWithTtl';
}

export const ttlMsMax = 2 ** 40 - 1;

export interface CreateRequest {
  readonly opCode: typeof OpCode.create2 | typeof OpCode.createContainer | typeof OpCode.createTTL;
  write(writer: Writer): void;
}

/**
 * The request of a create; `path` is the server's path. Throws a RequestFailure or a TypeError for
 * invalid settings.
 */
export function createRequest(path: string, data: Data | undefined, settings: CreateSettings): CreateRequest {
  const mode = settings.mode ?? 'persistent';
  if (!Object.hasOwn(Flags, mode)) throw new TypeError(`unknown create mode "${mode}"; use one of ${Object.keys(Flags).join(', ')}`);
  const flags: number = Flags[mode];
  const bytes = toBytes(data);
  const acl = settings.acl ?? openAcl;
  const { ttlMs } = settings;
  const request = { path, data: bytes, acl, flags };
  if (!hasTtl(mode)) {
    if (ttlMs !== undefined) throw new RequestFailure(ErrorCode.BadArguments, 'notSent', `the mode ${mode} does not take a ttlMs`);
    const opCode = mode === 'container' ? OpCode.createContainer : OpCode.create2;
    return { opCode, write: (writer) => writeCreateRequest(writer, request) };
  }
  if (ttlMs === undefined || !Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > ttlMsMax) {
    throw new RequestFailure(ErrorCode.BadArguments, 'notSent', `the mode ${mode} requires a ttlMs from 1 to ${ttlMsMax}`);
  }
  return { opCode: OpCode.createTTL, write: (writer) => writeCreateTTLRequest(writer, { ...request, ttl: ttlMs }) };
}
