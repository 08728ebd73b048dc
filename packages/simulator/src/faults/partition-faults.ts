/** Faults of the links between the servers of an ensemble. */
import type { SeededRandom } from '@tskeeper/runtime';
import type { Stage } from '../story/stage.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { Fault } from './fault.ts';

/** Sometimes long enough for every server to notice. */
function howLong(random: SeededRandom): number {
  return random.below(3) === 0 ? 1000 + random.below(2500) : random.below(800);
}

function shuffled<T>(random: SeededRandom, of: readonly T[]): T[] {
  const left = [...of];
  return Array.from({ length: left.length }, () => left.splice(random.below(left.length), 1)[0]!);
}

export const partition: Fault = {
  id: 'F18',
  what: 'the network splits the servers into two parts, possibly with a server that reaches both; or each is alone',
  ofEnsembles: true,
  strike(stage, random) {
    const servers = shuffled(random, stage.world.servers);
    const ms = howLong(random);
    if (random.below(4) === 0) {
      stage.cutBetween(servers, servers, ms);
      return;
    }
    const size = 1 + random.below(Math.max(1, servers.length - 1));
    const bridge = random.below(3) === 0 ? 1 : 0;
    stage.cutBetween(servers.slice(0, size), servers.slice(size + bridge), ms);
  },
};

export const oneWayCut: Fault = {
  id: 'F19',
  what: 'a server can send to others but not receive from them, or receive but not send',
  ofEnsembles: true,
  strike(stage, random) {
    const [one, ...others] = shuffled(random, stage.world.servers);
    if (one === undefined || others.length === 0) return;
    const some = others.slice(0, 1 + random.below(others.length));
    const [from, to] = random.below(2) === 0 ? [[one], some] : [some, [one]];
    stage.cutBetween(from, to, howLong(random), 'one way');
  },
};

export const leaderIsland: Fault = {
  id: 'F21',
  what: 'the leader is partitioned from the other servers, together with some clients',
  ofEnsembles: true,
  strike(stage, random) {
    const { leader } = stage;
    if (leader === undefined) return;
    const ms = howLong(random);
    const others = stage.world.servers.filter((server) => server !== leader);
    stage.cutBetween([leader], others, ms);
    const clients = shuffled(random, stage.actors).slice(0, 1 + random.below(stage.actors.length));
    stage.cutBetween(clients, others, ms);
  },
};

export const slowLink: Fault = {
  id: 'F16, F20',
  what: 'the link between two servers is slow',
  ofEnsembles: true,
  strike(stage, random) {
    const [a, b] = shuffled(random, stage.world.servers);
    if (a === undefined || b === undefined) return;
    stage.slowBetween(a, b, random.below(2) === 0 ? random.below(60) : random.below(600), howLong(random));
  },
};

export const flapping: Fault = {
  id: 'F22',
  what: 'links between servers fail one after the other and recover in another order, or one flaps',
  ofEnsembles: true,
  strike(stage, random) {
    const { servers } = stage.world;
    const pairs: (readonly [ServerHost, ServerHost])[] = servers.flatMap((a, at) => servers.slice(at + 1).map((b) => [a, b] as const));
    const some = shuffled(random, pairs).slice(0, 1 + random.below(4));
    for (const [a, b] of some) {
      const cuts = random.below(2) === 0 ? 1 : 2 + random.below(3);
      for (let cut = 0; cut < cuts; cut++) {
        stage.after(random.below(1500), 'flap', undefined, () => {
          if (!stage.isHealed) stage.cutBetween([a], [b], random.below(300));
        });
      }
    }
  },
};

export const peerReset: Fault = {
  id: 'F15, F17',
  what: 'a connection between two servers is reset, possibly within a frame, is half closed, or stays half open',
  ofEnsembles: true,
  strike(stage, random) {
    const cnxns = stage.cnxnsBetweenServers();
    if (cnxns.length === 0) return;
    const { forward, backward } = cnxns[random.below(cnxns.length)]!;
    const pipe = random.below(2) === 0 ? forward : backward;
    if (random.below(3) > 0) {
      pipe.resetAfter(pipe.deliveredBytes + random.below(400));
      return;
    }
    if (random.below(2) === 0) {
      stage.note('half closed between servers');
      pipe.end();
      return;
    }
    for (const each of random.below(2) === 0 ? [pipe] : [forward, backward]) stage.holdFor(each, howLong(random));
  },
};

/** More than may wait for a learner, if that bound is low. */
const longWrites = 40;
const longWriteBytes = 12_000;
/** Each write in a turn of its own: everything written in one turn counts as being sent. */
const longWriteIntervalMs = 3;

export const fallenBehind: Fault = {
  id: 'F11, F19',
  what: 'a learner receives nothing from its leader for a moment, while a client writes more than may wait for the learner',
  ofEnsembles: true,
  strike(stage, random) {
    // With an unlimited window the network takes everything.
    if (stage.windowBytes === Infinity) return;
    const { leader } = stage;
    const learners = stage.world.servers.filter(({ role }) => role === 'follower' || role === 'observer');
    const learner = learners[random.below(learners.length)];
    if (leader === undefined || learner === undefined) return;
    const writer = stage.addVisitor(leader);
    // The writer must be connected first.
    stage.after(120, 'fallen behind', undefined, () => {
      stage.after(800, 'visitors leave', undefined, () => writer.send('closeSession', undefined));
      if (stage.isHealed || !writer.ready) return;
      stage.cutBetween([leader], [learner], 200 + random.below(500), 'one way');
      for (let count = 0; count < longWrites; count++) {
        stage.after(count * longWriteIntervalMs, 'fallen behind', undefined, () => {
          const data = Buffer.from(`fallen behind ${stage.nowMs} `.padEnd(longWriteBytes, '.'));
          if (!stage.isHealed) writer.ask({ name: 'setData', record: { path: '/', data, version: -1 } });
        });
      }
    });
  },
};

export const deafName: Fault = {
  id: 'F26',
  what: 'the host name of a server does not resolve for a while',
  ofEnsembles: true,
  strike(stage: Stage, random) {
    stage.hideName(stage.anyServer(), howLong(random));
  },
};
