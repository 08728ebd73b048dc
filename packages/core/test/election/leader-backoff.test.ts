/** With a tick of 2 s and an initLimit of 10 ticks. */
import { describe, expect, it } from 'vitest';
import { LeaderBackoff } from '../../src/election/leader-backoff.ts';
import type { Fingerprint } from '../../src/fingerprint.ts';

class Bench {
  readonly attempts = new LeaderBackoff({ tickTimeMs: 2000, initLimitTicks: 10 });
  #nowMs = 5000;

  /** Returns the backoff of the leader. */
  failAfter(ms: number, leader: number, wasRefused = false): number {
    this.attempts.attemptStarted({ elapsedMs: this.#nowMs, wallMs: 0 });
    this.#nowMs += ms;
    return this.attempts.attemptFailed(leader, { elapsedMs: this.#nowMs, wallMs: 0 }, wasRefused);
  }

  get fingerprint(): number[] {
    const numbers: number[] = [];
    const to: Fingerprint = { number: (value) => void numbers.push(value), text: () => undefined };
    this.attempts.fingerprint(to);
    return numbers;
  }
}

describe('a leader with failed attempts', () => {
  it('has no backoff after one short attempt: it may just have failed', () => {
    expect(new Bench().failAfter(1999, 3)).toBe(0);
  });

  it('has a backoff at once after a long attempt', () => {
    expect(new Bench().failAfter(2000, 3)).toBe(4000);
  });

  it('has no backoff after one refused attempt, however long: it can be reached, and does not lead yet', () => {
    const bench = new Bench();
    expect([bench.failAfter(2000, 3, true), bench.failAfter(2000, 3, true)]).toEqual([0, 4000]);
  });

  it('has a longer backoff each time, up to initLimit', () => {
    const bench = new Bench();
    expect(Array.from({ length: 6 }, () => bench.failAfter(10, 3))).toEqual([0, 4000, 8000, 16_000, 20_000, 20_000]);
  });

  it('has a backoff of at least the length of the attempt', () => {
    expect(new Bench().failAfter(15_000, 3)).toBe(15_000);
  });

  it('is not elected again before all others with failed attempts have had another chance', () => {
    const bench = new Bench();
    bench.failAfter(20_000, 3);
    expect(bench.failAfter(20_000, 2)).toBe(50_000);
    expect(bench.failAfter(20_000, 1)).toBe(70_000);
  });

  it('has its failures counted separately from those of others', () => {
    const bench = new Bench();
    bench.failAfter(10, 3);
    expect(bench.failAfter(10, 2)).toBe(0);
  });

  it('is dialled after a pause from the second attempt on, which grows to a quarter of a tick', () => {
    const bench = new Bench();
    const pauses: number[] = [];
    for (let times = 0; times < 9; times++) {
      pauses.push(bench.attempts.dialDelayMs(3));
      bench.failAfter(10, 3);
    }
    expect(pauses).toEqual([0, 0, 10, 20, 40, 80, 160, 320, 500]);
    expect(bench.attempts.dialDelayMs(2)).toBe(0);
  });

  it('has no failures left after a success', () => {
    const bench = new Bench();
    for (let times = 0; times < 5; times++) bench.failAfter(10, 3);
    bench.attempts.clear();
    expect([bench.attempts.dialDelayMs(3), bench.failAfter(10, 3)]).toEqual([0, 0]);
  });
});

it('two histories of the same failures in different order have the same fingerprint', () => {
  const [one, other] = [new Bench(), new Bench()];
  for (const leader of [3, 1, 3]) one.failAfter(10, leader);
  for (const leader of [1, 3, 3]) other.failAfter(20, leader);
  expect(one.fingerprint).toEqual([1, 1, 3, 2]);
  expect(other.fingerprint).toEqual(one.fingerprint);
});
