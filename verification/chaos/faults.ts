/** All faults of an episode. Ids are those of docs/internals/faults.md. */
import { RawClient } from '@tskeeper/simulator';
import type { RealServer } from './real-server.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { type DiskFault, eventually } from '@tskeeper/harness';
import type { FaultContext } from './fault-context.ts';

export interface Fault {
  readonly id: string;
  readonly description: string;
  inject(context: FaultContext): Promise<void> | void;
}

const downMs = [30, 900] as const;
const effectMaxMs = 4000;

const kill: Fault = {
  id: 'F1, F2',
  description: 'SIGKILL: of the leader, of any server, or of all at once',
  async inject(context) {
    const kind = context.kills.next();
    context.hitMark(`kill of ${kind}`);
    if (kind === 'all') {
      await Promise.all(context.servers.map((server) => server.kill()));
      for (const server of context.servers) await context.killFor(server, context.drawBetween(...downMs));
      return;
    }
    const leader = await context.world.leader();
    const others = context.servers.filter((server) => server.running && server !== leader);
    // Of the leader only if there is one: otherwise do not kill another server in its place.
    const victim =
      kind === 'leader' ? (leader ?? (await awaitLeader(context))) : (others[context.random.below(Math.max(1, others.length))] ?? leader);
    if (victim === undefined) return;
    if (kind === 'leader') context.hitMark('the leader was killed');
    await context.killFor(victim, context.drawBetween(...downMs));
  },
};

/** The leader, as soon as there is one. */
async function awaitLeader(context: FaultContext): Promise<RealServer | undefined> {
  for (let tries = 0; tries < 100; tries++) {
    const leader = await context.world.leader();
    if (leader !== undefined) return leader;
    await delay(30);
  }
  return undefined;
}

const pause: Fault = {
  id: 'F14',
  description: 'SIGSTOP, and SIGCONT some time later: before the others give the server up, or after',
  async inject(context) {
    const server = context.random.below(2) === 0 ? await context.leaderOrAny() : context.anyServer();
    const ms = context.drawBetween(50, 2500);
    server.pause();
    const fromMs = context.world.clock.elapsedMs;
    context.undoAfter(ms, () => {
      server.resume();
      context.world.recording.pauses.push({ server: server.name, fromMs, toMs: context.world.clock.elapsedMs });
    });
  },
};

const partition: Fault = {
  id: 'F18, F21',
  description: 'a server is cut off from the others, with clients or without',
  async inject(context) {
    const server = context.random.below(2) === 0 ? await context.leaderOrAny() : context.anyServer();
    const { network } = context.world;
    const others = context.servers.filter((each) => each !== server).map(({ name }) => name);
    const cutOff = context.random.below(3) === 0 ? context.actors.filter(() => context.random.below(2) === 0).map(({ name }) => name) : [];
    const lanes = [...others, ...cutOff].flatMap((other) => [network.direction(server.name, other), network.direction(other, server.name)]);
    context.impair(lanes, context.drawBetween(100, 2500), (lane) => {
      lane.isCut = true;
    });
  },
};

const oneWayCut: Fault = {
  id: 'F19',
  description: 'a server can send but not receive, or receive but not send',
  async inject(context) {
    const server = context.random.below(2) === 0 ? await context.leaderOrAny() : context.anyServer();
    const isDeaf = context.random.below(2) === 0;
    const { network } = context.world;
    const others = context.servers.filter((each) => each !== server && context.random.below(3) > 0);
    const lanes = others.map(({ name }) => (isDeaf ? network.direction(name, server.name) : network.direction(server.name, name)));
    context.impair(lanes, context.drawBetween(100, 2500), (lane) => {
      lane.isCut = true;
    });
  },
};

const slowLinks: Fault = {
  id: 'F16',
  description: 'delay and jitter on some links',
  inject(context) {
    const { network } = context.world;
    const names = [...context.servers, ...context.actors].map(({ name }) => name);
    const lanes = Array.from({ length: 4 }, () => {
      const [from, to] = [context.anyServer().name, names[context.random.below(names.length)]!];
      return context.random.below(2) === 0 ? network.direction(from, to) : network.direction(to, from);
    });
    const [delayMs, jitterMs] = [context.drawBetween(1, 60), context.drawBetween(0, 40)];
    context.impair(lanes, context.drawBetween(300, 2000), (lane) => Object.assign(lane, { delayMs, jitterMs }));
  },
};

const smallChunks: Fault = {
  id: 'F16, F20',
  description: 'a few bytes at a time',
  inject(context) {
    const { network } = context.world;
    const [a, b] = [context.anyServer(), context.anyServer()];
    const chunkBytes = context.drawBetween(1, 40);
    context.impair([network.direction(a.name, b.name)], context.drawBetween(100, 700), (lane) => {
      lane.chunkBytes = chunkBytes;
    });
  },
};

const cnxnReset: Fault = {
  id: 'F15',
  description: 'connections are reset in the midst of a frame',
  inject(context) {
    const proxies = context.world.network.all.filter(({ connections }) => connections.size > 0);
    for (let count = 1 + context.random.below(4); count > 0 && proxies.length > 0; count--) {
      const proxy = proxies[context.random.below(proxies.length)]!;
      const connection = [...proxy.connections][context.random.below(proxy.connections.size)]!;
      const pipe = context.random.below(2) === 0 ? connection.forward : connection.backward;
      pipe.resetAfterBytes = context.random.below(3) === 0 ? 0 : context.random.below(600);
      if (pipe.resetAfterBytes === 0) pipe.reset();
    }
  },
};

const holdOldCnxn: Fault = {
  id: 'F17',
  description: 'a connection is held until another has taken its place, and then released',
  inject(context) {
    const proxies = context.world.network.all.filter(({ connections }) => connections.size > 0);
    const proxy = proxies[context.random.below(proxies.length)];
    if (proxy === undefined) return;
    const held = [...proxy.connections];
    for (const { forward, backward } of held) {
      forward.isHeld = true;
      backward.isHeld = context.random.below(2) === 0;
    }
    context.undoAfter(context.drawBetween(500, 3000), () => {
      for (const { forward, backward } of held) {
        forward.isHeld = backward.isHeld = false;
        forward.pump();
        backward.pump();
      }
    });
  },
};

/** A disk that fails, and works again at the server's next start. */
async function failDisk(context: FaultContext, fault: DiskFault, value: number, ms: number): Promise<void> {
  const server = context.random.below(2) === 0 ? await context.leaderOrAny() : context.anyServer();
  const { disk } = server.options;
  const { unexpectedExits } = server;
  const struck = disk.affectedCalls ?? 0;
  server.injectedDiskFaults++;
  disk.set(fault, value);
  const endDisturbance = context.recordDisturbance();
  // A server that writes nothing at the moment is not affected.
  await eventually(() => (disk.affectedCalls ?? 0) > struck || !server.running, effectMaxMs);
  context.undoAfter(ms, async () => {
    disk.set('none');
    endDisturbance();
    if ((disk.affectedCalls ?? 0) > struck) context.hitMark(`a call to the disk felt ${fault}`);
    if (server.unexpectedExits > unexpectedExits) context.hitMark(`a server ended over ${fault}`);
    // A server affected by the fault may be about to end.
    if (server.running && fault !== 'slowSyncs' && (disk.affectedCalls ?? 0) > struck) await server.kill();
    server.injectedDiskFaults--;
    await server.start();
  });
}

const diskFull: Fault = {
  id: 'F9',
  description: 'a disk has no room left',
  inject: (context) => failDisk(context, 'full', context.random.below(5000), context.drawBetween(0, 1000)),
};

const syncFails: Fault = {
  id: 'F10',
  description: 'syncs fail with EIO',
  inject: (context) => failDisk(context, 'syncFails', 0, context.drawBetween(0, 1000)),
};

const writeFails: Fault = {
  id: 'F10',
  description: 'writes fail with EIO',
  inject: (context) => failDisk(context, 'writeFails', 0, context.drawBetween(0, 1000)),
};

const slowSyncs: Fault = {
  id: 'F11',
  description: 'each sync takes long',
  inject: (context) => failDisk(context, 'slowSyncs', context.drawBetween(20, 400), context.drawBetween(500, 2500)),
};

const rollingRestart: Fault = {
  id: 'F23',
  description: 'each server is stopped cleanly and started again, one after the other',
  async inject(context) {
    for (const server of context.servers) {
      if (!server.running || server.paused) continue;
      if (!(await server.stop())) context.world.recording.violations.push(`${server.name} did not end after SIGTERM`);
      await server.start();
      for (let tries = 0; tries < 100 && (await server.mode()) === undefined; tries++) await delay(20);
    }
  },
};

const clientMisbehaviour: Fault = {
  id: 'F17, F28, F29, F30',
  description: 'a client comes back while its old connection is still there, falls silent, or sends garbage',
  inject(context) {
    const actor = context.actors[context.random.below(context.actors.length)]!;
    switch (context.random.below(4)) {
      case 0:
        actor.goOffline(context.drawBetween(100, 1500));
        return;
      case 1:
        if (actor instanceof RawClient) actor.sendHalfFrame();
        return;
      case 2:
        if (actor instanceof RawClient) actor.sendGarbage();
        return;
      default:
        actor.redial();
    }
  },
};

export const faults = {
  kill,
  pause,
  partition,
  oneWay: oneWayCut,
  slow: slowLinks,
  dribble: smallChunks,
  reset: cnxnReset,
  holdOld: holdOldCnxn,
  diskFull,
  syncFails,
  writeFails,
  slowSyncs,
  rollingRestart,
  client: clientMisbehaviour,
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
