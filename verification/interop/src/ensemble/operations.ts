/**
 * The differential stream through a server of an ensemble: its answers must equal those of one
 * ZooKeeper server that is an ensemble by itself, reply by reply and event by event, whichever
 * server leads or forwards requests.
 */
import { counterOf } from '@tskeeper/protocol';

import { runDifferential } from '../differential/differential.ts';
import { type Justification, justifiedDifferences } from '../differential/justified-differences.ts';
import { reportComparison } from '../differential/run.ts';
import type { Report } from '../report.ts';
import { type ProcessEnsemble, type EnsemblePeer } from '@tskeeper/harness';
import { createEnsemble, type InteropOptions } from './ensemble.ts';

/** The configuration names the servers, which differ. */
const otherServers: Justification = {
  id: 'other-servers',
  reason: 'The two ensembles have different servers, and each server writes its configuration itself.',
  explains: ({ text, field }) => text.includes('/zookeeper/config') && /data|stat\.(times|dataLength)/.test(field),
};

export interface OperationsRun {
  readonly name: string;
  readonly ensemble: ProcessEnsemble;
  /** The server that receives the requests. */
  readonly subject: EnsemblePeer;
  readonly seed: number;
  readonly operations: number;
  /** Options of the ensemble, and of the server it is compared with. */
  readonly options: InteropOptions;
}

async function epochText(member: EnsemblePeer): Promise<string> {
  return (await member.status())?.zxid ?? 'none';
}

/** The ensemble must be fresh: both sides start empty and at the same zxid. */
export async function runOperations(run: OperationsRun, report: Report): Promise<void> {
  const { ensemble, subject, seed, operations, options } = run;
  const leader = await ensemble.leader();
  const name = `${run.name}: ${operations} operations through ${subject.name}, led by ${leader.kind}, seed ${seed}`;
  const config = { ...options.config, standaloneEnabled: false };
  const alone = await createEnsemble([{ sid: 1, kind: 'java-3.9.5', role: 'participant' }], { ...options, config });
  try {
    const wanted = await epochText(leader);
    if (counterOf(Number.parseInt(wanted, 16)) !== 0) throw new Error(`the ensemble is not fresh, its zxid is ${wanted}`);
    await alone.launch([1]);
    await alone.untilServing();
    // Each start is an epoch; an ensemble may have needed more than one.
    while ((await epochText(alone.peer(1))) !== wanted) {
      await alone.stop(1);
      await alone.launch([1]);
      await alone.untilServing();
    }
    const everyone = [...alone.peers, ...ensemble.peers];
    const result = await runDifferential({
      portA: alone.peer(1).port,
      portB: subject.port,
      seed,
      operations,
      generator: {
        // ZooKeeper's leader logs a wrong digest for the omitted requests, and every server reports
        // it.
        exactDigests: true,
        ensembleSafe: true,
        withoutSetAcl: leader.kind !== 'ours',
        readableBy38: ensemble.peers.some(({ kind }) => kind === 'java-3.8.0'),
      },
      stopWhen: () => everyone.some(({ isUp }) => !isUp),
    });
    for (const member of everyone)
      if (!member.isUp) throw new Error(`${member.name} ended during the run:\n${(await member.log()).slice(-20).join('\n')}`);
    reportComparison(
      { name, result, operations, rules: [...justifiedDifferences, otherServers], a: 'java-3.9.5 alone', b: subject.name },
      report,
    );
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await alone[Symbol.asyncDispose]();
  }
}
