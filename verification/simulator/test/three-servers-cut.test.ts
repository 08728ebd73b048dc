/**
 * Cuts between three servers, in one direction or in both (F19). As long as two servers can
 * communicate and so are a quorum, writes continue; when all links are healed, all servers are soon
 * synchronised.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { RawClient } from '../src/clients/raw-client.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

const tickTimeMs = 200;
const syncLimitMs = 5 * tickTimeMs;
const rounds = breadth(2, 10);

const roleOf = ({ process }: ServerHost) => process?.runtime?.inspect.role();
const isWhole = ({ servers }: VirtualWorld) =>
  servers.filter((server) => roleOf(server) === 'leader').length === 1 &&
  servers.every((server) => roleOf(server) === 'leader' || roleOf(server) === 'follower');

/** The leader, and its followers in an order that the seed decides. */
type Cast = readonly [ServerHost, ServerHost, ServerHost];
type Mute = (from: ServerHost, to: ServerHost) => void;

const both = (mute: Mute, a: ServerHost, b: ServerHost): void => {
  mute(a, b);
  mute(b, a);
};

const cases: Readonly<Record<string, (mute: Mute, cast: Cast) => void>> = {
  'the leader is isolated': (mute, [leader, one, other]) => [one, other].forEach((each) => both(mute, leader, each)),
  'the leader cannot receive': (mute, [leader, one, other]) => [one, other].forEach((each) => mute(each, leader)),
  'the leader cannot send': (mute, [leader, one, other]) => [one, other].forEach((each) => mute(leader, each)),
  'the leader and one follower receive nothing from each other': (mute, [leader, one]) => both(mute, leader, one),
  'a follower is isolated': (mute, [leader, one, other]) => [leader, other].forEach((each) => both(mute, one, each)),
  'a follower cannot receive': (mute, [leader, one, other]) => [leader, other].forEach((each) => mute(each, one)),
  'a follower cannot send': (mute, [leader, one, other]) => [leader, other].forEach((each) => mute(one, each)),
  'one follower receives nothing from the leader': (mute, [leader, one]) => mute(leader, one),
  'the leader receives nothing from one follower': (mute, [leader, one]) => mute(one, leader),
  'the followers receive nothing from each other': (mute, [, one, other]) => both(mute, one, other),
};

async function started(seed: number): Promise<{ world: VirtualWorld; random: SeededRandom; cast: Cast }> {
  const world = new VirtualWorld(seed, { servers: 3, ensemble: {}, core: { tickTimeMs } });
  const random = new SeededRandom(seed);
  world.wire.conditionsOf = () => ({ delayMs: random.below(64) / 64 });
  for (const server of world.servers) await server.start();
  expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
  await world.run(random.below(3000));
  const leader = world.servers.find((server) => roleOf(server) === 'leader')!;
  const followers = world.servers.filter((server) => server !== leader);
  if (random.below(2) === 0) followers.reverse();
  return { world, random, cast: [leader, followers[0]!, followers[1]!] };
}

/** Writes endlessly, one write after the other, and records when the last one was answered. */
class Writer {
  readonly #client: RawClient;
  readonly #world: VirtualWorld;
  #write: ReturnType<RawClient['send']>;
  #over: RawClient['cnxn'];

  constructor(world: VirtualWorld) {
    this.#world = world;
    this.#client = new RawClient(world, new SeededRandom(1), { name: 'client', address: '10.9.0.1', timeoutMs: 4000 });
  }

  /** The time until a write that is sent from now on is answered. */
  async msUntilWritten(atMostMs: number): Promise<number> {
    const sinceMs = this.#world.clock.elapsedMs;
    this.#write = undefined;
    const isWritten = () => {
      if (this.#write?.reply?.err === 0) return true;
      const hasFailed = this.#write === undefined || this.#write.reply !== undefined || this.#over !== this.#client.cnxn;
      if (!hasFailed || !this.#client.ready) return false;
      this.#over = this.#client.cnxn;
      this.#write = this.#client.send('setData', { path: '/', data: Buffer.from('x'), version: -1 });
      return false;
    };
    const isDone = await this.#world.runUntil(isWritten, atMostMs);
    return isDone ? this.#world.clock.elapsedMs - sinceMs : Infinity;
  }
}

describe.each(Object.keys(cases))('F19: when of three servers %s,', (name) => {
  it(`writes continue within syncLimit and 2 s, and all servers follow one leader within 1 s after the cut is healed (${rounds} times)`, async () => {
    const [written, whole]: [number[], number[]] = [[], []];
    for (let seed = 1; seed <= rounds; seed++) {
      const { world, random, cast } = await started(seed);
      const writer = new Writer(world);
      expect(await writer.msUntilWritten(10_000)).toBeLessThan(10_000);
      cases[name]!((from, to) => {
        const link = world.link(from.name, to.name);
        link.cutOneWay(link.a === from.name ? 'forward' : 'backward');
      }, cast);
      written.push(await writer.msUntilWritten(20_000));
      await world.run(random.below(12_000));
      for (const link of world.links) link.heal();
      const healedMs = world.clock.elapsedMs;
      await world.runUntil(() => isWhole(world), 20_000);
      whole.push(world.clock.elapsedMs - healedMs);
    }
    const shown = `written ${written.map(Math.round).join()}, whole ${whole.map(Math.round).join()}`;
    expect(Math.max(...written), shown).toBeLessThanOrEqual(syncLimitMs + 2000);
    expect(Math.max(...whole), shown).toBeLessThanOrEqual(1000);
  });
});
