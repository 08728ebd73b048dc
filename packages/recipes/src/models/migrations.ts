/**
 * Changes of what stands in the tree, each made once and in one txn, whoever comes first with it and however often programs begin.
 *
 *     /app/migrations
 *       ├─ lock                  1. held by the one who migrates
 *       └─ applied
 *            ├─ 0000000001       {"name":"users","checksum":"9f86..."}
 *            └─ 0000000002       {"name":"orders","checksum":"60303..."}
 *
 *     migrate   read the records, and compare them with the list; nothing is missing: done
 *               1. lock
 *               2. read the records, and compare them, again
 *               3. for each that is missing: multi of its operations, the creation of its record, and a check on the lock
 *               4. release
 *
 * The record is made in the same txn as the changes, under a name that only this migration has. So it is there if and only if they were made, a second time is
 * refused as a whole, and a lost answer is found out by a look at the record and the lock, both of which are there only if it was carried out.
 */
import { createHash } from 'node:crypto';
import { type Acl, type ClientView, KeeperError, op, type WriteOp } from '@tskeeper/client';
import { checkOps, checkOptions as checkNamedOptions, childPath, kinds, optionKinds } from '@tskeeper/client/internal';
import { checkArray, checkCount, checkedElsewhere, checkOptions, checkPlace, checkSettings } from '../given.ts';
import type { Held } from '../line/held.ts';
import { Lock } from '../locks/lock.ts';
import { RecipeError } from '../recipe-error.ts';
import { inSessions, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { unlessGone } from '../waiting/unless-gone.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** One change. Once it has been applied anywhere, neither it nor what stands ahead of it in the list may change. */
export interface Migration {
  /** For people. */
  readonly name: string;
  /** Carried out in one txn, all or none. */
  readonly ops: readonly WriteOp[];
}

/** How migrations are recorded. */
export interface MigrationsOptions {
  /** Of the records, and of what stands above them, if it has to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** A migration that was applied. */
export interface AppliedMigration {
  /** Of the list, from 1. */
  readonly number: number;
  /** As it was called then. */
  readonly name: string;
  /** SHA-256 of its operations, in hex. */
  readonly checksum: string;
  /** By the clock of the leader, in ms since 1970. */
  readonly appliedAtMs: number;
}

const migrationKinds = optionKinds({ name: kinds.string, ops: checkedElsewhere('an array of operations') });

/** Changes of what stands in the tree, in their order, each made once. (Curator's MigrationManager; the records of the two are of different form.) */
export class Migrations {
  /** Of the znode that the lock and the records are below. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #acl: readonly Acl[] | undefined;
  readonly #list: readonly (Migration & { readonly checksum: string })[];

  /** Nothing is asked of a server yet. Throws a TypeError for a list that makes no sense, and as a `Lock` does. */
  constructor(source: SessionSource, path: string, list: readonly Migration[], options: MigrationsOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Migrations', arguments.length);
    const { acl } = options;
    this.#source = source;
    this.path = path;
    this.#acl = acl;
    checkArray(list, 'migrations are');
    const seen = new Set<string>();
    this.#list = list.map((migration, at) => {
      checkOptions(migration, "{ name: 'add the users', ops: [...] }", `migration ${at + 1} of ${path} is`);
      checkNamedOptions(migration, migrationKinds, `migrations[${at}]`);
      const { name, ops } = migration;
      if (seen.has(name)) throw new TypeError(`two migrations of ${path} are called "${name}"; give each a name of its own`);
      seen.add(name);
      checkArray(ops, `the operations of "${name}" are`);
      checkOps(ops, 'multi', `migrations[${at}]`);
      if (ops.length === 0) throw new TypeError(`migration ${at + 1} of ${path}, "${name}", has no operations`);
      if (ops.some((each) => each.op === 'create' && each.mode?.startsWith('ephemeral') === true))
        throw new TypeError(`migration ${at + 1} of ${path}, "${name}", makes an ephemeral, which goes with the session of who migrates`);
      return { name, ops, checksum: checksumOf(ops) };
    });
  }

  /** What was applied, in order. Rejects as `Client.getData` does, but for NoNode, and with a RecipeError, Mismatch, for a record that is none. */
  async applied(options: WaitOptions = {}): Promise<readonly AppliedMigration[]> {
    checkCount(arguments.length, 1, 'applied(options)');
    using limit = new Limit(this.#source, options, `the migrations of ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => this.#read(zk, signal));
  }

  /**
   * Applies what has not been applied yet, and resolves with the names of that. Waits for others who migrate, and survives lost connections.
   *
   * Rejects with a RecipeError. Mismatch: what was applied is not what the list begins with; nothing is done then. Refused: a server has refused a
   * migration, with the KeeperError as the `cause`; those ahead of it stay applied. Lost: the session has ended, or the lock was broken; and TimedOut. Rejects with the
   * signal's reason, and as `Lock.acquire` does.
   */
  async migrate(options: WaitOptions = {}): Promise<readonly string[]> {
    checkCount(arguments.length, 1, 'migrate(options)');
    using limit = new Limit(this.#source, options, `the end of the migrations of ${this.path}`);
    const { signal } = limit;
    const applied: string[] = [];
    try {
      await inSessions(this.#source, signal, (zk) => this.#migrate(zk, applied, signal));
      return applied;
    } catch (error) {
      if (!isEndOfSession(error)) throw error;
      throw new RecipeError('Lost', `the session has ended ahead of the end of the migrations of ${this.path}`, { cause: error });
    }
  }

  /** Notes down in `applied` what it has applied, also when it fails then. */
  async #migrate(zk: ClientView, applied: string[], signal: AbortSignal): Promise<void> {
    if (this.#missing(await this.#read(zk, signal)).length === 0) return;
    await zk.ensurePath(this.#records, { acl: this.#acl, ...untilTheEnd, signal });
    const lock = new Lock(zk, childPath(this.path, 'lock'), { acl: this.#acl });
    await using held = await lock.acquire({ signal });
    for (const number of this.#missing(await this.#read(zk, signal))) {
      await this.#apply(held, number, signal);
      applied.push(this.#list[number - 1]!.name);
    }
  }

  get #records(): string {
    return childPath(this.path, 'applied');
  }

  /** Numbers of those that have no record. Throws when the records are not the beginning of the list. */
  #missing(applied: readonly AppliedMigration[]): readonly number[] {
    applied.forEach(({ number, name, checksum }, at) => {
      if (number !== at + 1) throw mismatch(`record ${at + 1} of ${this.#records} is missing, and ${number} is there`);
      const own = this.#list[at];
      if (own === undefined)
        throw mismatch(
          `${this.path} has had ${applied.length} migrations, and this program knows ${this.#list.length}: it is older than what it finds, or has lost "${name}"`,
        );
      if (own.checksum !== checksum)
        throw mismatch(
          `migration ${number} of ${this.path} was applied as "${name}" with the checksum ${checksum}, and is "${own.name}" with ${own.checksum} in this program: ` +
            'what was applied must not change; put the change into a new migration',
        );
    });
    return this.#list.slice(applied.length).map((_, at) => applied.length + at + 1);
  }

  async #read(zk: ClientView, signal: AbortSignal): Promise<readonly AppliedMigration[]> {
    const names = await this.#names(zk, signal);
    return await Promise.all(names.map((name) => this.#readRecord(zk, name, signal)));
  }

  async #names(zk: ClientView, signal: AbortSignal): Promise<readonly string[]> {
    const found = await unlessGone(zk.getChildren(this.#records, { ...untilTheEnd, signal }));
    return (found?.children ?? []).filter((name) => /^\d{10}$/.test(name)).toSorted();
  }

  async #readRecord(zk: ClientView, record: string, signal: AbortSignal): Promise<AppliedMigration> {
    const path = childPath(this.#records, record);
    const { data, stat } = await zk.getData(path, { ...untilTheEnd, signal });
    const { name, checksum } = recordOf(path, data);
    return { number: Number(record), name, checksum, appliedAtMs: stat.ctime };
  }

  async #apply(held: Held, number: number, signal: AbortSignal): Promise<void> {
    const { name, ops, checksum } = this.#list[number - 1]!;
    const record = childPath(this.#records, String(number).padStart(10, '0'));
    const recording = op.create(record, JSON.stringify({ name, checksum }), this.#acl === undefined ? {} : { acl: this.#acl });
    for (;;) {
      try {
        await held.multi([...ops, recording], { ...untilTheEnd, signal });
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (!KeeperError.is(error)) throw error;
        // Also behind a refusal, since that may be the doing of an attempt whose answer was lost.
        if (await isOurs(held, record, signal)) return;
        if (error.outcome !== 'unknown') throw refused(this.path, number, name, error);
      }
    }
  }
}

/** Whether the record is there: nobody else makes one as long as the lock is held, so both are asked for. Rejects when it is lost, as it may be another's then. */
async function isOurs(held: Held, record: string, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    try {
      await held.multi([op.check(record)], { ...untilTheEnd, signal });
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return false;
      if (!isUnanswered(error)) throw error;
    }
  }
}

function mismatch(message: string): RecipeError {
  return new RecipeError('Mismatch', message);
}

function refused(path: string, number: number, name: string, cause: KeeperError): RecipeError {
  return new RecipeError('Refused', `migration ${number} of ${path}, "${name}", was not applied: ${cause.message}`, { cause });
}

function recordOf(path: string, data: Uint8Array | null): { readonly name: string; readonly checksum: string } {
  try {
    const { name, checksum } = JSON.parse(new TextDecoder().decode(data ?? undefined)) as Record<string, unknown>;
    if (typeof name === 'string' && typeof checksum === 'string') return { name, checksum };
  } catch {
    // As below.
  }
  throw mismatch(`${path} is not a record of a migration; only its writer can say what was applied`);
}

/** The same for the same operations, however they are written down: defaults left out or not, data as text or as bytes. */
function checksumOf(ops: readonly WriteOp[]): string {
  return createHash('sha256')
    .update(JSON.stringify(ops.map(partsOf)))
    .digest('hex');
}

function partsOf(each: WriteOp): readonly unknown[] {
  switch (each.op) {
    case 'create':
      return [each.op, each.path, base64(each.data ?? null), each.mode ?? 'persistent', each.ttlMs ?? null, aclParts(each.acl)];
    case 'setData':
      return [each.op, each.path, base64(each.data), each.version ?? -1];
    case 'delete':
    case 'check':
      return [each.op, each.path, each.version ?? -1];
    default:
      return each satisfies never;
  }
}

function base64(data: Uint8Array | string | null): string | null {
  return data === null ? null : Buffer.from(data as string).toString('base64');
}

function aclParts(acl: readonly Acl[] | undefined): readonly unknown[] | null {
  return acl === undefined ? null : acl.map(({ perms, id }) => [perms, id.scheme, id.id]);
}
