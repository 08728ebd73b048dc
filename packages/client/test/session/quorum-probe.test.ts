import { expect, it } from 'vitest';
import type { DialPlan } from '../../src/session/dial-plan.ts';
import { QuorumProbe } from '../../src/session/quorum-probe.ts';

it('asks another server after at most five seconds, however long there has been no quorum', () => {
  const servers = ['a', 'b', 'c'].map((host) => ({ host, port: 2181 }));
  const asked: string[] = [];
  const plan: Pick<DialPlan, 'nextToProbe'> = { nextToProbe: () => servers[asked.length % servers.length]! };
  const probe = new QuorumProbe(plan as DialPlan, { probe: ({ host }) => void asked.push(host) });
  let nowMs = 0;
  const pauses: number[] = [];
  probe.connected(nowMs);
  for (let turn = 0; turn < 9; turn++) {
    pauses.push(probe.deadlineMs - nowMs);
    nowMs = probe.deadlineMs;
    probe.start(nowMs);
    expect(probe.finish()?.host).toBe(asked.at(-1));
  }
  expect(pauses).toEqual([100, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
  expect(asked.join('')).toBe('abcabcabc');
});
