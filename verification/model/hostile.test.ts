/** No frame may harm the server or another client. */
import { coreDefaults, Server, silentObserver, standaloneSequencer } from '@tskeeper/core';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../test/breadth.ts';
import { runHostile } from './hostile.ts';
import type { MakeCore } from './in-process.ts';

const makeCore: MakeCore = (settings, out, random, now) =>
  new Server({ ...coreDefaults, ...settings }, out, random, silentObserver, now, standaloneSequencer(out));

/** `npm run proofs` sets 50: a million frames. */
const runs = Number(process.env['TSKEEPER_HOSTILE_RUNS'] ?? breadth(1, 3));
const framesPerRun = breadth(4000, 20_000);
/**
 * A run leaves a tree of some hundred znodes, a few thousand sessions, and garbage that is not
 * collected yet.
 */
const grownBytesMax = 200 * 1024 * 1024;

describe('a core among hostile clients', () => {
  it('throws no error, retains no memory, and serves an honest client as if it were alone', () => {
    for (let seed = 1; seed <= runs; seed++) {
      const report = runHostile({ makeCore, seed, frames: framesPerRun });
      expect(report.violation).toBeUndefined();
      expect(report.honestReplies).toBeGreaterThan(breadth(100, 500));
      expect(report.grownBytes).toBeLessThan(grownBytesMax);
    }
  });

  it('detects a single wrong version in what the honest client reads', () => {
    const report = runHostile({
      makeCore,
      seed: 1,
      frames: 2000,
      tamper: (message) => {
        const stat = message.kind === 'reply' ? message.body?.stat : undefined;
        return stat?.version === 3 && message.kind === 'reply'
          ? { ...message, body: { ...message.body, stat: { ...stat, version: 4 } } }
          : message;
      },
    });
    expect(report.violation).toMatch(/expected/);
  });
});
