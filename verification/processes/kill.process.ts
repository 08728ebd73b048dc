/** Every acknowledged write is there after SIGKILL, once. */
import { describe, expect, it } from 'vitest';
import { runKills } from './kill.ts';
import { inFolder, kind, startToKill } from './servers.ts';

const kills = Number(process.env['TSKEEPER_KILLS'] ?? 50);
const seed = Number(process.env['TSKEEPER_SEED'] ?? 1);

describe(`killing ${kind}`, () => {
  it(`loses and repeats no write over ${kills} kills, and resumes sessions`, async () => {
    const report = await inFolder((folder) => runKills({ start: () => startToKill(folder), kills, clients: 6, seed }));
    console.log(JSON.stringify({ ...report, wrong: report.wrong.length }));
    expect(report.wrong).toEqual([]);
    expect(report.acknowledged).toBeGreaterThan(kills * 10);
    // Every client resumes its session after every kill during which it was connected.
    expect(report.reattached).toBeGreaterThan(kills * 3);
  });

  it('fails the run when a write that never happened counts as acknowledged', async () => {
    const forge = (acknowledged: Map<string, string>) => void acknowledged.set('w0:9999999', '/kill/queue/q-0000000000');
    const report = await inFolder((folder) => runKills({ start: () => startToKill(folder), kills: 1, clients: 2, seed, forge }));
    expect(report.wrong).toHaveLength(1);
  });
});
