/**
 * Changes of the tree, each applied once and in one txn, whichever process comes first and however
 * often programs start.
 *
 *     /app/migrations
 *       ├─ lock                  1. held by the process that migrates
 *       └─ applied
 *            ├─ 0000000001       {"name":"users","checksum":"9f86..."}
 *            └─ 0000000002       {"name":"orders","checksum":"60303..."}
 *
 *     migrate   read the records, and compare them with the list; none missing: done
 *               1. lock
 *               2. read the records, and compare them, again
 *               3. for each that is missing: multi of its operations, the creation of its record,
 *                  and a check on the lock
 *               4. release
 *
 * The same txn applies the changes and creates the record, under a name that only this migration
 * has. So the record exists if and only if the changes were applied, a second attempt is rejected
 * as a whole, and after a lost reply a check on the record and the lock shows the outcome: both
 * exist only if it was applied.
 */
import { createHash } from 'node:crypto';
import { type Acl, type ClientView, KeeperError, op, type WriteOp } from '@tskeeper/client';
import { checkOps, checkOptions as checkNamedOptions, childPath, valueTypes, optionTypes } from '@tskeeper/client/internal';
import { checkArray, checkArgumentCount, anyValue, checkOptions, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import type { Hold } from '../wait-queue/hold.ts';
import { Lock } from '../locks/lock.ts';
import { RecipeError } from '../recipe-error.ts';
import { runAcrossSessions, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { isUnanswered, retryForever } from '../waiting/own-znode.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';
import type { WaitOptions } from '../wait-options.ts';

/**
 * One change. After it has been applied anywhere, neither it nor the migrations before it in the
 * list may change.
 */
export interface Migration {
  /** For people. */
  readonly name: string;
  /** Applied in one txn, all or none. */
  readonly ops: readonly WriteOp[];
}

/** How migrations are recorded. */
export interface MigrationsOptions {
  /**
   * The ACL of the records, and of their parents if they have to be created. Default: all
   * permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** A migration that was applied. */
export interface AppliedMigration {
  /** Its position in the list, from 1. */
  readonly number: number;
  /** Its name at the time. */
  readonly name: string;
  /** SHA-256 of its operations, in hex. */
  readonly checksum: string;
  /** By the clock of the leader, in ms since 1970. */
  readonly appliedAtMs: number;
}

const migrationTypes = optionTypes({ name: valueTypes.string, ops: anyValue('an array of operations') });

/**
 * Changes of the tree, in their order, each applied once. (Curator's MigrationManager; the records
 * have another format.)
 */
export class Migrations {
  /** The znode above the lock and the records. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #acl: readonly Acl[] | undefined;
  readonly #migrations: readonly (Migration & { readonly checksum: string })[];

  /** Sends no request. Throws a TypeError for an invalid list, and as a `Lock` does. */
  constructor(source: SessionSource, path: string, migrations: readonly Migration[], options: MigrationsOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'Migrations', arguments.length);
    const { acl } = options;
    this.#source = source;
    this.path = path;
    this.#acl = acl;
    checkArray(migrations, 'migrations');
    const seen = new Set<string>();
    this.#migrations = migrations.map((migration, at) => {
      checkOptions(migration, "{ name: 'add the users', ops: [...] }", `migration ${at + 1} of ${path}`);
      checkNamedOptions(migration, migrationTypes, `migrations[${at}]`);
      const { name, ops } = migration;
      if (seen.has(name)) throw new TypeError(`two migrations of ${path} have the name "${name}"; give each another name`);
      seen.add(name);
      checkArray(ops, `the operations of "${name}"`);
      checkOps(ops, 'multi', `migrations[${at}]`);
      if (ops.length === 0) throw new TypeError(`migration ${at + 1} of ${path}, "${name}", has no operations`);
      if (ops.some((each) => each.op === 'create' && each.mode?.startsWith('ephemeral') === true))
        throw new TypeError(
          `migration ${at + 1} of ${path}, "${name}", creates an ephemeral, which would end with the session of the migrating process; use another mode`,
        );
      return { name, ops, checksum: checksumOf(ops) };
    });
  }

  /**
   * The applied migrations, in order. Rejects as `Client.getData` does, except with NoNode, and
   * with a RecipeError, Mismatch, for data that are not a record.
   */
  async applied(options: WaitOptions = {}): Promise<readonly AppliedMigration[]> {
    checkArgumentCount(arguments.length, 1, 'applied(options)');
    using deadline = new Deadline(this.#source, options, `the migrations of ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => this.#readRecords(zk, signal));
  }

  /**
   * Applies the missing migrations, and resolves with their names. Waits for other processes that
   * migrate, and survives lost connections.
   *
   * Rejects with a RecipeError. Mismatch: the applied migrations are not the beginning of the list;
   * nothing is done then. Refused: a server has rejected a migration, with the KeeperError as the
   * `cause`; those before it stay applied. Lost: the session has ended, or the lock was broken; and
   * TimedOut. Rejects with the signal's reason, and as `Lock.acquire` does.
   */
  async migrate(options: WaitOptions = {}): Promise<readonly string[]> {
    checkArgumentCount(arguments.length, 1, 'migrate(options)');
    using deadline = new Deadline(this.#source, options, `the end of the migrations of ${this.path}`);
    const { signal } = deadline;
    const applied: string[] = [];
    try {
      await runAcrossSessions(this.#source, signal, (zk) => this.#migrateInSession(zk, applied, signal));
      return applied;
    } catch (error) {
      if (!isEndOfSession(error)) throw error;
      throw new RecipeError('Lost', `the session ended before the migrations of ${this.path} did`, { cause: error });
    }
  }

  /** Adds to `applied` what it has applied, also if it fails later. */
  async #migrateInSession(zk: ClientView, applied: string[], signal: AbortSignal): Promise<void> {
    if (this.#pendingNumbers(await this.#readRecords(zk, signal)).length === 0) return;
    await zk.ensurePath(this.#recordsPath, { acl: this.#acl, ...retryForever, signal });
    const lock = new Lock(zk, childPath(this.path, 'lock'), { acl: this.#acl });
    await using hold = await lock.acquire({ signal });
    for (const number of this.#pendingNumbers(await this.#readRecords(zk, signal))) {
      await this.#apply(hold, number, signal);
      applied.push(this.#migrations[number - 1]!.name);
    }
  }

  get #recordsPath(): string {
    return childPath(this.path, 'applied');
  }

  /**
   * The numbers of the migrations without a record. Throws when the records are not the beginning
   * of the list.
   */
  #pendingNumbers(applied: readonly AppliedMigration[]): readonly number[] {
    applied.forEach(({ number, name, checksum }, at) => {
      if (number !== at + 1) throw migrationMismatch(`record ${at + 1} of ${this.#recordsPath} is missing, but record ${number} exists`);
      const migration = this.#migrations[at];
      if (migration === undefined)
        throw migrationMismatch(
          `${this.path} has ${applied.length} applied migrations, and this program knows ${this.#migrations.length}: it is too old, or lacks "${name}"`,
        );
      if (migration.checksum !== checksum)
        throw migrationMismatch(
          `migration ${number} of ${this.path} was applied as "${name}" with the checksum ${checksum}, and is "${migration.name}" with ${migration.checksum} in this program: ` +
            'an applied migration must not change; put the change into a new migration',
        );
    });
    return this.#migrations.slice(applied.length).map((_, at) => applied.length + at + 1);
  }

  async #readRecords(zk: ClientView, signal: AbortSignal): Promise<readonly AppliedMigration[]> {
    const names = await this.#recordNames(zk, signal);
    return await Promise.all(names.map((name) => this.#readRecord(zk, name, signal)));
  }

  async #recordNames(zk: ClientView, signal: AbortSignal): Promise<readonly string[]> {
    const found = await undefinedIfNoNode(zk.getChildren(this.#recordsPath, { ...retryForever, signal }));
    return (found?.children ?? []).filter((name) => /^\d{10}$/.test(name)).toSorted();
  }

  async #readRecord(zk: ClientView, record: string, signal: AbortSignal): Promise<AppliedMigration> {
    const path = childPath(this.#recordsPath, record);
    const { data, stat } = await zk.getData(path, { ...retryForever, signal });
    const { name, checksum } = parseRecordData(path, data);
    return { number: Number(record), name, checksum, appliedAtMs: stat.ctime };
  }

  async #apply(hold: Hold, number: number, signal: AbortSignal): Promise<void> {
    const { name, ops, checksum } = this.#migrations[number - 1]!;
    const record = childPath(this.#recordsPath, String(number).padStart(10, '0'));
    const recording = op.create(record, JSON.stringify({ name, checksum }), this.#acl === undefined ? {} : { acl: this.#acl });
    for (;;) {
      try {
        await hold.multi([...ops, recording], { ...retryForever, signal });
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (!KeeperError.is(error)) throw error;
        // Also after a rejection, since an earlier attempt whose reply was lost may have caused it.
        if (await isRecorded(hold, record, signal)) return;
        if (error.outcome !== 'unknown') throw migrationRefused(this.path, number, name, error);
      }
    }
  }
}

/**
 * Whether the record exists. No other process creates one while the lock is held, so this checks
 * both. Rejects when the lock is lost, as the record may then be another process's.
 */
async function isRecorded(hold: Hold, record: string, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    try {
      await hold.multi([op.check(record)], { ...retryForever, signal });
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return false;
      if (!isUnanswered(error)) throw error;
    }
  }
}

function migrationMismatch(message: string): RecipeError {
  return new RecipeError('Mismatch', message);
}

function migrationRefused(path: string, number: number, name: string, cause: KeeperError): RecipeError {
  return new RecipeError('Refused', `migration ${number} of ${path}, "${name}", was not applied: ${cause.message}`, { cause });
}

function parseRecordData(path: string, data: Uint8Array | null): { readonly name: string; readonly checksum: string } {
  try {
    const { name, checksum } = JSON.parse(new TextDecoder().decode(data ?? undefined)) as Record<string, unknown>;
    if (typeof name === 'string' && typeof checksum === 'string') return { name, checksum };
  } catch {
    // As below.
  }
  throw migrationMismatch(`${path} is not a record of a migration; find out which client has written it, and what was applied`);
}

/**
 * The same for the same operations, however they are written: with or without defaults, with data
 * as text or as bytes.
 */
function checksumOf(ops: readonly WriteOp[]): string {
  return createHash('sha256')
    .update(JSON.stringify(ops.map(canonicalParts)))
    .digest('hex');
}

function canonicalParts(each: WriteOp): readonly unknown[] {
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
