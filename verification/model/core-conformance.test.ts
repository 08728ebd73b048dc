/** The production core answers as the model does, and the comparison detects a difference. */
import { coreDefaults, Server, silentObserver, standaloneSequencer } from '@tskeeper/core';
import { assert, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../test/breadth.ts';
import { runStream, type StreamReport } from './core-conformance.ts';
import type { MakeCore } from './in-process.ts';
import { Prng, seedStreams } from './operations.ts';

const makeCore: MakeCore = (settings, out, random, now) =>
  new Server({ ...coreDefaults, ...settings }, out, random, silentObserver, now, standaloneSequencer(out));

function stream(seed: number, length: number): number[] {
  const random = new Prng(seed);
  return Array.from({ length }, () => random.uint32());
}

/** `npm run proofs` sets 260: half a million operations. */
const streams = Number(process.env['TSKEEPER_CONFORMANCE_STREAMS'] ?? breadth(2, 12));
const streamLength = 2000;

describe('the core against the reference model', () => {
  for (const log of ['serial', 'delayed'] as const) {
    it(`answers as the model does when the log is ${log}`, () => {
      let digests = 0;
      for (let seed = 1; seed <= streams / 2; seed++) {
        const report = runStream({ makeCore, seeds: stream(seed, streamLength), log });
        expect(report.divergence, `stream ${seed}`).toBeUndefined();
        digests += report.digests;
      }
      // A stream with many closed connections has few txns, so this is a sum; the small form has
      // one stream, with 14.
      expect(digests / (streams / 2)).toBeGreaterThan(breadth(10, 15));
    });
  }

  it('answers as the model does on short streams of any kind', () => {
    const shortStreams = property(seedStreams(60), (seeds) => {
      expect(runStream({ makeCore, seeds, log: 'delayed' }).divergence).toBeUndefined();
    });
    expect(() => assert(shortStreams, { numRuns: breadth(20, 200), seed: 1 })).not.toThrow();
  });

  it('detects a single wrong zxid in a reply', () => {
    let at = 0;
    const report: StreamReport = runStream({
      makeCore,
      seeds: stream(1, 300),
      log: 'serial',
      tamper: (message) => (message.kind === 'reply' && ++at === 100 ? { ...message, zxid: message.zxid + 1 } : message),
    });
    expect(report.divergence).toMatch(/expected/);
  });
});
