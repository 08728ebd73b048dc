/** All faults of an episode. Ids are those of docs/internals/faults.md. */
import { RawClient } from '@tskeeper/simulator';
import type { DiskFault } from './disk-faults.ts';
import type { Member } from './member.ts';
import { delay, eventually } from './real-clock.ts';
import type { Stage } from './stage.ts';

export interface Fault {
  readonly id: string;
  readonly what: string;
  strike(stage: Stage): Promise<void> | void;
}

const downMs = [30, 900] as const;
const feltMaxMs = 4000;

const kill: Fault = {
  id: 'F1, F2',
  what: 'SIGKILL: of the leader, of any server, or of all at once',
  async strike(stage) {
    const kind = stage.deck.draw();
    stage.note(`kill of ${kind}`);
    if (kind === 'all') {
      await Promise.all(stage.servers.map((server) => server.kill()));
      for (const server of stage.servers) await stage.killFor(server, stage.between(...downMs));
      return;
    }
    const leader = await stage.world.leader();
    const others = stage.servers.filter((server) => server.running && server !== leader);
    // Of the leader only if there is one: otherwise do not kill another server in its place.
    const victim =
      kind === 'leader' ? (leader ?? (await someLeader(stage))) : (others[stage.random.below(Math.max(1, others.length))] ?? leader);
    if (victim === undefined) return;
    if (kind === 'leader') stage.note('the leader was killed');
    await stage.killFor(victim, stage.between(...downMs));
  },
};

/** The leader, as soon as there is one. */
async function someLeader(stage: Stage): Promise<Member | undefined> {
  for (let tries = 0; tries < 100; tries++) {
    const leader = await stage.world.leader();
    if (leader !== undefined) return leader;
    await delay(30);
  }
  return undefined;
}

const pause: Fault = {
  id: 'F14',
  what: 'SIGSTOP, and SIGCONT some time later: before the others give the server up, or after',
  async strike(stage) {
    const server = stage.random.below(2) === 0 ? await stage.leaderOrAny() : stage.anyServer();
    const ms = stage.between(50, 2500);
    server.pause();
    const fromMs = stage.world.clock.elapsedMs;
    stage.undoAfter(ms, () => {
      server.resume();
      stage.world.recording.pauses.push({ server: server.name, fromMs, toMs: stage.world.clock.elapsedMs });
    });
  },
};

const partition: Fault = {
  id: 'F18, F21',
  what: 'a server is cut off from the others, with clients or without',
  async strike(stage) {
    const server = stage.random.below(2) === 0 ? await stage.leaderOrAny() : stage.anyServer();
    const { cables } = stage.world;
    const others = stage.servers.filter((each) => each !== server).map(({ name }) => name);
    const cutOff = stage.random.below(3) === 0 ? stage.actors.filter(() => stage.random.below(2) === 0).map(({ name }) => name) : [];
    const lanes = [...others, ...cutOff].flatMap((other) => [cables.lane(server.name, other), cables.lane(other, server.name)]);
    stage.disturb(lanes, stage.between(100, 2500), (lane) => {
      lane.cut = true;
    });
  },
};

const oneWay: Fault = {
  id: 'F19',
  what: 'a server can send but not receive, or receive but not send',
  async strike(stage) {
    const server = stage.random.below(2) === 0 ? await stage.leaderOrAny() : stage.anyServer();
    const isDeaf = stage.random.below(2) === 0;
    const { cables } = stage.world;
    const others = stage.servers.filter((each) => each !== server && stage.random.below(3) > 0);
    const lanes = others.map(({ name }) => (isDeaf ? cables.lane(name, server.name) : cables.lane(server.name, name)));
    stage.disturb(lanes, stage.between(100, 2500), (lane) => {
      lane.cut = true;
    });
  },
};

const slow: Fault = {
  id: 'F16',
  what: 'delay and jitter on some links',
  strike(stage) {
    const { cables } = stage.world;
    const names = [...stage.servers, ...stage.actors].map(({ name }) => name);
    const lanes = Array.from({ length: 4 }, () => {
      const [from, to] = [stage.anyServer().name, names[stage.random.below(names.length)]!];
      return stage.random.below(2) === 0 ? cables.lane(from, to) : cables.lane(to, from);
    });
    const [delayMs, jitterMs] = [stage.between(1, 60), stage.between(0, 40)];
    stage.disturb(lanes, stage.between(300, 2000), (lane) => Object.assign(lane, { delayMs, jitterMs }));
  },
};

const dribble: Fault = {
  id: 'F16, F20',
  what: 'a few bytes at a time',
  strike(stage) {
    const { cables } = stage.world;
    const [a, b] = [stage.anyServer(), stage.anyServer()];
    const dribbleBytes = stage.between(1, 40);
    stage.disturb([cables.lane(a.name, b.name)], stage.between(100, 700), (lane) => Object.assign(lane, { dribbleBytes }));
  },
};

const reset: Fault = {
  id: 'F15',
  what: 'connections are reset in the midst of a frame',
  strike(stage) {
    const cables = stage.world.cables.all.filter(({ connections }) => connections.size > 0);
    for (let count = 1 + stage.random.below(4); count > 0 && cables.length > 0; count--) {
      const cable = cables[stage.random.below(cables.length)]!;
      const connection = [...cable.connections][stage.random.below(cable.connections.size)]!;
      const pipe = stage.random.below(2) === 0 ? connection.forth : connection.back;
      pipe.resetAfterBytes = stage.random.below(3) === 0 ? 0 : stage.random.below(600);
      if (pipe.resetAfterBytes === 0) pipe.breakOff();
    }
  },
};

const holdOld: Fault = {
  id: 'F17',
  what: 'a connection is held until another has taken its place, and then released',
  strike(stage) {
    const cables = stage.world.cables.all.filter(({ connections }) => connections.size > 0);
    const cable = cables[stage.random.below(cables.length)];
    if (cable === undefined) return;
    const held = [...cable.connections];
    for (const { forth, back } of held) {
      forth.held = true;
      back.held = stage.random.below(2) === 0;
    }
    stage.undoAfter(stage.between(500, 3000), () => {
      for (const { forth, back } of held) {
        forth.held = back.held = false;
        forth.pump();
        back.pump();
      }
    });
  },
};

/** A disk that fails, and works again at the server's next start. */
async function failDisk(stage: Stage, fault: DiskFault, value: number, ms: number): Promise<void> {
  const server = stage.random.below(2) === 0 ? await stage.leaderOrAny() : stage.anyServer();
  const { disk } = server.parts;
  const { ownEnds } = server;
  const struck = disk.struck ?? 0;
  server.excuses++;
  disk.set(fault, value);
  const calm = stage.disturbance();
  // A server that writes nothing at the moment is not affected.
  await eventually(() => (disk.struck ?? 0) > struck || !server.running, feltMaxMs);
  stage.undoAfter(ms, async () => {
    disk.set('none');
    calm();
    if ((disk.struck ?? 0) > struck) stage.note(`a call to the disk felt ${fault}`);
    if (server.ownEnds > ownEnds) stage.note(`a server ended over ${fault}`);
    // A server affected by the fault may be about to end.
    if (server.running && fault !== 'slowSyncs' && (disk.struck ?? 0) > struck) await server.kill();
    server.excuses--;
    await server.start();
  });
}

const diskFull: Fault = {
  id: 'F9',
  what: 'a disk has no room left',
  strike: (stage) => failDisk(stage, 'full', stage.random.below(5000), stage.between(0, 1000)),
};

const syncFails: Fault = {
  id: 'F10',
  what: 'syncs fail with EIO',
  strike: (stage) => failDisk(stage, 'syncFails', 0, stage.between(0, 1000)),
};

const writeFails: Fault = {
  id: 'F10',
  what: 'writes fail with EIO',
  strike: (stage) => failDisk(stage, 'writeFails', 0, stage.between(0, 1000)),
};

const slowSyncs: Fault = {
  id: 'F11',
  what: 'each sync takes long',
  strike: (stage) => failDisk(stage, 'slowSyncs', stage.between(20, 400), stage.between(500, 2500)),
};

const rollingRestart: Fault = {
  id: 'F23',
  what: 'each server is stopped cleanly and started again, one after the other',
  async strike(stage) {
    for (const server of stage.servers) {
      if (!server.running || server.paused) continue;
      if (!(await server.stop())) stage.world.recording.faults.push(`${server.name} did not end after SIGTERM`);
      await server.start();
      for (let tries = 0; tries < 100 && (await server.mode()) === undefined; tries++) await delay(20);
    }
  },
};

const client: Fault = {
  id: 'F17, F28, F29, F30',
  what: 'a client comes back while its old connection is still there, falls silent, or sends garbage',
  strike(stage) {
    const actor = stage.actors[stage.random.below(stage.actors.length)]!;
    switch (stage.random.below(4)) {
      case 0:
        actor.sleep(stage.between(100, 1500));
        return;
      case 1:
        if (actor instanceof RawClient) actor.halfFrame();
        return;
      case 2:
        if (actor instanceof RawClient) actor.babble();
        return;
      default:
        actor.moveOn();
    }
  },
};

export const faults = {
  kill,
  pause,
  partition,
  oneWay,
  slow,
  dribble,
  reset,
  holdOld,
  diskFull,
  syncFails,
  writeFails,
  slowSyncs,
  rollingRestart,
  client,
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
