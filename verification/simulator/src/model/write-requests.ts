/**
 * The requests that change one znode, alone or as a step of a multi. Each is validated completely
 * before it is applied. The order of the checks is ZooKeeper's: it decides which error a client
 * receives if there are several.
 */
import { CreateMode, ErrorCode, OpCode, Perms } from '@tskeeper/protocol';
import type { AccessRules } from './access-rules.ts';
import type { Admitted } from './admitted-request.ts';
import type { ModelOptions } from './model-options.ts';
import { byteCount, type ModelTree, type Owner, statOf } from './model-tree.ts';
import type { Data, MultiResult, Operation, Path, Stat, WriteStep } from './operation-types.ts';
import type { Outbox } from './outbox.ts';
import type { QuotaRule } from './quota-rule.ts';
import { quotaRoot } from './quotas.ts';
import { Refusal, requirePath, requireValidPath, requireVersion } from './refusal.ts';
import type { Watches } from './watches.ts';
import { isValidPath, parentOf } from './znode-path.ts';

const reservedPaths: ReadonlySet<string> = new Set(['/', '/zookeeper', quotaRoot, '/zookeeper/config']);
const ttlMaxMs = 2 ** 40 - 1;

/** `%010d`: at least ten digits; a minus sign counts as one. */
/** Below it servers record how far sequential znodes have been counted. */
const sequencesRoot = '/zookeeper/sequences';

function formatCounter(counter: number): string {
  return counter < 0 ? `-${String(-counter).padStart(9, '0')}` : String(counter).padStart(10, '0');
}

export class WriteRequests {
  readonly #extendedTypesEnabled: boolean;
  readonly #tree: ModelTree;
  readonly #access: AccessRules;
  readonly #quotaRule: QuotaRule;
  readonly #watches: Watches;
  readonly #outbox: Outbox;
  readonly #isLocal: (session: bigint) => boolean;

  constructor(
    { extendedTypesEnabled }: Pick<ModelOptions, 'extendedTypesEnabled'>,
    tree: ModelTree,
    access: AccessRules,
    quotaRule: QuotaRule,
    watches: Watches,
    outbox: Outbox,
    isLocal: (session: bigint) => boolean,
  ) {
    this.#extendedTypesEnabled = extendedTypesEnabled;
    this.#isLocal = isLocal;
    this.#outbox = outbox;
    this.#tree = tree;
    this.#access = access;
    this.#quotaRule = quotaRule;
    this.#watches = watches;
  }

  perform(step: WriteStep, request: Admitted): MultiResult {
    const err = ErrorCode.Ok;
    switch (step.kind) {
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL': {
        const { path, stat } = this.#create(step, request);
        if (step.kind === 'create') return { type: OpCode.create, err, body: { path } };
        return { type: OpCode.create2, err, body: { path, stat } };
      }
      case 'delete':
        this.#delete(step.path, step.version, request);
        return { type: OpCode.delete, err };
      case 'setData':
        return { type: OpCode.setData, err, body: { stat: this.#setData(step, request) } };
      case 'check': {
        const znode = this.#tree.require(requireValidPath(step.path));
        this.#access.requirePermission(znode.acl, Perms.read, request.identities);
        requireVersion(step.version, znode.version);
        return { type: OpCode.check, err };
      }
      case 'createIfNotExists':
        return { type: OpCode.createIfNotExists, err, body: { path: this.#createIfNotExists(step, request) } };
      case 'tryRemove':
        this.#tryRemove(step.path, step.version, request);
        return { type: OpCode.tryRemove, err };
      case 'removeRecursive':
        this.#removeRecursive(step.path, step.limit, request);
        return { type: OpCode.removeRecursive, err };
      case 'checkNotExists': {
        const znode = this.#tree.get(requireValidPath(step.path));
        if (znode !== undefined) {
          this.#access.requirePermission(znode.acl, Perms.read, request.identities);
          if (step.version === -1 || step.version === znode.version) throw new Refusal(ErrorCode.NodeExists);
        }
        return { type: OpCode.checkNotExists, err };
      }
      case 'checkStat': {
        const znode = this.#tree.require(requireValidPath(step.path));
        this.#access.requirePermission(znode.acl, Perms.read, request.identities);
        requireVersion(step.version, znode.version);
        const actual = statOf(znode);
        for (const [field, expected] of Object.entries(step.stat) as [keyof Stat, number | bigint][]) {
          if (expected !== -1 && expected !== -1n && expected !== actual[field]) throw new Refusal(ErrorCode.BadVersion);
        }
        return { type: OpCode.checkStat, err };
      }
      default:
        step satisfies never;
        throw new Error('unknown step');
    }
  }

  /** Returns the path, whether or not it was there. */
  #createIfNotExists(step: Extract<WriteStep, { kind: 'createIfNotExists' }>, request: Admitted): string {
    if (step.flags !== CreateMode.persistent && step.flags !== CreateMode.ephemeral) throw new Refusal(ErrorCode.BadArguments);
    try {
      return this.#create({ ...step, kind: 'create' }, request).path;
    } catch (error) {
      if (error instanceof Refusal && error.code === ErrorCode.NodeExists) return step.path!;
      throw error;
    }
  }

  #tryRemove(path: Path, version: number, request: Admitted): void {
    const harmless: readonly number[] = [ErrorCode.NoNode, ErrorCode.BadVersion, ErrorCode.NotEmpty];
    try {
      this.#delete(path, version, request);
    } catch (error) {
      if (!(error instanceof Refusal && harmless.includes(error.code))) throw error;
    }
  }

  #removeRecursive(wanted: Path, limit: number, request: Admitted): void {
    const path = requirePath(wanted);
    if (!isValidPath(path) || reservedPaths.has(path)) throw new Refusal(ErrorCode.BadArguments);
    const parent = this.#tree.get(parentOf(path));
    if (parent === undefined) return;
    this.#access.requirePermission(parent.acl, Perms.delete, request.identities);
    if (!this.#tree.has(path)) return;
    const removed = [...this.#tree.entries()].filter(([each]) => each === path || each.startsWith(`${path}/`));
    if (removed.length > limit) throw new Refusal(ErrorCode.NotEmpty);
    for (const [, { acl }] of removed) this.#access.requirePermission(acl, Perms.delete, request.identities);
    const depthOf = (each: string): number => each.split('/').length;
    const deepestFirst = removed.map(([each]) => each).toSorted((one, other) => depthOf(other) - depthOf(one));
    // The order within a level is not defined.
    this.#outbox.inAnyOrder(() => {
      for (const each of deepestFirst) this.remove(each);
    });
  }

  #create(step: Extract<WriteStep, { flags: number }>, request: Admitted): { path: string; stat: Stat } {
    const { flags } = step;
    if (flags < 0 || flags > 6) throw new Refusal(ErrorCode.BadArguments);
    const ttlMode = flags === CreateMode.persistentWithTtl || flags === CreateMode.persistentSequentialWithTtl;
    if (ttlMode && !this.#extendedTypesEnabled) throw new Refusal(ErrorCode.Unimplemented);
    // Only createTTL has a ttl. Java accepts one with a negative ttl and another mode, and fails
    // when it applies it.
    const ttl = step.kind === 'createTTL' ? step.ttl : -1;
    const ttlFits = ttlMode ? ttl > 0 && ttl <= ttlMaxMs : step.kind !== 'createTTL';
    if (!ttlFits) throw new Refusal(ErrorCode.BadArguments);
    const ephemeral = flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
    // ZooKeeper considers only create and create2 when it makes a session global.
    if (ephemeral && this.#isLocal(request.session))
      throw new Refusal(step.kind === 'createContainer' ? ErrorCode.SessionExpired : ErrorCode.EphemeralOnLocalSession);
    const wanted = requirePath(step.path);
    if (!wanted.includes('/') || wanted.includes('\0')) throw new Refusal(ErrorCode.BadArguments);
    const acl = this.#access.effectiveAcl(step.acl, request.identities);
    const parent = this.#tree.require(parentOf(wanted));
    this.#access.requirePermission(parent.acl, Perms.create, request.identities);
    const sequential =
      flags === CreateMode.persistentSequential ||
      flags === CreateMode.ephemeralSequential ||
      flags === CreateMode.persistentSequentialWithTtl;
    const path = sequential ? wanted + formatCounter(parent.creates) : wanted;
    if (!isValidPath(path)) throw new Refusal(ErrorCode.BadArguments);
    if (path === sequencesRoot) throw new Refusal(ErrorCode.NoAuth);
    if (this.#tree.has(path)) throw new Refusal(ErrorCode.NodeExists);
    if (parent.owner.kind === 'ephemeral') throw new Refusal(ErrorCode.NoChildrenForEphemerals);
    this.#quotaRule.require(path, byteCount(step.data), 1);

    // The opcode alone makes a container or a TTL znode, whatever the flags.
    const owner: Owner =
      step.kind === 'createContainer'
        ? { kind: 'container' }
        : step.kind === 'createTTL'
          ? { kind: 'ttl', ttl }
          : ephemeral
            ? { kind: 'ephemeral', session: request.session }
            : { kind: 'persistent' };
    const stat = this.#tree.add({ path, data: step.data, acl, owner, wallMs: request.wallMs });
    this.#watches.created(path, acl);
    return { path, stat };
  }

  #delete(wanted: Path, version: number, request: Admitted): void {
    const path = requirePath(wanted);
    if (!path.includes('/') || path.includes('\0') || reservedPaths.has(path)) throw new Refusal(ErrorCode.BadArguments);
    this.#access.requirePermission(this.#tree.require(parentOf(path)).acl, Perms.delete, request.identities);
    const znode = this.#tree.require(path);
    requireVersion(version, znode.version);
    if (znode.children.size > 0) throw new Refusal(ErrorCode.NotEmpty);
    this.remove(path);
  }

  #setData(step: Extract<WriteStep, { kind: 'setData' }>, request: Admitted): Stat {
    const path = requireValidPath(step.path);
    const znode = this.#tree.require(path);
    this.#access.requirePermission(znode.acl, Perms.write, request.identities);
    this.#quotaRule.require(path, byteCount(step.data) - byteCount(znode.data), 0);
    requireVersion(step.version, znode.version);
    const stat = this.#tree.setData(path, step.data, request.wallMs);
    this.#watches.dataChanged(path, znode.acl);
    return stat;
  }

  setAcl(operation: Extract<Operation, { kind: 'setACL' }>, request: Admitted): Stat {
    const path = requireValidPath(operation.path);
    const acl = this.#access.effectiveAcl(operation.acl, request.identities);
    const znode = this.#tree.require(path);
    this.#access.requirePermission(znode.acl, Perms.admin, request.identities);
    requireVersion(operation.version, znode.aversion);
    return this.#tree.setAcl(path, acl);
  }

  deleteContainer(wanted: Path): void {
    const path = requirePath(wanted);
    const err = this.#containerDeleteError(path);
    if (err !== ErrorCode.Ok) throw new Refusal(err);
    this.remove(path);
  }

  /** The server's own deleteContainer: a refusal goes to no client. */
  maybeSweep(path: string): void {
    if (this.#containerDeleteError(path) === ErrorCode.Ok) this.remove(path);
  }

  /** The server's own record of the number that the children of a znode have reached. */
  recordSequence(path: string, data: Data, wallMs: number): void {
    const acl = [{ perms: Perms.read, scheme: 'world', id: 'anyone' }];
    if (!this.#tree.has(path)) {
      this.#tree.add({ path, data, acl, owner: { kind: 'persistent' }, wallMs });
      this.#watches.created(path, acl);
    } else {
      this.#tree.setData(path, data, wallMs);
      this.#watches.dataChanged(path, acl);
    }
  }

  #containerDeleteError(path: string): number {
    if (!path.includes('/') || path.includes('\0') || reservedPaths.has(path)) return ErrorCode.BadArguments;
    const znode = this.#tree.get(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (znode.children.size > 0) return ErrorCode.NotEmpty;
    return znode.owner.kind === 'ephemeral' ? ErrorCode.BadVersion : ErrorCode.Ok;
  }

  /** Removes a znode without any check, and sends the events. */
  remove(path: string): void {
    const { acl } = this.#tree.get(path)!;
    this.#tree.remove(path);
    this.#watches.deleted(path, acl);
  }
}
