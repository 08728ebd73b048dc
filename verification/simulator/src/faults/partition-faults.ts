/** Faults of the links between the servers of an ensemble. */
import type { SeededRandom } from '@tskeeper/runtime';
import type { Run } from '../run/run.ts';
import { observerMasterPort } from '../world/peer-ports.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { Fault } from './fault.ts';

/** Sometimes long enough for every server to notice. */
function drawDurationMs(random: SeededRandom): number {
  return random.below(3) === 0 ? 1000 + random.below(2500) : random.below(800);
}

function shuffled<T>(random: SeededRandom, of: readonly T[]): T[] {
  const left = [...of];
  return Array.from({ length: left.length }, () => left.splice(random.below(left.length), 1)[0]!);
}

export const partition: Fault = {
  id: 'F18',
  description: 'the network splits the servers into two parts, possibly with a server that reaches both; or each is alone',
  ensembleOnly: true,
  inject(run, random) {
    const servers = shuffled(random, run.world.servers);
    const ms = drawDurationMs(random);
    if (random.below(4) === 0) {
      run.cutLinks(servers, servers, ms);
      return;
    }
    const size = 1 + random.below(Math.max(1, servers.length - 1));
    const bridge = random.below(3) === 0 ? 1 : 0;
    run.cutLinks(servers.slice(0, size), servers.slice(size + bridge), ms);
  },
};

export const oneWayCut: Fault = {
  id: 'F19',
  description: 'a server can send to others but not receive from them, or receive but not send',
  ensembleOnly: true,
  inject(run, random) {
    const [one, ...others] = shuffled(random, run.world.servers);
    if (one === undefined || others.length === 0) return;
    const some = others.slice(0, 1 + random.below(others.length));
    const [from, to] = random.below(2) === 0 ? [[one], some] : [some, [one]];
    run.cutLinks(from, to, drawDurationMs(random), 'one way');
  },
};

export const leaderPartitioned: Fault = {
  id: 'F21',
  description: 'the leader is partitioned from the other servers, together with some clients',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    if (leader === undefined) return;
    const ms = drawDurationMs(random);
    const others = run.world.servers.filter((server) => server !== leader);
    run.cutLinks([leader], others, ms);
    const clients = shuffled(random, run.actors).slice(0, 1 + random.below(run.actors.length));
    run.cutLinks(clients, others, ms);
  },
};

export const slowLink: Fault = {
  id: 'F16, F20',
  description: 'the link between two servers is slow',
  ensembleOnly: true,
  inject(run, random) {
    const [a, b] = shuffled(random, run.world.servers);
    if (a === undefined || b === undefined) return;
    run.slowLink(a, b, random.below(2) === 0 ? random.below(60) : random.below(600), drawDurationMs(random));
  },
};

export const flappingLinks: Fault = {
  id: 'F22',
  description: 'links between servers fail one after the other and recover in another order, or one flaps',
  ensembleOnly: true,
  inject(run, random) {
    const { servers } = run.world;
    const pairs: (readonly [ServerHost, ServerHost])[] = servers.flatMap((a, at) => servers.slice(at + 1).map((b) => [a, b] as const));
    const some = shuffled(random, pairs).slice(0, 1 + random.below(4));
    for (const [a, b] of some) {
      const cuts = random.below(2) === 0 ? 1 : 2 + random.below(3);
      for (let cut = 0; cut < cuts; cut++) {
        run.schedule(random.below(1500), 'flap', undefined, () => {
          if (!run.isHealed) run.cutLinks([a], [b], random.below(300));
        });
      }
    }
  },
};

export const brokenPeerCnxn: Fault = {
  id: 'F15, F17',
  description: 'a connection between two servers is reset, possibly within a frame, is half closed, or stays half open',
  ensembleOnly: true,
  inject(run, random) {
    const cnxns = run.cnxnsBetweenServers();
    if (cnxns.length === 0) return;
    const { forward, backward } = cnxns[random.below(cnxns.length)]!;
    const pipe = random.below(2) === 0 ? forward : backward;
    if (random.below(3) > 0) {
      pipe.resetAfter(pipe.deliveredBytes + random.below(400));
      return;
    }
    if (random.below(2) === 0) {
      run.hitMark('half closed between servers');
      pipe.end();
      return;
    }
    for (const each of random.below(2) === 0 ? [pipe] : [forward, backward]) run.holdPipe(each, drawDurationMs(random));
  },
};

/** More than may wait for a learner, if that bound is low. */
const writesCount = 40;
const longWriteBytes = 12_000;
/** Each write in a turn of its own: everything written in one turn counts as being sent. */
const longWriteIntervalMs = 3;

export const laggingLearner: Fault = {
  id: 'F11, F19',
  description: 'a learner receives nothing from its leader for a moment, while a client writes more than may wait for the learner',
  ensembleOnly: true,
  inject(run, random) {
    // With an unlimited window the network takes everything.
    if (run.serverWindowBytes === Infinity) return;
    const { leader } = run;
    const learners = run.world.servers.filter(({ role }) => role === 'follower' || role === 'observer');
    const learner = learners[random.below(learners.length)];
    if (leader === undefined || learner === undefined) return;
    const writer = run.strangers.addPinnedClient(leader);
    // The writer must be connected first.
    run.schedule(120, 'fallen behind', undefined, () => {
      run.schedule(800, 'visitors leave', undefined, () => writer.send('closeSession', undefined));
      if (run.isHealed || !writer.ready) return;
      run.cutLinks([leader], [learner], 200 + random.below(500), 'one way');
      for (let count = 0; count < writesCount; count++) {
        run.schedule(count * longWriteIntervalMs, 'fallen behind', undefined, () => {
          const data = Buffer.from(`fallen behind ${run.nowMs} `.padEnd(longWriteBytes, '.'));
          if (!run.isHealed) writer.submit({ name: 'setData', record: { path: '/', data, version: -1 } });
        });
      }
    });
  },
};

/** While the observer looks for another follower, which takes as long as an election. */
const writesForMs = 500;
const writeIntervalMs = 8;

export const observerAhead: Fault = {
  id: 'F15, F19',
  description:
    'some followers receive nothing from their leader for a moment while clients write, and an observer of another follower comes to them, which knows more',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    const { servers } = run.world;
    const observers = shuffled(random, servers).flatMap((server) => {
      const master = server.role === 'observer' ? run.masterOf(server) : undefined;
      return master === undefined || master === leader ? [] : [{ server, master }];
    });
    const [observer] = observers;
    if (leader === undefined || observer === undefined) return;
    const others = shuffled(random, servers).filter((server) => server.role === 'follower' && server !== observer.master);
    // The rest is a majority, so writes go on.
    const voters = others.length + 2;
    const lagging = others.slice(0, Math.ceil(voters / 2) - 1);
    run.cutLinks([leader], lagging, 300 + random.below(500), 'one way');
    const write = () => {
      for (const actor of run.actors) {
        const data = Buffer.from(`ahead ${run.nowMs} ${actor.name}`);
        if (actor.ready && actor.outstandingCount === 0) actor.submit({ name: 'setData', record: { path: '/', data, version: -1 } });
      }
    };
    for (let atMs = 0; atMs < writesForMs; atMs += writeIntervalMs) {
      run.schedule(atMs, 'ahead', undefined, () => {
        if (!run.isHealed) write();
      });
    }
    run.schedule(30 + random.below(60), 'ahead', undefined, () => {
      if (run.isHealed || run.masterOf(observer.server) !== observer.master) return;
      for (const { dialer, listener, forward } of run.cnxnsBetweenServers()) {
        if (
          dialer.address === observer.server.address &&
          listener.address === observer.master.address &&
          listener.port === observerMasterPort
        )
          forward.resetAfter(forward.deliveredBytes);
      }
    });
  },
};

export const unresolvableName: Fault = {
  id: 'F26',
  description: 'the host name of a server does not resolve for a while',
  ensembleOnly: true,
  inject(run: Run, random) {
    run.hideName(run.anyServer(), drawDurationMs(random));
  },
};
