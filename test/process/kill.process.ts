/** What was acknowledged is there after SIGKILL, once. */
import { describe, expect, it } from 'vitest';
import { runKills } from './kill.ts';
import { inFolder, kind, startToKill } from './servers.ts';

const kills = Number(process.env['TSKEEPER_KILLS'] ?? 50);
const seed = Number(process.env['TSKEEPER_SEED'] ?? 1);

describe(`killing ${kind}`, () => {
  it(`loses and repeats nothing over ${kills} kills, and takes sessions up again`, async () => {
    const report = await inFolder((folder) => runKills({ start: () => startToKill(folder), kills, clients: 6, seed }));
    console.log(JSON.stringify({ ...report, wrong: report.wrong.length }));
    expect(report.wrong).toEqual([]);
    expect(report.acknowledged).toBeGreaterThan(kills * 10);
    // Every client comes back with its session after every kill it was connected for.
    expect(report.reattached).toBeGreaterThan(kills * 3);
  });

  it('turns red when a write that never was is said to have been acknowledged', async () => {
    const forge = (acknowledged: Map<string, string>) => void acknowledged.set('w0:9999999', '/kill/queue/q-0000000000');
    const report = await inFolder((folder) => runKills({ start: () => startToKill(folder), kills: 1, clients: 2, seed, forge }));
    expect(report.wrong).toHaveLength(1);
  });
});
