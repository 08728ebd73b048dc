/**
 * Changes of a tree that programs contain, more with each release: the first process makes them,
 * and older programs find that they are too old.
 */
import { type Client, op, type WriteOp } from '@tskeeper/client';
import { Lock, Migrations, type Migration, RecipeError } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { maybeFreeze, drawWaitOptions } from './work-under-hold.ts';
import { deleteAsOperator, storePath } from './family-helpers.ts';
import { checkMigrations, type MigrateCall } from './migration-rules.ts';

export const migrations: Family = {
  description: 'processes make the changes of a tree that are missing',
  marks: [
    'a change of the tree was made',
    'several changes of the tree were made',
    'no change of the tree was missing',
    'a program met a newer schema',
    'an operator broke the migration lock',
    'gave up: Lost',
  ],
  drawRun: (random) => new MigrationRun(random),
};

const folder = '/migrations';
const lockPath = `${folder}/lock`;
/** A migrating process reads the records of all changes. */
const listMax = 30;

class MigrationRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  /** The changes of the latest release. */
  readonly #list: Migration[] = [];
  readonly #calls: MigrateCall[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(400);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    maybeFreeze(process, 16);
    for (let news = process.below(3); news > 0 && this.#list.length < listMax; news--) this.#list.push(newMigration(this.#list.length + 1));
    const own = this.#list.slice(0, this.#list.length - (process.below(8) === 0 ? process.below(2) : 0));
    const run: MigrateCall = {
      process: process.name,
      session: zk.sessionId,
      known: own.length,
      made: [],
      result: 'open',
      seenZxid: undefined,
    };
    this.#calls.push(run);
    try {
      run.made = await new Migrations(zk, folder, own).migrate(drawWaitOptions(process));
      run.result = 'up to date';
      process.hitMark(
        ['no change of the tree was missing', 'a change of the tree was made'][run.made.length] ?? 'several changes of the tree were made',
      );
    } catch (error) {
      if (!(error instanceof RecipeError)) throw error;
      if (error.code === 'Refused') process.reportViolation(error.message);
      if (error.code !== 'Mismatch') throw error;
      run.result = 'too old';
      process.hitMark('a program met a newer schema');
    } finally {
      run.seenZxid = zk.lastZxid;
    }
    return true;
  }

  /** The lock is held seldom and briefly. */
  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    for (let looks = operator.below(80); looks > 0; looks--) {
      const [first] = await new Lock(zk, lockPath).contenders();
      if (first !== undefined) {
        operator.hitMark('an operator broke the migration lock');
        await deleteAsOperator(zk, first.path);
        return;
      }
      await operator.sleep(5);
    }
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    return (await new Lock(zk, lockPath).contenders()).map(({ path }) => path);
  }

  check({ history }: Evidence): readonly string[] {
    return checkMigrations(this.#calls, { folder, storePath }, history);
  }
}

/** Its writes can be repeated: only the record says that it was made. */
function newMigration(number: number): Migration {
  const name = `change-${number}`;
  const ops: WriteOp[] = [op.setData(storePath, name)];
  if (number % 3 === 0) ops.push(op.create(`${storePath}/${name}-`, name, { mode: 'persistentSequential' }));
  return { name, ops };
}
