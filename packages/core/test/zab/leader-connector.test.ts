/** With a tick of 2 s, an initLimit of 10 ticks and a syncLimit of 5. */
import { describe, expect, it } from 'vitest';
import { LeaderConnector, type ConnectFailure } from '../../src/zab/leader-connector.ts';

const zab = { tickTimeMs: 2000, initLimitTicks: 10, syncLimitTicks: 5 };

class Bench {
  readonly dials: number[] = [];
  nowMs = 1000;
  readonly connector: LeaderConnector;

  constructor(initialDelayMs = 0, retryDelayMsMax = 100, tickTimeMs = 2000) {
    const options = { zab: { ...zab, tickTimeMs }, retryDelayMsMax, initialDelayMs };
    this.connector = new LeaderConnector(7, options, { dialLeader: (leader) => this.dials.push(this.nowMs - 1000, leader) }, this.now);
  }

  get now() {
    return { elapsedMs: this.nowMs, wallMs: 0 };
  }

  fail(outcome: ConnectFailure = 'refused'): void {
    this.connector.attemptFailed(outcome, this.now);
  }

  /** Wakes it at its deadline. Returns how long that took. */
  wake(): number {
    const waitedMs = this.connector.deadline() - this.nowMs;
    this.nowMs += waitedMs;
    this.connector.wake(this.now);
    return waitedMs;
  }
}

describe('a leader being dialled', () => {
  it('is dialled at once, and then awaited until initLimit', () => {
    const bench = new Bench();
    expect(bench.dials).toEqual([0, 7]);
    expect([bench.wake(), bench.connector.isExhausted, bench.connector.isUnanswered, bench.dials.length]).toEqual([20_000, true, true, 2]);
  });

  it('is dialled after the configured pause', () => {
    const bench = new Bench(30);
    expect(bench.dials).toEqual([]);
    expect([bench.wake(), bench.dials]).toEqual([30, [30, 7]]);
  });

  it('is dialled again after each refusal, later each time, and given up after the eighth', () => {
    const bench = new Bench();
    const waits: number[] = [];
    for (let tries = 1; tries < 8; tries++) {
      bench.fail();
      expect(bench.connector.isExhausted).toBe(false);
      waits.push(bench.wake());
    }
    expect(waits).toEqual([10, 20, 40, 80, 100, 100, 100]);
    bench.fail();
    expect([bench.connector.isExhausted, bench.connector.isUnanswered, bench.dials.length / 2]).toEqual([true, false, 8]);
  });

  it('is not dialled twice at once: nothing happens before the first dial has failed', () => {
    const bench = new Bench();
    bench.nowMs += 19_999;
    bench.connector.wake(bench.now);
    expect([bench.dials.length / 2, bench.connector.isExhausted]).toEqual([1, false]);
  });

  it('is given up at its first failure if that took syncLimit without an answer', () => {
    const bench = new Bench();
    bench.nowMs += 10_000;
    bench.fail('unanswered');
    expect([bench.connector.isExhausted, bench.connector.isUnanswered]).toEqual([true, true]);
  });

  it('is dialled again after a shorter dial without an answer, until all of them have taken syncLimit', () => {
    const bench = new Bench();
    bench.nowMs += 5000;
    bench.fail('unanswered');
    bench.wake();
    bench.fail('refused');
    bench.wake();
    bench.nowMs += 4999;
    bench.fail('unanswered');
    expect([bench.connector.isExhausted, bench.connector.isUnanswered]).toEqual([false, false]);
    bench.wake();
    bench.nowMs += 1;
    bench.fail('unanswered');
    expect([bench.connector.isExhausted, bench.connector.isUnanswered]).toEqual([true, true]);
  });

  it('counts as answering after eight refusals, however short syncLimit is', () => {
    const bench = new Bench(0, 100, 50);
    for (let tries = 1; tries <= 8; tries++) {
      expect(bench.connector.isExhausted).toBe(false);
      bench.nowMs += 5;
      bench.fail();
      if (tries < 8) bench.wake();
    }
    expect(bench.nowMs - 1000).toBeGreaterThanOrEqual(5 * 50);
    expect([bench.connector.isExhausted, bench.connector.isUnanswered]).toEqual([true, false]);
  });

  it('is dialled again after a stream to it was silent for syncLimit, until initLimit', () => {
    const bench = new Bench();
    bench.nowMs += 10_001;
    bench.fail('silent');
    expect(bench.connector.isExhausted).toBe(false);
    bench.wake();
    bench.nowMs += 10_001;
    bench.fail('silent');
    expect([bench.connector.isExhausted, bench.connector.isUnanswered]).toEqual([true, true]);
  });

  it('is not dialled again once it is known to have stopped leading', () => {
    const bench = new Bench();
    bench.fail();
    bench.connector.abandon();
    expect([bench.connector.isExhausted, bench.connector.isUnanswered]).toEqual([true, false]);
  });
});
