/**
 * The differential stream through a server of an ensemble: what it answers must be what one ZooKeeper server answers that is an ensemble by
 * itself, reply by reply and event by event, whoever leads and whoever passes requests on.
 */
import { counterOf } from '@tskeeper/protocol';

import { runDifferential } from '../differential/differential.ts';
import { type Justification, justified } from '../differential/justified.ts';
import { judge } from '../differential/run.ts';
import type { Report } from '../report.ts';
import { Ensemble, type EnsembleOptions, type Member } from './ensemble.ts';

/** The configuration names the servers, and they are others. */
const otherServers: Justification = {
  id: 'other-servers',
  reason: 'The two ensembles have different servers, and each server writes its configuration itself.',
  explains: ({ text, field }) => text.includes('/zookeeper/config') && /data|stat\.(times|dataLength)/.test(field),
};

export interface OperationsRun {
  readonly name: string;
  readonly ensemble: Ensemble;
  /** Whom the requests are sent to. */
  readonly subject: Member;
  readonly seed: number;
  readonly operations: number;
  /** Of the ensemble, and of the server it is compared with. */
  readonly options: EnsembleOptions;
}

async function epochText(member: Member): Promise<string> {
  return (await member.srvr()).zxid;
}

/** The ensemble must be fresh: both sides begin with nothing, and at the same zxid. */
export async function runOperations(run: OperationsRun, report: Report): Promise<void> {
  const { ensemble, subject, seed, operations, options } = run;
  const leader = await ensemble.leader();
  const name = `${run.name}: ${operations} operations through ${subject.name}, led by ${leader.kind}, seed ${seed}`;
  const config = { ...options.config, standaloneEnabled: false };
  const alone = await Ensemble.create([{ sid: 1, kind: 'java-3.9.5', role: 'participant' }], { ...options, config });
  try {
    const wanted = await epochText(leader);
    if (counterOf(Number.parseInt(wanted, 16)) !== 0) throw new Error(`the ensemble is not fresh, its zxid is ${wanted}`);
    await alone.launch([1]);
    await alone.untilServing();
    // Each start is an epoch; an ensemble may have needed more than one to find itself.
    while ((await epochText(alone.member(1))) !== wanted) {
      await alone.stop(1);
      await alone.launch([1]);
      await alone.untilServing();
    }
    const everyone = [...alone.members, ...ensemble.members];
    const result = await runDifferential({
      portA: alone.member(1).port,
      portB: subject.port,
      seed,
      operations,
      generator: {
        passedOn: true,
        keepsAcls: leader.kind !== 'ours',
        readableBy38: ensemble.members.some(({ kind }) => kind === 'java-3.8.0'),
      },
      stopWhen: () => everyone.some(({ isUp }) => !isUp),
    });
    for (const member of everyone)
      if (!member.isUp) throw new Error(`${member.name} ended in the middle:\n${(await member.log()).slice(-20).join('\n')}`);
    judge({ name, result, operations, rules: [...justified, otherServers], a: 'java-3.9.5 alone', b: subject.name }, report);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await alone.end();
  }
}
