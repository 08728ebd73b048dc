/**
 * A rolling swap: the servers of an ensemble are replaced one after the other by servers of another
 * kind, with the same folders and ports, as an operator would do it, while clients write; and back
 * again.
 */
import type { ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { compareLogs, compareServers } from './agreement.ts';
import { createEnsemble } from './ensemble.ts';
import { Load } from './load.ts';
import { checkSweeps } from './pairs.ts';

const writers = 3;
/** Writes of each writer between two steps. */
const writesBetween = 40;

/**
 * From the first kind to each of the others in turn. `files: 'dynamic'`: with reconfigEnabled, so that
 * each server finds its zoo.cfg as its predecessor has rewritten it.
 */
export async function runRollingSwap(
  kinds: readonly ServerKind[],
  end: 'stop' | 'kill',
  files: 'static' | 'dynamic',
  report: Report,
): Promise<void> {
  const [first, ...then] = kinds;
  const sids = [1, 2, 3];
  const ensemble = await createEnsemble(
    sids.map((sid) => ({ sid, kind: first!, role: 'participant' as const })),
    {
      properties: { 'znode.container.checkIntervalMs': 300 },
      ...(files === 'dynamic' && { config: { reconfigEnabled: true }, firstMembers: sids }),
    },
  );
  const evidence = (): Promise<string> => ensemble.evidence();
  const load = new Load(() => sids.map((sid) => ensemble.peer(sid).port), writers);
  const name = `rolling swap, ${kinds.join(' to ')}, by ${end}, ${files} files`;
  try {
    await ensemble.launch(sids);
    await ensemble.untilServing();
    load.begin();
    await load.untilProgress(writesBetween, evidence);
    for (const kind of then) {
      // The leader comes last, so that there is one election and not up to three.
      const leader = await ensemble.leader();
      for (const sid of [...sids.filter((each) => each !== leader.sid), leader.sid]) {
        const before = ensemble.peer(sid).kind;
        await (end === 'stop' ? ensemble.stop(sid) : ensemble.kill(sid));
        await ensemble.launch([sid], { kind });
        await ensemble.untilServing();
        await load.untilProgress(writesBetween, evidence);
        report.pass(`${name}: server ${sid}, ${before} to ${kind}`);
        const next = ensemble.peer((sid % sids.length) + 1);
        await checkSweeps({ ensemble, from: ensemble.peer(sid), to: next });
        report.pass(`${name}: what was created at server ${sid} (${kind}) is deleted by the leader, ${(await ensemble.leader()).kind}`);
      }
      await load.stop();
      const { differences, znodes, zxid } = await compareServers(ensemble);
      if (differences.length > 0) report.fail(`${name}: all are ${kind}`, `\n    ${differences.join('\n    ')}`);
      else report.pass(`${name}: all are ${kind}, with equal data (${znodes} znodes at ${zxid})`);
      load.begin();
    }
    await load.stop();
    const { acknowledged, reconnects, violations } = await load.verify((await ensemble.leader()).port);
    if (violations.length > 0) report.fail(name, `\n    ${violations.slice(0, 20).join('\n    ')}`);
    else
      report.pass(
        `${name}: ${acknowledged} writes acknowledged, none lost, none applied twice, no session lost (${reconnects} reconnects)`,
      );
    const logs = await compareLogs(ensemble);
    if (logs.differences.length > 0) report.fail(`${name}: the logs`, `\n    ${logs.differences.join('\n    ')}`);
    else report.pass(`${name}: ${logs.compared} txns are the same bytes in the logs of more than one server`);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await load.stop();
    await ensemble[Symbol.asyncDispose]();
  }
}
