/** What a create asks for, and which of ZooKeeper's create requests says it. */
import {
  type Acl,
  CreateMode as Flags,
  ErrorCode,
  type Millis,
  OpCode,
  openAcl,
  pathFault,
  writeCreateRequest,
  writeCreateTTLRequest,
  type Writer,
} from '@tskeeper/protocol';
import { Refusal } from '../keeper-error.ts';

/** How a znode with a TTL is named. The words are those of ZooKeeper's CreateMode (ZOOKEEPER-2169). */
export type TtlCreateMode = 'persistentWithTtl' | 'persistentSequentialWithTtl';

/** How a znode lives and is named. The words are those of ZooKeeper's CreateMode. */
export type CreateMode = 'persistent' | 'ephemeral' | 'persistentSequential' | 'ephemeralSequential' | 'container' | TtlCreateMode;

/** Bytes, text that becomes UTF-8, or nothing at all. */
export type Data = Uint8Array | string | null;

/** How to make a znode that has no TTL. */
export interface PlainCreateSettings {
  /** Who may do what. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /** How it lives and is named. Default: `persistent`. */
  readonly mode?: Exclude<CreateMode, TtlCreateMode> | undefined;
  /** Only for the modes with a TTL. Default: none. */
  readonly ttlMs?: undefined;
}

/** How to make a znode that goes by itself: once it has had neither changes nor children for `ttlMs`. */
export interface TtlCreateSettings {
  /** Who may do what. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /** How it is named. Needs `extendedTypesEnabled` on the servers, else the create fails with Unimplemented. */
  readonly mode: TtlCreateMode;
  /** How long it lives without changes and children, in ms: 1 .. 2^40 - 1. */
  readonly ttlMs: Millis;
}

/** How to make a znode. */
export type CreateSettings = PlainCreateSettings | TtlCreateSettings;

export function toBytes(data: Data | undefined): Uint8Array | null {
  if (data === undefined || data === null) return null;
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  if (data instanceof Uint8Array) return data;
  throw new TypeError(`data is a Uint8Array, a string or null, not ${typeof data}`);
}

/** A path that no server would take. Found here, since servers do not judge all paths, and answer NoNode for some that cannot exist. */
export function checkPath(path: string): void {
  const fault = typeof path === 'string' ? pathFault(path) : `is a string, not ${typeof path}`;
  if (fault !== undefined) throw new Refusal(ErrorCode.BadArguments, 'notSent', `a path ${fault}`);
}

/** The path of a sequential znode gets its number from the server, so it may end where a name would begin. */
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

export interface CreateForm {
  readonly opCode: typeof OpCode.create2 | typeof OpCode.createContainer | typeof OpCode.createTTL;
  write(writer: Writer): void;
}

/** The request for a create whose path the server knows as `path`. Throws a Refusal or a TypeError for what cannot be asked. */
export function createForm(path: string, data: Data | undefined, settings: CreateSettings): CreateForm {
  const mode = settings.mode ?? 'persistent';
  if (!Object.hasOwn(Flags, mode)) throw new TypeError(`there is no create mode "${mode}"; modes are ${Object.keys(Flags).join(', ')}`);
  const flags: number = Flags[mode];
  const bytes = toBytes(data);
  const acl = settings.acl ?? openAcl;
  const { ttlMs } = settings;
  const request = { path, data: bytes, acl, flags };
  if (!hasTtl(mode)) {
    if (ttlMs !== undefined) throw new Refusal(ErrorCode.BadArguments, 'notSent', `a znode of mode ${mode} has no TTL`);
    const opCode = mode === 'container' ? OpCode.createContainer : OpCode.create2;
    return { opCode, write: (writer) => writeCreateRequest(writer, request) };
  }
  if (ttlMs === undefined || !Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > ttlMsMax) {
    throw new Refusal(ErrorCode.BadArguments, 'notSent', `a znode of mode ${mode} needs a ttlMs from 1 to ${ttlMsMax}`);
  }
  return { opCode: OpCode.createTTL, write: (writer) => writeCreateTTLRequest(writer, { ...request, ttl: ttlMs }) };
}
