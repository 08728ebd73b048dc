/**
 * What a stranger can do at the ports of servers, with or without the id of a configured server.
 * Random seeds do the same among other faults.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import type { AttackKind } from '../../src/peers/attack.ts';
import { unknownPeerAttacks } from '../../src/peers/unknown-peer-attacks.ts';
import { impersonatorAttacks } from '../../src/peers/impersonator-attacks.ts';
import { isIdle, Run } from '../../src/run/run.ts';
import { RawClient } from '../../src/clients/raw-client.ts';
import { VirtualWorld } from '../../src/world/virtual-world.ts';

const seeds = 8;
/** Longer than a learner may be silent before it has joined. */
const noticedMs = 2500;

interface Attacked {
  readonly world: VirtualWorld;
  readonly stage: Run;
  readonly client: RawClient;
  /** The number of attacks that reached their last step. */
  readonly hits: number;
}

/**
 * An ensemble of three with one client, some time after an attack on its leader. If `oneIsDown`,
 * one follower is down and its id is free.
 */
async function attacked(kind: AttackKind, seed: number, oneIsDown = false): Promise<Attacked> {
  const world = new VirtualWorld(seed, { servers: 3, ensemble: {} });
  const run = new Run(world, new SeededRandom(seed));
  for (const server of world.servers) run.boot(server);
  expect(await world.runUntil(() => run.allServing, 10_000)).toBe(true);
  const client = new RawClient(world, new SeededRandom(seed), { name: 'client-1', address: '10.9.0.1', timeoutMs: 4000 });
  expect(await world.runUntil(() => isIdle(client), 5000)).toBe(true);
  const target = run.leader!;
  const targetZxid = target.process!.runtime!.inspect.lastZxid();
  if (oneIsDown) world.servers.find((server) => server !== target)!.kill();
  let hits = 0;
  const reachedGoal = () => hits++;
  kind({ run, random: new SeededRandom(seed), peer: run.strangers.newHostilePeer(), target, targetZxid, reachedGoal });
  await world.run(noticedMs);
  return { world, stage: run, client, hits };
}

describe('a stranger', () => {
  test.each(Object.entries(unknownPeerAttacks))('does no harm by %s', async (_name, kind) => {
    let hits = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const { world, stage, client, hits: hit } = await attacked(kind, seed);
      hits += hit;
      expect(world.recording.violations).toEqual([]);
      expect(world.recording.peerEvents.filter(({ kind: what }) => what === 'roleEnded')).toEqual([]);
      expect({ seed, isWhole: stage.allServing, isIdle: isIdle(client), cnxns: world.recording.cnxns.length }).toEqual({
        seed,
        isWhole: true,
        isIdle: true,
        cnxns: 1,
      });
    }
    expect(hits).toBeGreaterThan(0);
  });
});

describe('a stranger with the id of a server, or with requests in the name of clients', () => {
  test.each(Object.entries(impersonatorAttacks))(
    'ends no process by %s, and all clients are served when the stranger is gone',
    async (_name, kind) => {
      let hits = 0;
      for (let seed = 1; seed <= seeds; seed++) {
        const { world, stage, client, hits: hit } = await attacked(kind, seed, true);
        hits += hit;
        world.recording.isImpersonated = true;
        stage.strangers.endAttacks();
        for (const server of world.servers) if (server.process === undefined) stage.boot(server);
        expect(await world.runUntil(() => stage.allServing && isIdle(client), 10_000)).toBe(true);
        expect(world.recording.violations).toEqual([]);
      }
      expect(hits).toBeGreaterThan(0);
    },
  );
});
