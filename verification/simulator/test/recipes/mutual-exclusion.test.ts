/**
 * The checker of holds gets a correct history, and histories with one change, in which it must find
 * the change.
 */
import type { Client } from '@tskeeper/client';
import type { HoldState } from '@tskeeper/recipes';
import { describe, expect, test } from 'vitest';
import type { Txn } from '@tskeeper/protocol';
import { ZnodeHistory } from '../../src/recipes/znode-history.ts';
import { MutualExclusionChecker, type HoldHandle, type WaitQueueRules } from '../../src/recipes/mutual-exclusion.ts';
import type { RecipeProcess } from '../../src/recipes/recipe-process.ts';
import { newRecording, type Recording, type Request } from '../../src/record/recording.ts';

const rules: WaitQueueRules = { path: '/line', kinds: ['lock-'], storePath: '/store', goesFirst: () => true };
const limits = {
  tickMs: 200,
  minSessionTimeoutMs: 400,
  maxSessionTimeoutMs: 4000,
  extendedTypesEnabled: true,
  containerMaxNeverUsedIntervalMs: 0,
  txnBytesMax: 1_000_000,
};
const nameOf = (session: number) => `/line/_c_${session}-lock-000000000${session}`;

/** Sessions 1, 2 and 3 contend. A zxid is ten milliseconds. */
class Scene {
  readonly recording: Recording = newRecording(limits);
  readonly holds = new MutualExclusionChecker();
  readonly complaints: string[] = [];
  nowMs = 0;

  txn(zxid: number, session: number, txn: Txn): this {
    const header = { clientHigh: 0, clientLow: session, cxid: 0, zxid, time: 0, type: 0 };
    this.recording.log.push({ atMs: zxid * 10, bytes: 0, logged: { header, txn, digest: undefined } });
    return this;
  }

  joins(zxid: number, session: number): this {
    return this.txn(zxid, session, { kind: 'create', path: nameOf(session), data: null, acl: [], ephemeral: true, parentCVersion: -1 });
  }

  goes(zxid: number, session: number): this {
    return this.txn(zxid, session, { kind: 'delete', path: nameOf(session) });
  }

  writes(zxid: number, session: number, token: number): this {
    return this.txn(zxid, session, { kind: 'setData', path: '/store', data: Buffer.from(`${nameOf(session)} ${token}`), version: 1 });
  }

  /** Returns functions that change the state of the hold and write through it. */
  holdsFrom(
    zxid: number,
    session: number,
    token: number,
    state = 'connected',
  ): { readonly become: (next: HoldState) => void; write(): void } {
    this.nowMs = zxid * 10;
    const process = Object.defineProperty(
      {
        name: `process-${session}`,
        timeoutMs: 1000,
        endedMs: Infinity,
        freezes: [],
        hitMark() {},
        reportViolation: (text: string) => void this.complaints.push(text),
      },
      'nowMs',
      { get: () => this.nowMs },
    ) as unknown as RecipeProcess;
    let listener: (next: HoldState) => void = () => undefined;
    const holding = {
      path: nameOf(session),
      fencingToken: BigInt(token),
      state: 'held',
      onStateChange: (each: typeof listener) => {
        listener = each;
        return () => undefined;
      },
    } as unknown as HoldHandle;
    const zk = { lastZxid: BigInt(zxid), sessionId: BigInt(session), state } as unknown as Client;
    const hold = this.holds.acquired(process, zk, holding, 'lock-');
    return { become: (next) => listener(next), write: () => this.holds.fencedStore.write(hold) };
  }

  watches(zxid: number, session: number, whose: number): this {
    return this.#asks(zxid, session, 'exists', { path: nameOf(whose), watch: true });
  }

  givesUp(zxid: number, session: number, own: number): this {
    return this.#asks(zxid, session, 'delete', { path: nameOf(own), version: -1 });
  }

  #asks(zxid: number, session: number, name: 'exists' | 'delete', record: object): this {
    const request = { session: BigInt(session), name, record, sentMs: zxid * 10 } as unknown as Request;
    this.recording.cnxns.push({ client: `process-${session}`, requests: [request] } as never);
    return this;
  }

  found(by: WaitQueueRules = rules): readonly string[] {
    return [...this.complaints, ...this.holds.check(by, new ZnodeHistory(this.recording), this.recording)];
  }
}

describe('a lock that is held', () => {
  test('by one process after the other, with writes, is correct', () => {
    const scene = new Scene()
      .joins(1, 1)
      .joins(2, 2)
      .joins(3, 3)
      .watches(4, 2, 1)
      .watches(5, 3, 2)
      .writes(6, 1, 1)
      .goes(7, 1)
      .writes(9, 2, 2);
    scene.holdsFrom(4, 1, 1).become('released');
    scene.nowMs = 70;
    scene.holdsFrom(8, 2, 2);
    expect(scene.found()).toEqual([]);
  });

  test('while another process is before the holder is a finding, unless both may hold it', () => {
    const scene = new Scene().joins(1, 1).joins(2, 2).goes(9, 1);
    scene.holdsFrom(8, 2, 2);
    expect(scene.found()).toEqual([expect.stringMatching(/^turn: process-2 acquired at 80.000, at zxid 8/)]);
    expect(scene.found({ ...rules, holdersMax: 2 })).toEqual([]);
    expect(scene.found({ ...rules, goesFirst: () => false })).toEqual([]);
  });

  test('by a token that no txn created is a finding', () => {
    const scene = new Scene().joins(1, 1);
    scene.holdsFrom(4, 1, 7);
    expect(scene.found()).toEqual(['turn: process-1 holds /line/_c_1-lock-0000000001 by token 7, which no txn created']);
  });

  test('long after its znode was deleted is a finding, and so is a lock lost without a reason', () => {
    const late = new Scene().joins(1, 1).goes(5, 1);
    const { become } = late.holdsFrom(4, 1, 1);
    late.nowMs = 20_000;
    become('lost');
    expect(late.found()).toEqual([expect.stringMatching(/^loss: .* but process-1 counted on it until 20000.000, 19950 ms$/)]);
    const early = new Scene().joins(1, 1).goes(900, 1);
    early.holdsFrom(4, 1, 1).become('lost');
    expect(early.found()).toEqual([expect.stringMatching(/^loss: process-1 lost .*, though it still exists$/)]);
  });

  test('again after it was lost is a finding', () => {
    const scene = new Scene().joins(1, 1);
    const { become } = scene.holdsFrom(4, 1, 1, 'suspended');
    become('lost');
    become('suspended');
    expect(scene.complaints).toEqual(['/line/_c_1-lock-0000000001 was lost and became suspended']);
  });

  test('and suspended for longer than the session timeout is a finding, unless its process was paused', () => {
    const scene = new Scene().joins(1, 1);
    const { become } = scene.holdsFrom(4, 1, 1, 'suspended');
    become('suspended');
    scene.nowMs += 1000;
    become('held');
    expect(scene.complaints).toEqual([]);
    become('suspended');
    scene.nowMs += 1100;
    become('lost');
    expect(scene.complaints).toEqual([
      expect.stringMatching(/^silence: .* was suspended for 1100 ms, longer than its session timeout of 1000 ms$/),
    ]);
  });

  test('and used for a write after its znode was deleted, or after a later holder wrote, is a finding', () => {
    const scene = new Scene().joins(1, 1).joins(2, 2).goes(5, 1).writes(6, 2, 2).writes(7, 1, 1);
    expect(scene.found()).toEqual([
      expect.stringMatching(/^fence: .* wrote at 7, but was gone at 5$/),
      expect.stringMatching(/^fence: .* with token 1 wrote at 7, after a holder with token 2$/),
    ]);
  });

  test('and used for a write although the witness has seen a later token is a finding', () => {
    const scene = new Scene().joins(1, 1).joins(2, 2).goes(50, 1);
    const first = scene.holdsFrom(4, 1, 1);
    scene.holdsFrom(60, 2, 2).write();
    scene.nowMs = 300;
    first.write();
    expect(scene.found().filter((each) => each.startsWith('witness'))).toHaveLength(1);
  });

  test('and watched by a process that is not the next one is a finding, and so is a wait for a process that does not precede it', () => {
    const scene = new Scene().joins(1, 1).joins(2, 2).joins(3, 3).watches(4, 3, 1);
    expect(scene.found()).toEqual([
      expect.stringMatching(/^herd: process-3 watches .*lock-0000000001 for .*3, though .*2 is between them$/),
    ]);
    expect(scene.found({ ...rules, goesFirst: () => false })).toEqual([
      expect.stringMatching(/^herd: .*, which does not have to wait for it$/),
    ]);
  });

  test('and given up without a reply does not prevent its process from waiting for another one', () => {
    const scene = new Scene().joins(1, 1).joins(2, 2).joins(3, 3).givesUp(4, 3, 3).watches(5, 3, 1);
    expect(scene.found()).toEqual([]);
  });
});
