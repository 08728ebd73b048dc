/** Faults that clients cause, by accident or by misbehaviour. */
import { CreateMode, type MultiOp, openAcl } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { RawClient, type SessionDump } from '../clients/raw-client.ts';
import type { Stage } from '../story/stage.ts';
import type { Fault } from './fault.ts';

/** Operations of a multi that takes a server longer than one step. */
const manyParts = 200;

function askMulti(client: Actor, sets: number, what: string): void {
  const data = Buffer.from(what);
  const set: MultiOp = { kind: 'setData', path: '/', data, version: -1 };
  const create: MultiOp = { kind: 'create', path: '/q-', data, acl: openAcl, flags: CreateMode.persistentSequential };
  client.ask({ name: 'multi', record: { ops: [...Array.from({ length: sets }, () => set), create] } });
}

export const move: Fault = {
  id: 'F17',
  what: 'a client resumes its session over a new connection while the old one is still open',
  strike: (stage) => stage.anyActor().moveOn(),
};

export const thereAndBack: Fault = {
  id: 'F17',
  what: 'a client moves to another server and back to the first, while a request it sent there is pending',
  ofEnsembles: true,
  strike(stage, random) {
    const client = stage.anyActor();
    if (!(client instanceof RawClient) || !client.ready) return;
    const { servers } = stage.world;
    const first = servers.find(({ name }) => name === client.serverName);
    const others = servers.filter((server) => server !== first && server.process?.serving === true);
    const other = others[random.below(others.length)];
    if (first === undefined || other === undefined) return;
    for (let count = 0; count < 4; count++) {
      client.ask({ name: 'setData', record: { path: '/a', data: Buffer.from(`back ${stage.nowMs} ${count}`), version: -1 } });
    }
    client.goTo(other);
    let looks = 40;
    const back = () => {
      if (stage.isHealed) return;
      if (client.ready && client.serverName === other.name) {
        stage.note('a client went there and back');
        client.goTo(first);
      } else if (--looks > 0) {
        stage.after(0.5, 'back', undefined, back);
      }
    };
    stage.after(0.5, 'back', undefined, back);
  },
};

export const leftBehind: Fault = {
  id: 'F17',
  what: 'a client moves to another server before the requests it sent to the first reach the leader',
  ofEnsembles: true,
  strike(stage, random) {
    const client = stage.anyActor();
    const { leader } = stage;
    if (!(client instanceof RawClient) || !client.ready || leader === undefined) return;
    const { servers } = stage.world;
    const first = servers.find(({ name }) => name === client.serverName);
    if (first === undefined || first === leader) return;
    const others = servers.filter((server) => server !== first && server.process?.serving === true);
    // Mostly the leader: it checks only the session for requests of its own clients.
    const other = random.below(2) === 0 ? leader : others[random.below(others.length)];
    if (other === undefined) return;
    stage.slowBetween(first, leader, 20 + random.below(80), 10 + random.below(40));
    const ask = (count: number) =>
      client.ask({ name: 'setData', record: { path: '/a', data: Buffer.from(`left ${stage.nowMs} ${count}`), version: -1 } });
    for (let count = 0; count < 4; count++) ask(count);
    // By now the server has received them.
    stage.after(4, 'left behind', undefined, () => {
      if (!stage.isHealed) client.goTo(other);
    });
    let looks = 60;
    const goOn = () => {
      if (stage.isHealed) return;
      if (client.ready && client.serverName === other.name) {
        stage.note('left behind what it had asked');
        ask(4);
      } else if (--looks > 0) {
        stage.after(1, 'left behind', undefined, goOn);
      }
    };
    stage.after(5, 'left behind', undefined, goOn);
  },
};

export const lateSync: Fault = {
  id: 'F17',
  what: 'a server lags, and a client of it syncs after a write of its own while others keep writing to other servers',
  ofEnsembles: true,
  strike(stage, random) {
    const { leader, actors } = stage;
    const { servers } = stage.world;
    const clients = actors.filter((actor) => actor instanceof RawClient && actor.ready) as RawClient[];
    const client = clients.find(({ serverName }) => leader !== undefined && serverName !== leader.name);
    const here = servers.find(({ name }) => name === client?.serverName);
    const elsewhere = actors.filter((actor) => actor !== client && actor.ready);
    if (client === undefined || here === undefined || leader === undefined || elsewhere.length === 0) return;
    const lagMs = 20 + random.below(60);
    stage.slowBetween(here, leader, lagMs, 3 * lagMs);
    const write = (actor: Actor, what: string) =>
      actor.ask({ name: 'setData', record: { path: '/a', data: Buffer.from(`${what} ${stage.nowMs} ${actor.name}`), version: -1 } });
    write(client, 'lagging');
    for (let atMs = lagMs; atMs < 2 * lagMs; atMs += 4) {
      stage.after(atMs, 'late sync', undefined, () => {
        const writer = elsewhere[random.below(elsewhere.length)]!;
        if (!stage.isHealed && writer.ready) write(writer, 'meanwhile');
      });
    }
    stage.after(lagMs + stage.fraction(lagMs), 'late sync', undefined, () => {
      if (stage.isHealed || !client.ready) return;
      client.ask({ name: 'sync', record: { path: '/a' } });
      client.ask({ name: 'getData', record: { path: '/a', watch: false } });
      stage.note('a sync behind a write at a server that lags');
    });
  },
};

export const heldUp: Fault = {
  id: 'F11, F17',
  what: 'a client syncs at a server with a slow disk: a long write, later writes and the reply to the sync wait for the disk and then become ready at once',
  ofEnsembles: true,
  strike(stage, random) {
    const { leader } = stage;
    const others = stage.world.servers.filter((server) => server !== leader && server.process?.serving === true);
    const here = others[random.below(others.length)];
    if (here === undefined || leader === undefined) return;
    const lagMs = 60 + random.below(120);
    const [reader, writer] = [stage.addVisitor(here), stage.addVisitor(leader)];
    const leave = () => {
      for (const visitor of [reader, writer]) visitor.send('closeSession', undefined);
    };
    let looks = lagMs;
    const goOn = () => {
      if (writer.outstandingCount === 0 && !stage.isHealed) {
        reader.ask({ name: 'sync', record: { path: '/a' } });
        reader.ask({ name: 'getData', record: { path: '/a', watch: false } });
        stage.note('a sync at a server that has much to apply');
      } else if (!stage.isHealed && --looks > 0) {
        stage.after(0.5, 'held up', undefined, goOn);
      }
    };
    // Both must be connected first.
    stage.after(120, 'held up', undefined, () => {
      stage.after(2 * lagMs, 'visitors leave', undefined, leave);
      if (stage.isHealed || !reader.ready || !writer.ready) return;
      stage.slowDiskUntil(here, stage.nowMs + lagMs);
      writer.ask({ name: 'setData', record: { path: '/', data: Buffer.from(`ahead of it ${stage.nowMs}`), version: -1 } });
      askMulti(writer, manyParts, `held up ${stage.nowMs}`);
      for (let count = 0; count < 3; count++) {
        writer.ask({ name: 'setData', record: { path: '/', data: Buffer.from(`behind it ${stage.nowMs} ${count}`), version: -1 } });
      }
      goOn();
    });
  },
};

export const backAgain: Fault = {
  id: 'F17',
  what: 'a client disconnects while its requests are pending, reconnects to the same server and writes',
  strike(stage) {
    const client = stage.anyActor();
    if (!(client instanceof RawClient) || !client.ready) return;
    const ask = (count: number) =>
      client.ask({ name: 'setData', record: { path: '/a', data: Buffer.from(`again ${stage.nowMs} ${count}`), version: -1 } });
    for (let count = 0; count < 10; count++) ask(count);
    // They have arrived, and few are done.
    stage.after(3, 'back again', undefined, () => {
      if (!stage.isHealed) client.comeBack();
    });
    let looks = 60;
    const goOn = () => {
      if (stage.isHealed) return;
      if (client.ready) {
        stage.note('back at the same server while requests wait');
        ask(10);
      } else if (--looks > 0) {
        stage.after(0.5, 'back again', undefined, goOn);
      }
    };
    stage.after(3.5, 'back again', undefined, goOn);
  },
};

/** Sends writes that differ in content, so they can be told apart even if their xids are equal. */
function askApart(client: RawClient, random: SeededRandom, what: string): void {
  const data = Buffer.from(what);
  const counted = { path: '/q-', data, acl: openAcl, flags: CreateMode.persistentSequential };
  switch (random.below(6)) {
    case 0:
      client.ask({ name: 'create2', record: counted });
      return;
    case 1:
      askMulti(client, random.below(4) === 0 ? manyParts : 1, what);
      return;
    case 2:
      client.ask({ name: 'delete', record: { path: '/e1', version: -1 } });
      return;
    case 3:
      client.ask({ name: 'create', record: { path: '/e1', data, acl: openAcl, flags: CreateMode.ephemeral } });
      return;
    default:
      client.ask({ name: 'setData', record: { path: '/', data, version: -1 } });
  }
}

/** A process may have seen nothing, or what was saved with its session. */
function dumpOf(client: RawClient, random: SeededRandom): SessionDump {
  return random.below(2) === 0 ? client.dump : { ...client.dump, lastZxidSeen: 0 };
}

function readyClient({ actors }: Stage, random: SeededRandom): RawClient | undefined {
  const ready = actors.filter((actor) => actor instanceof RawClient && actor.ready) as RawClient[];
  return ready[random.below(Math.max(1, ready.length))];
}

export const restartedClient: Fault = {
  id: 'F17',
  what: 'a client ends with requests in transit, and another process resumes its session from a dump and uses its xids for other requests',
  strike(stage, random) {
    const client = readyClient(stage, random);
    const { leader } = stage;
    if (client === undefined) return;
    const { servers } = stage.world;
    const first = servers.find(({ name }) => name === client.serverName);
    const serving = servers.filter((server) => server.process?.serving === true);
    // A server still busy with the first process's write may receive a write of the second with the
    // same xid.
    const isLong = random.below(2) === 0;
    const next = isLong || random.below(2) === 0 ? first : serving[random.below(serving.length)];
    if (first === undefined || next === undefined) return;
    // The first process's requests may take longer to reach the leader than the second takes to
    // connect.
    if (leader !== undefined && leader !== first && random.below(2) === 0) stage.slowBetween(first, leader, 5 + random.below(60), 60);
    // Or they are proposed at once and committed after the second process has sent requests.
    if (random.below(2) === 0) for (const server of servers) stage.slowDiskUntil(server, stage.nowMs + 30 + random.below(60));
    const dump = dumpOf(client, random);
    const count = 2 + random.below(8);
    if (isLong) askMulti(client, manyParts, `first process ${stage.nowMs} long`);
    for (let at = 0; at < count; at++) askApart(client, random, `first process ${stage.nowMs} ${at}`);
    stage.after(1 + stage.fraction(6), 'another process', undefined, () => {
      if (stage.isHealed || client.session !== dump.session) return;
      // If the process ended, its machine has closed the connection; if the machine is gone, it has
      // not.
      if (random.below(2) === 0) client.reset();
      client.goOnFrom(dump);
      client.goTo(next);
      let looks = 600;
      const goOn = () => {
        if (stage.isHealed || client.session !== dump.session) return;
        if (client.ready) {
          stage.note('another process went on with a session');
          for (let at = 0; at < count; at++) askApart(client, random, `second process ${stage.nowMs} ${at}`);
        } else if (--looks > 0) {
          stage.after(0.5, 'another process', undefined, goOn);
        }
      };
      goOn();
    });
  },
};

export const twins: Fault = {
  id: 'F17',
  what: 'two processes use one session at once, take it over from each other and use the same xids for different requests',
  strike(stage, random) {
    const client = readyClient(stage, random);
    if (client === undefined) return;
    const dump = dumpOf(client, random);
    const twin = stage.addTwin(client, dump);
    const untilMs = stage.nowMs + 50 + random.below(500);
    const here = stage.world.servers.find(({ name }) => name === client.serverName);
    const areAtOne = here !== undefined && random.below(2) === 0;
    const ask = (process: RawClient) => {
      if (!process.ready || process.session !== dump.session || process.outstandingCount > 12) return;
      for (let count = 1 + random.below(3); count > 0; count--) askApart(process, random, `${process.name} ${stage.nowMs} ${count}`);
    };
    ask(client);
    const goOn = () => {
      if (stage.isHealed || stage.nowMs > untilMs || twin.session !== dump.session || client.session !== dump.session) {
        twin.retire();
        if (random.below(2) === 0) twin.reset();
        return;
      }
      ask(client);
      ask(twin);
      if (areAtOne) for (const process of [client, twin]) if (![undefined, here.name].includes(process.serverName)) process.goTo(here);
      stage.after(stage.fraction(10), 'twins', undefined, goOn);
    };
    stage.after(stage.fraction(10), 'twins', undefined, goOn);
  },
};

export const impatience: Fault = {
  id: 'F17',
  what: 'a client abandons several connection attempts before they are answered, so the server asks the leader about its session several times at once',
  ofEnsembles: true,
  strike(stage, random) {
    const client = stage.anyActor();
    if (!(client instanceof RawClient) || client.session === 0n) return;
    const { servers } = stage.world;
    const here = servers[random.below(servers.length)]!;
    const elsewhere = servers[random.below(servers.length)]!;
    client.goTo(here);
    for (let times = 1 + random.below(4), atMs = 0; times > 0; times--) {
      // Long enough for the server to ask its leader, and too short for most answers.
      atMs += 5 + stage.fraction(7);
      const next = random.below(3) === 0 ? elsewhere : here;
      stage.after(atMs, 'impatience', undefined, () => {
        if (stage.isHealed) return;
        client.giveUpDial();
        client.goTo(next);
      });
    }
  },
};

/** Data of each znode, so that a snapshot of all of them takes many steps. */
const pileDataBytes = 400;

export const clearOut: Fault = {
  id: 'F27',
  what: 'a client creates dozens of znodes and then deletes them in random order, while a snapshot of them may be in progress',
  strike(stage, random) {
    const client = readyClient(stage, random);
    if (client === undefined) return;
    const parent = ['', '/a', '/b'][random.below(3)]!;
    const paths = Array.from({ length: 20 + random.below(60) }, (_, at) => `${parent}/pile-${stage.nowMs}-${at}`);
    for (const path of paths) {
      const data = Buffer.from(`${path} `.padEnd(pileDataBytes, '.'));
      client.ask({ name: 'create', record: { path, data, acl: openAcl, flags: CreateMode.persistent } });
    }
    const clear = () => {
      if (stage.isHealed || paths.length === 0) return;
      if (client.ready) {
        const [path] = paths.splice(random.below(paths.length), 1);
        client.ask({ name: 'delete', record: { path: path!, version: -1 } });
      }
      stage.after(stage.fraction(2), 'clear out', undefined, clear);
    };
    stage.after(stage.fraction(100), 'clear out', undefined, clear);
  },
};

export const sleep: Fault = {
  id: 'F28',
  what: 'a client loses its network, possibly for longer than its session timeout',
  strike: (stage, random) => stage.anyActor().sleep(random.below(2500)),
};

export const halfFrame: Fault = {
  id: 'F29',
  what: 'a client sends part of a request and then nothing',
  strike(stage) {
    const actor = stage.anyActor();
    if (actor instanceof RawClient) actor.halfFrame();
  },
};

export const babble: Fault = {
  id: 'F30',
  what: 'a client sends bytes that are not a request',
  strike(stage) {
    const actor = stage.anyActor();
    if (actor instanceof RawClient) actor.babble();
  },
};

export const flood: Fault = {
  id: 'F27',
  what: 'a client sends two hundred requests without waiting for replies',
  strike(stage, random) {
    const actor = stage.anyActor();
    if (!actor.ready) return;
    for (let count = 0; count < 200; count++) {
      if (random.below(4) > 0) actor.ask({ name: 'exists', record: { path: '/a', watch: false } });
      else actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(`flood ${stage.nowMs} ${count}`), version: -1 } });
    }
  },
};

export const manyNames: Fault = {
  id: 'F30',
  what: 'a client adds the credentials of several users, possibly more than it may have identities, with a request after each',
  strike(stage, random) {
    const client = readyClient(stage, random);
    if (client === undefined) return;
    for (let user = 1 + random.below(6); user > 0; user--) {
      client.ask({ name: 'auth', record: { type: 0, scheme: 'digest', auth: Buffer.from(`user-${user}:secret`) } });
      client.ask({ name: 'setData', record: { path: '/a', data: Buffer.from(`user-${user} ${stage.nowMs}`), version: -1 } });
    }
  },
};

export const hoard: Fault = {
  id: 'F32',
  what: 'an address starts long requests over several connections and reads no replies',
  strike(stage, random) {
    const bytesOfEach = Array.from({ length: 2 + random.below(6) }, () => 2000 + random.below(28_000));
    // With a small window, replies wait at the server.
    const asks = random.below(2) === 0 ? 1 : 10 + random.below(30);
    stage.addHoarder(bytesOfEach, 200 + random.below(1500), { asks, windowBytes: asks === 1 ? undefined : 200 });
  },
};

export const loiter: Fault = {
  id: 'F32',
  what: 'an address opens connections and sends nothing, or only the beginning of a handshake',
  strike(stage, random) {
    const bytesOfEach = Array.from({ length: 1 + random.below(8) }, () => (random.below(2) === 0 ? 0 : random.below(40)));
    stage.addLoiterer(bytesOfEach, 200 + random.below(1500));
  },
};

export const impostor: Fault = {
  id: 'F30',
  what: 'a client requests a session of another client with a wrong password, or with a lastZxidSeen from the future',
  strike(stage, random) {
    const victim = stage.anyActor();
    if (!(victim instanceof RawClient) || victim.session === 0n) return;
    stage.addImpostor(victim, random.below(3) === 0 ? 'from the future' : 'wrong password');
  },
};
