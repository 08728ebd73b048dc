/**
 * The stage of an episode: faults act through it, and checks ask it how often each fault took
 * effect.
 */
import type { Actor } from '@tskeeper/simulator';
import { SeededRandom } from '@tskeeper/runtime';
import type { LinkDirection } from '@tskeeper/harness';
import type { RealServer } from './real-server.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { RealWorld } from './real-world.ts';

/** How a SIGKILL chooses: the leader, all servers at once, or any. */
export type KillKind = 'leader' | 'all' | 'any';

/** Of thirty kills ten hit the leader and three all servers, in an order that the seed decides. */
const killKinds: readonly KillKind[] = [
  ...Array.from({ length: 10 }, () => 'leader' as const),
  ...Array.from({ length: 3 }, () => 'all' as const),
  ...Array.from({ length: 17 }, () => 'any' as const),
];

/** Deals the same cards to all episodes of a run, so that the shares hold over the whole run. */
export class KillSchedule {
  readonly #random: SeededRandom;
  #remaining: KillKind[] = [];

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  next(): KillKind {
    if (this.#remaining.length === 0) this.#remaining = shuffled(killKinds, this.#random);
    return this.#remaining.pop()!;
  }
}

export function shuffled<T>(from: readonly T[], random: SeededRandom): T[] {
  const all = [...from];
  for (let at = all.length - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [all[at], all[other]] = [all[other]!, all[at]!];
  }
  return all;
}

export class FaultContext {
  readonly world: RealWorld;
  readonly random: SeededRandom;
  readonly kills: KillSchedule;
  readonly actors: Actor[] = [];
  /** How often each fault took effect, and each rare event was seen. */
  readonly marks = new Map<string, number>();
  /** Pending actions that end a fault. */
  readonly #pendingUndos = new Set<() => Promise<void>>();
  readonly #work = new Set<Promise<void>>();

  constructor(world: RealWorld, random: SeededRandom, killDeck: KillSchedule) {
    this.world = world;
    this.random = random;
    this.kills = killDeck;
  }

  get servers(): readonly RealServer[] {
    return this.world.servers;
  }

  anyServer(): RealServer {
    return this.servers[this.random.below(this.servers.length)]!;
  }

  async leaderOrAny(): Promise<RealServer> {
    return (await this.world.leader()) ?? this.anyServer();
  }

  drawBetween(low: number, high: number): number {
    return low + this.random.below(Math.max(1, high - low));
  }

  hitMark(mark: string): void {
    this.marks.set(mark, (this.marks.get(mark) ?? 0) + 1);
    this.world.annotate(mark);
  }

  count(mark: string): number {
    return this.marks.get(mark) ?? 0;
  }

  /** Ends a fault after its time, or at the latest when the world heals. */
  undoAfter(ms: number, undo: () => Promise<void> | void): void {
    let done = false;
    const once = async () => {
      if (done) return;
      done = true;
      this.#pendingUndos.delete(once);
      await undo();
    };
    this.#pendingUndos.add(once);
    this.#track(delay(ms).then(once));
  }

  #track(work: Promise<void>): void {
    const noted = work.catch((error: unknown) => void this.world.recording.violations.push(`the harness failed: ${String(error)}`));
    this.#work.add(noted);
    void noted.then(() => this.#work.delete(noted));
  }

  /** Disturbs these lanes for a time. */
  impair(lanes: readonly LinkDirection[], ms: number, harm: (lane: LinkDirection) => void): void {
    for (const lane of lanes) harm(lane);
    const endDisturbance = this.recordDisturbance();
    this.undoAfter(ms, () => {
      this.world.network.heal(lanes);
      endDisturbance();
    });
  }

  /** Packets may be slower than usual until the returned function is called. */
  recordDisturbance(): () => void {
    const { recording, clock } = this.world;
    const disturbance = { machines: this.servers.map(({ name }) => name), fromMs: clock.elapsedMs, toMs: Infinity };
    recording.disturbances.push(disturbance);
    return () => {
      disturbance.toMs = clock.elapsedMs;
    };
  }

  /** Kills a server, and restarts it after a while. */
  async killFor(server: RealServer, ms: number): Promise<void> {
    await server.kill();
    const endDisturbance = this.recordDisturbance();
    this.undoAfter(ms, async () => {
      await server.start();
      endDisturbance();
    });
  }

  /** Ends all faults, and waits for pending actions. */
  async heal(): Promise<void> {
    for (const undo of this.#pendingUndos) await undo();
    await Promise.all(this.#work);
    this.world.network.heal();
    for (const server of this.servers) {
      server.options.disk.set('none');
      server.resume();
      await server.start();
    }
  }
}
