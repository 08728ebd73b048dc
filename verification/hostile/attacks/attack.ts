/** An attack: its servers, the content of their tree, and the action against them. */
import type { Operation } from '@tskeeper/simulator';
import { openToAll } from '../../processes/honest-client.ts';
import type { ProcessEnsemble, EnsemblePeer } from '@tskeeper/harness';
import type { RowOptions } from '../ensemble.ts';
import type { Figure } from '../report.ts';
import { Attacker } from './attacker.ts';

export interface AttackSetup {
  readonly ensemble: ProcessEnsemble;
  /** The leader, or the only server. */
  readonly leader: EnsemblePeer;
  /** The server of the ordinary clients and of the attackers: a follower if there is one. */
  readonly target: EnsemblePeer;
}

export interface Attack {
  readonly name: string;
  /** What the attack does, in a line for the table of README.md. */
  readonly servers: 1 | 3;
  /** Quick to prepare and to run: part of the bounded form. */
  readonly isBounded?: boolean;
  /** Its limits in addition to those of every attack. */
  readonly limit?: string;
  readonly options?: Pick<RowOptions, 'config' | 'openFilesMax'>;
  /** Runs before memory is measured and the honest clients start. */
  readonly prepare?: (site: AttackSetup) => Promise<void>;
  /** Runs until the signal is aborted; returns further figures. */
  readonly run: (site: AttackSetup, signal: AbortSignal) => Promise<readonly Figure[] | void>;
}

const atOnce = 4;

/** An attack without its preparation would prove nothing. */
async function expectSucceeded(attacker: Attacker, what: string): Promise<void> {
  if (!(await attacker.untilAnswered())) throw new Error(`${what} was not answered`);
  if (attacker.lastError !== 0) throw new Error(`${what} was answered ${attacker.lastError}`);
}

/** Creates `count` children below `parent`, in multis. */
export async function createChildren(port: number, parent: string, count: number, data = '', perMulti = 1000): Promise<void> {
  const attacker = await Attacker.connect(port);
  await attacker.send({ kind: 'create', path: parent, data: '', acl: openToAll, flags: 0 });
  for (let from = 0; from < count; from += perMulti) {
    const steps = Array.from({ length: Math.min(perMulti, count - from) }, (_, index) => ({
      kind: 'create' as const,
      path: `${parent}/${(from + index).toString(36)}`,
      data,
      acl: openToAll,
      flags: 0,
    }));
    await attacker.send({ kind: 'multi', steps });
    if ((from / perMulti) % atOnce === 0 && !(await attacker.untilAnswered()))
      throw new Error(`creating children of ${parent} was not answered`);
  }
  if (!(await attacker.untilAnswered())) throw new Error(`creating children of ${parent} was not answered`);
  attacker.destroy();
}

export async function createOne(port: number, operation: Operation): Promise<void> {
  const attacker = await Attacker.connect(port);
  await attacker.send(operation);
  await expectSucceeded(attacker, operation.kind);
  attacker.destroy();
}
