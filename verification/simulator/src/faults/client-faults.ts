/** Faults that clients cause, by accident or by misbehaviour. */
import { CreateMode, type MultiOp, openAcl } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { RawClient, type SessionDump } from '../clients/raw-client.ts';
import type { Run } from '../run/run.ts';
import type { Fault } from './fault.ts';

/** Operations of a multi that takes a server longer than one step. */
const manyParts = 200;

function submitMulti(client: Actor, sets: number, what: string): void {
  const data = Buffer.from(what);
  const set: MultiOp = { kind: 'setData', path: '/', data, version: -1 };
  const create: MultiOp = { kind: 'create', path: '/q-', data, acl: openAcl, flags: CreateMode.persistentSequential };
  client.submit({ name: 'multi', record: { ops: [...Array.from({ length: sets }, () => set), create] } });
}

export const overlappingCnxns: Fault = {
  id: 'F17',
  description: 'a client resumes its session over a new connection while the old one is still open',
  inject: (run) => run.anyActor().redial(),
};

export const moveThereAndBack: Fault = {
  id: 'F17',
  description: 'a client moves to another server and back to the first, while a request it sent there is pending',
  ensembleOnly: true,
  inject(run, random) {
    const client = run.anyActor();
    if (!(client instanceof RawClient) || !client.ready) return;
    const { servers } = run.world;
    const first = servers.find(({ name }) => name === client.serverName);
    const others = servers.filter((server) => server !== first && server.process?.isServing === true);
    const other = others[random.below(others.length)];
    if (first === undefined || other === undefined) return;
    for (let count = 0; count < 4; count++) {
      client.submit({ name: 'setData', record: { path: '/a', data: Buffer.from(`back ${run.nowMs} ${count}`), version: -1 } });
    }
    client.switchTo(other);
    let looks = 40;
    const back = () => {
      if (run.isHealed) return;
      if (client.ready && client.serverName === other.name) {
        run.hitMark('client moved there and back');
        client.switchTo(first);
      } else if (--looks > 0) {
        run.schedule(0.5, 'back', undefined, back);
      }
    };
    run.schedule(0.5, 'back', undefined, back);
  },
};

export const moveAheadOfRequests: Fault = {
  id: 'F17',
  description: 'a client moves to another server before the requests it sent to the first reach the leader',
  ensembleOnly: true,
  inject(run, random) {
    const client = run.anyActor();
    const { leader } = run;
    if (!(client instanceof RawClient) || !client.ready || leader === undefined) return;
    const { servers } = run.world;
    const first = servers.find(({ name }) => name === client.serverName);
    if (first === undefined || first === leader) return;
    const others = servers.filter((server) => server !== first && server.process?.isServing === true);
    const master = run.masterOf(first) ?? leader;
    // Mostly the leader: it checks only the session for requests of its own clients. Requests that
    // come through one follower have their origin in the packet only.
    const near = master === leader ? [leader] : others.filter((server) => server === master || run.masterOf(server) === master);
    const from = random.below(2) === 0 ? near : others;
    const other = from.length === 1 ? from[0] : from[random.below(from.length)];
    if (other === undefined) return;
    run.slowLink(first, master, 20 + random.below(80), 10 + random.below(40));
    const ask = (count: number) =>
      client.submit({ name: 'setData', record: { path: '/a', data: Buffer.from(`left ${run.nowMs} ${count}`), version: -1 } });
    for (let count = 0; count < 4; count++) ask(count);
    // By now the server has received them.
    run.schedule(4, 'left behind', undefined, () => {
      if (!run.isHealed) client.switchTo(other);
    });
    let looks = 60;
    const goOn = () => {
      if (run.isHealed) return;
      if (client.ready && client.serverName === other.name) {
        run.hitMark('moved ahead of its requests');
        ask(4);
      } else if (--looks > 0) {
        run.schedule(1, 'left behind', undefined, goOn);
      }
    };
    run.schedule(5, 'left behind', undefined, goOn);
  },
};

export const syncAtLaggingServer: Fault = {
  id: 'F17',
  description: 'a server lags, and a client of it syncs after a write of its own while others keep writing to other servers',
  ensembleOnly: true,
  inject(run, random) {
    const { leader, actors } = run;
    const { servers } = run.world;
    const clients = actors.filter((actor) => actor instanceof RawClient && actor.ready) as RawClient[];
    const client = clients.find(({ serverName }) => leader !== undefined && serverName !== leader.name);
    const here = servers.find(({ name }) => name === client?.serverName);
    const elsewhere = actors.filter((actor) => actor !== client && actor.ready);
    if (client === undefined || here === undefined || leader === undefined || elsewhere.length === 0) return;
    const lagMs = 20 + random.below(60);
    // An observer lags with the follower that it learns from, and is as close to it as before.
    const master = run.masterOf(here) ?? leader;
    run.slowLink(master === leader ? here : master, leader, lagMs, 3 * lagMs);
    const write = (actor: Actor, what: string) =>
      actor.submit({ name: 'setData', record: { path: '/a', data: Buffer.from(`${what} ${run.nowMs} ${actor.name}`), version: -1 } });
    write(client, 'lagging');
    for (let atMs = lagMs; atMs < 2 * lagMs; atMs += 4) {
      run.schedule(atMs, 'late sync', undefined, () => {
        const writer = elsewhere[random.below(elsewhere.length)]!;
        if (!run.isHealed && writer.ready) write(writer, 'meanwhile');
      });
    }
    run.schedule(lagMs + run.drawMs(lagMs), 'late sync', undefined, () => {
      if (run.isHealed || !client.ready) return;
      client.submit({ name: 'sync', record: { path: '/a' } });
      client.submit({ name: 'getData', record: { path: '/a', watch: false } });
      run.hitMark('a sync after a write at a lagging server');
    });
  },
};

export const syncAtObserver: Fault = {
  id: 'F16, F17',
  description:
    'a follower lags its leader, and a client of an observer of that follower syncs after a write that another client got acknowledged',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    const observers = run.world.servers.filter((server) => server.role === 'observer' && run.masterOf(server)?.role === 'follower');
    const here = observers.length === 0 ? undefined : observers[random.below(observers.length)];
    if (here === undefined || leader === undefined) return;
    const lagMs = 40 + random.below(100);
    const [reader, writer] = [run.strangers.addPinnedClient(here), run.strangers.addPinnedClient(leader)];
    let looks = lagMs;
    const goOn = () => {
      if (writer.outstandingCount === 0 && !run.isHealed) {
        reader.submit({ name: 'sync', record: { path: '/a' } });
        reader.submit({ name: 'getData', record: { path: '/a', watch: false } });
        run.hitMark('a sync at an observer of a lagging follower');
      } else if (!run.isHealed && --looks > 0) {
        run.schedule(0.5, 'late sync', undefined, goOn);
      }
    };
    // Both must be connected first.
    run.schedule(120, 'late sync', undefined, () => {
      run.schedule(4 * lagMs, 'visitors leave', undefined, () => {
        for (const visitor of [reader, writer]) visitor.send('closeSession', undefined);
      });
      const master = run.masterOf(here);
      if (run.isHealed || !reader.ready || !writer.ready || master === undefined || run.leader !== leader) return;
      run.slowLink(master, leader, lagMs, 3 * lagMs);
      writer.submit({ name: 'setData', record: { path: '/a', data: Buffer.from(`ahead of it ${run.nowMs}`), version: -1 } });
      goOn();
    });
  },
};

export const syncAtSlowDisk: Fault = {
  id: 'F11, F17',
  description:
    'a client syncs at a server with a slow disk: a long write, later writes and the reply to the sync wait for the disk and then become ready at once',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    const others = run.world.servers.filter((server) => server !== leader && server.process?.isServing === true);
    const here = others[random.below(others.length)];
    if (here === undefined || leader === undefined) return;
    const lagMs = 60 + random.below(120);
    const [reader, writer] = [run.strangers.addPinnedClient(here), run.strangers.addPinnedClient(leader)];
    const leave = () => {
      for (const visitor of [reader, writer]) visitor.send('closeSession', undefined);
    };
    let looks = lagMs;
    const goOn = () => {
      if (writer.outstandingCount === 0 && !run.isHealed) {
        reader.submit({ name: 'sync', record: { path: '/a' } });
        reader.submit({ name: 'getData', record: { path: '/a', watch: false } });
        run.hitMark('a sync at a server with a long apply queue');
      } else if (!run.isHealed && --looks > 0) {
        run.schedule(0.5, 'held up', undefined, goOn);
      }
    };
    // Both must be connected first.
    run.schedule(120, 'held up', undefined, () => {
      run.schedule(2 * lagMs, 'visitors leave', undefined, leave);
      if (run.isHealed || !reader.ready || !writer.ready) return;
      run.disks.slowUntil(here, run.nowMs + lagMs);
      writer.submit({ name: 'setData', record: { path: '/', data: Buffer.from(`ahead of it ${run.nowMs}`), version: -1 } });
      submitMulti(writer, manyParts, `held up ${run.nowMs}`);
      for (let count = 0; count < 3; count++) {
        writer.submit({ name: 'setData', record: { path: '/', data: Buffer.from(`behind it ${run.nowMs} ${count}`), version: -1 } });
      }
      goOn();
    });
  },
};

export const reconnectWithPendingRequests: Fault = {
  id: 'F17',
  description: 'a client disconnects while its requests are pending, reconnects to the same server and writes',
  inject(run) {
    const client = run.anyActor();
    if (!(client instanceof RawClient) || !client.ready) return;
    const ask = (count: number) =>
      client.submit({ name: 'setData', record: { path: '/a', data: Buffer.from(`again ${run.nowMs} ${count}`), version: -1 } });
    for (let count = 0; count < 10; count++) ask(count);
    // They have arrived, and few are done.
    run.schedule(3, 'back again', undefined, () => {
      if (!run.isHealed) client.reconnectToSameServer();
    });
    let looks = 60;
    const goOn = () => {
      if (run.isHealed) return;
      if (client.ready) {
        run.hitMark('reconnected to the same server while requests wait');
        ask(10);
      } else if (--looks > 0) {
        run.schedule(0.5, 'back again', undefined, goOn);
      }
    };
    run.schedule(3.5, 'back again', undefined, goOn);
  },
};

/**
 * Sends writes that differ in content, so they can be distinguished even if their xids are equal.
 */
function submitDistinctWrite(client: RawClient, random: SeededRandom, what: string): void {
  const data = Buffer.from(what);
  const counted = { path: '/q-', data, acl: openAcl, flags: CreateMode.persistentSequential };
  switch (random.below(6)) {
    case 0:
      client.submit({ name: 'create2', record: counted });
      return;
    case 1:
      submitMulti(client, random.below(4) === 0 ? manyParts : 1, what);
      return;
    case 2:
      client.submit({ name: 'delete', record: { path: '/e1', version: -1 } });
      return;
    case 3:
      client.submit({ name: 'create', record: { path: '/e1', data, acl: openAcl, flags: CreateMode.ephemeral } });
      return;
    default:
      client.submit({ name: 'setData', record: { path: '/', data, version: -1 } });
  }
}

/** A process may have seen nothing, or what was saved with its session. */
function dumpOf(client: RawClient, random: SeededRandom): SessionDump {
  return random.below(2) === 0 ? client.dump : { ...client.dump, lastZxidSeen: 0 };
}

function readyClient({ actors }: Run, random: SeededRandom): RawClient | undefined {
  const ready = actors.filter((actor) => actor instanceof RawClient && actor.ready) as RawClient[];
  return ready[random.below(Math.max(1, ready.length))];
}

export const resumeSessionFromDump: Fault = {
  id: 'F17',
  description:
    'a client ends with requests in transit, and another process resumes its session from a dump and uses its xids for other requests',
  inject(run, random) {
    const client = readyClient(run, random);
    const { leader } = run;
    if (client === undefined) return;
    const { servers } = run.world;
    const first = servers.find(({ name }) => name === client.serverName);
    const serving = servers.filter((server) => server.process?.isServing === true);
    // A server still busy with the first process's write may receive a write of the second with the
    // same xid.
    const isLong = random.below(2) === 0;
    const next = isLong || random.below(2) === 0 ? first : serving[random.below(serving.length)];
    if (first === undefined || next === undefined) return;
    // The first process's requests may take longer to reach the leader than the second takes to
    // connect.
    if (leader !== undefined && leader !== first && random.below(2) === 0) run.slowLink(first, leader, 5 + random.below(60), 60);
    // Or they are proposed at once and committed after the second process has sent requests.
    if (random.below(2) === 0) for (const server of servers) run.disks.slowUntil(server, run.nowMs + 30 + random.below(60));
    const dump = dumpOf(client, random);
    const count = 2 + random.below(8);
    if (isLong) submitMulti(client, manyParts, `first process ${run.nowMs} long`);
    for (let at = 0; at < count; at++) submitDistinctWrite(client, random, `first process ${run.nowMs} ${at}`);
    run.schedule(1 + run.drawMs(6), 'another process', undefined, () => {
      if (run.isHealed || client.session !== dump.session) return;
      // If the process ended, its machine has closed the connection; if the machine is gone, it has
      // not.
      if (random.below(2) === 0) client.reset();
      client.resumeFrom(dump);
      client.switchTo(next);
      let looks = 600;
      const goOn = () => {
        if (run.isHealed || client.session !== dump.session) return;
        if (client.ready) {
          run.hitMark('a second process resumed a session');
          for (let at = 0; at < count; at++) submitDistinctWrite(client, random, `second process ${run.nowMs} ${at}`);
        } else if (--looks > 0) {
          run.schedule(0.5, 'another process', undefined, goOn);
        }
      };
      goOn();
    });
  },
};

export const sharedSession: Fault = {
  id: 'F17',
  description: 'two processes use one session at once, take it over from each other and use the same xids for different requests',
  inject(run, random) {
    const client = readyClient(run, random);
    if (client === undefined) return;
    const dump = dumpOf(client, random);
    const otherProcess = run.strangers.addSessionSharer(client, dump);
    const untilMs = run.nowMs + 50 + random.below(500);
    const here = run.world.servers.find(({ name }) => name === client.serverName);
    const sameServer = here !== undefined && random.below(2) === 0;
    const ask = (process: RawClient) => {
      if (!process.ready || process.session !== dump.session || process.outstandingCount > 12) return;
      for (let count = 1 + random.below(3); count > 0; count--)
        submitDistinctWrite(process, random, `${process.name} ${run.nowMs} ${count}`);
    };
    ask(client);
    const goOn = () => {
      if (run.isHealed || run.nowMs > untilMs || otherProcess.session !== dump.session || client.session !== dump.session) {
        otherProcess.abandon();
        if (random.below(2) === 0) otherProcess.reset();
        return;
      }
      ask(client);
      ask(otherProcess);
      if (sameServer)
        for (const process of [client, otherProcess]) if (![undefined, here.name].includes(process.serverName)) process.switchTo(here);
      run.schedule(run.drawMs(10), 'twins', undefined, goOn);
    };
    run.schedule(run.drawMs(10), 'twins', undefined, goOn);
  },
};

export const abortedDials: Fault = {
  id: 'F17',
  description:
    'a client abandons several connection attempts before they are answered, so the server asks the leader about its session several times at once',
  ensembleOnly: true,
  inject(run, random) {
    const client = run.anyActor();
    if (!(client instanceof RawClient) || client.session === 0n) return;
    const { servers } = run.world;
    const here = servers[random.below(servers.length)]!;
    const elsewhere = servers[random.below(servers.length)]!;
    client.switchTo(here);
    for (let times = 1 + random.below(4), atMs = 0; times > 0; times--) {
      // Long enough for the server to ask its leader, and too short for most answers.
      atMs += 5 + run.drawMs(7);
      const next = random.below(3) === 0 ? elsewhere : here;
      run.schedule(atMs, 'impatience', undefined, () => {
        if (run.isHealed) return;
        client.abortDial();
        client.switchTo(next);
      });
    }
  },
};

/** Data of each znode, so that a snapshot of all of them takes many steps. */
const massDeleteDataBytes = 400;

export const massDelete: Fault = {
  id: 'F27',
  description: 'a client creates dozens of znodes and then deletes them in random order, while a snapshot of them may be in progress',
  inject(run, random) {
    const client = readyClient(run, random);
    if (client === undefined) return;
    const parent = ['', '/a', '/b'][random.below(3)]!;
    const paths = Array.from({ length: 20 + random.below(60) }, (_, at) => `${parent}/pile-${run.nowMs}-${at}`);
    for (const path of paths) {
      const data = Buffer.from(`${path} `.padEnd(massDeleteDataBytes, '.'));
      client.submit({ name: 'create', record: { path, data, acl: openAcl, flags: CreateMode.persistent } });
    }
    const clear = () => {
      if (run.isHealed || paths.length === 0) return;
      if (client.ready) {
        const [path] = paths.splice(random.below(paths.length), 1);
        client.submit({ name: 'delete', record: { path: path!, version: -1 } });
      }
      run.schedule(run.drawMs(2), 'clear out', undefined, clear);
    };
    run.schedule(run.drawMs(100), 'clear out', undefined, clear);
  },
};

export const clientOffline: Fault = {
  id: 'F28',
  description: 'a client loses its network, possibly for longer than its session timeout',
  inject: (run, random) => run.anyActor().goOffline(random.below(2500)),
};

export const halfFrame: Fault = {
  id: 'F29',
  description: 'a client sends part of a request and then nothing',
  inject(run) {
    const actor = run.anyActor();
    if (actor instanceof RawClient) actor.sendHalfFrame();
  },
};

export const garbageFrame: Fault = {
  id: 'F30',
  description: 'a client sends bytes that are not a request',
  inject(run) {
    const actor = run.anyActor();
    if (actor instanceof RawClient) actor.sendGarbage();
  },
};

export const flood: Fault = {
  id: 'F27',
  description: 'a client sends two hundred requests without waiting for replies',
  inject(run, random) {
    const actor = run.anyActor();
    if (!actor.ready) return;
    for (let count = 0; count < 200; count++) {
      if (random.below(4) > 0) actor.submit({ name: 'exists', record: { path: '/a', watch: false } });
      else actor.submit({ name: 'setData', record: { path: '/', data: Buffer.from(`flood ${run.nowMs} ${count}`), version: -1 } });
    }
  },
};

export const manyIdentities: Fault = {
  id: 'F30',
  description: 'a client adds the credentials of several users, possibly more than it may have identities, with a request after each',
  inject(run, random) {
    const client = readyClient(run, random);
    if (client === undefined) return;
    for (let user = 1 + random.below(6); user > 0; user--) {
      client.submit({ name: 'auth', record: { type: 0, scheme: 'digest', auth: Buffer.from(`user-${user}:secret`) } });
      client.submit({ name: 'setData', record: { path: '/a', data: Buffer.from(`user-${user} ${run.nowMs}`), version: -1 } });
    }
  },
};

export const memoryHog: Fault = {
  id: 'F32',
  description: 'an address starts long requests over several connections and reads no replies',
  inject(run, random) {
    const bytesOfEach = Array.from({ length: 2 + random.below(6) }, () => 2000 + random.below(28_000));
    // With a small window, replies wait at the server.
    const requestsPerCnxn = random.below(2) === 0 ? 1 : 10 + random.below(30);
    run.strangers.addMemoryHog(bytesOfEach, 200 + random.below(1500), {
      requestsPerCnxn,
      windowBytes: requestsPerCnxn === 1 ? undefined : 200,
    });
  },
};

export const halfOpenClient: Fault = {
  id: 'F32',
  description: 'an address opens connections and sends nothing, or only the beginning of a handshake',
  inject(run, random) {
    const bytesOfEach = Array.from({ length: 1 + random.below(8) }, () => (random.below(2) === 0 ? 0 : random.below(40)));
    run.strangers.addHalfOpenClient(bytesOfEach, 200 + random.below(1500));
  },
};

export const impostor: Fault = {
  id: 'F30',
  description: 'a client requests a session of another client with a wrong password, or with a lastZxidSeen from the future',
  inject(run, random) {
    const victim = run.anyActor();
    if (!(victim instanceof RawClient) || victim.session === 0n) return;
    run.strangers.addImpostor(victim, random.below(3) === 0 ? 'later zxid' : 'wrong password');
  },
};
