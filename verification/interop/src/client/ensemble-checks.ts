/**
 * Our client with ensembles of ZooKeeper's servers: a list that follows their configuration,
 * servers that have lost their quorum, and a session that moves from ZooKeeper's servers to ours
 * and back.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { type Client, connect, type ConnectOptions, fourLetterWord, KeeperError, op } from '@tskeeper/client';

import { launchServer, type ProcessEnsemble, reservePort, type ServerKind, startServer, until } from '@tskeeper/harness';
import { createEnsemble, type InteropOptions } from '../ensemble/ensemble.ts';
import type { Report } from '../report.ts';
import { superAuth } from '../settings.ts';

const java: ServerKind = 'java-3.9.5';
/** A JVM takes seconds for a server's work, and the machine may be busy. */
const waitTimeoutMs = 60_000;

interface EnsembleCheckContext {
  readonly ensemble: ProcessEnsemble;
  /** Opens a session on a server of the ensemble, or of the list; it ends with the check. */
  readonly open: (options?: ConnectOptions, servers?: string) => Promise<Client>;
}

interface EnsembleCheck {
  readonly name: string;
  readonly kinds: readonly ServerKind[];
  readonly options?: InteropOptions;
  readonly run: (context: EnsembleCheckContext) => Promise<void>;
}

const waitUntil = (what: string, look: () => boolean | Promise<boolean>): Promise<true> =>
  until(what, async () => ((await look()) ? true : undefined), waitTimeoutMs);

const outcomeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'Ok',
    (error: unknown) => (KeeperError.is(error) ? `${error.code} ${error.outcome}` : String(error)),
  );

/**
 * A sync does not suffice: ZooKeeper's leader answers one of its own clients before it has applied
 * everything.
 */
async function syncWithLeader(zk: Client): Promise<void> {
  await zk.multi([op.check('/')]);
}

function portOf(zk: Client): number {
  return Number(zk.connectedServer?.split(':').at(-1));
}

const checks: readonly EnsembleCheck[] = [
  {
    name: 'a client that follows the configuration applies each reconfig',
    kinds: [java, java, java],
    options: { config: { reconfigEnabled: true, standaloneEnabled: false } },
    async run({ ensemble, open }) {
      const address = (sid: number) => `127.0.0.1:${ensemble.peer(sid).port}`;
      // A leader that is removed would take the reply with it.
      const leader = (await ensemble.leader()).sid;
      const [leaving, staying] = [1, 2, 3].filter((sid) => sid !== leader) as [number, number];
      const list = (...sids: number[]) => sids.map(address).toSorted().join();
      // It knows only one server and learns of the others.
      const zk = await open({ followConfig: true, sessionTimeoutMs: 10_000 }, address(leaving));
      const operator = await open({ auth: [{ scheme: 'digest', auth: superAuth }] }, address(leader));
      const isListed = (...sids: number[]) => waitUntil(`the list is ${sids.join()}`, () => zk.servers.toSorted().join() === list(...sids));
      await isListed(1, 2, 3);
      const { sessionId } = zk;
      await zk.create('/mine', null, { mode: 'ephemeral', retry: true, idempotent: true });
      await operator.reconfig({ leavingServers: [leaving] });
      await isListed(leader, staying);
      await waitUntil('the client is at a remaining server', () => zk.state === 'connected' && zk.connectedServer !== address(leaving));
      assert.equal((await zk.exists('/mine', { retry: true }))?.ephemeralOwner, sessionId);
      await operator.reconfig({ joiningServers: [`server.${leaving}=${ensemble.serverLines()[`server.${leaving}`]}`] });
      await isListed(1, 2, 3);
      await waitUntil('the client is connected', () => zk.state === 'connected');
      assert.equal((await zk.exists('/mine', { retry: true }))?.ephemeralOwner, sessionId);
      assert.equal(zk.sessionId, sessionId);
    },
  },
  {
    name: 'B39: with one of three servers left, a client that allows read-only reads, and writes as soon as there is a quorum',
    kinds: [java, java, java],
    // ZooKeeper's read-only servers open local sessions, and reject those of the ensemble.
    options: { properties: { 'readonlymode.enabled': true }, config: { localSessionsEnabled: true, localSessionsUpgradingEnabled: true } },
    async run({ ensemble, open }) {
      const left = `127.0.0.1:${ensemble.peer(3).port}`;
      // A write acknowledged elsewhere may not have reached this server when the others are killed.
      const before = await open({}, left);
      await before.create('/a', 'x', { retry: true, idempotent: true });
      await before.close();
      await Promise.all([1, 2].map((sid) => ensemble.kill(sid)));
      await waitUntil('the remaining server is read-only', async () => (await fourLetterWord(left, 'isro')).trim() === 'ro');
      const states: string[] = [];
      const zk = await open({ readOnly: true, sessionTimeoutMs: 60_000, onState: ({ state }) => void states.push(state) });
      assert.deepEqual([zk.state, zk.connectedServer], ['connectedReadOnly', left]);
      assert.equal((await zk.getData('/a')).stat.version, 0);
      assert.equal(await outcomeOf(zk.setData('/a', 'y')), 'NotReadOnly refused');
      assert.equal(await outcomeOf(open({ connectTimeoutMs: 2000 })), 'ConnectionLoss notSent');
      await ensemble.launch([1]);
      await waitUntil('the client is connected to a quorum', () => zk.state === 'connected');
      assert.equal((await zk.setData('/a', 'z', { retry: true, version: 0 })).version, 1);
      assert.equal((await zk.create('/mine', null, { mode: 'ephemeral' })).stat.ephemeralOwner, zk.sessionId);
      assert.deepEqual(
        [states[0], new Set(states)],
        ['ConnectedReadOnly', new Set(['ConnectedReadOnly', 'Disconnected', 'SyncConnected'])],
      );
    },
  },
  {
    name: 'a session moves from ZooKeeper to ours and back, with its ephemeral znodes and its watches',
    kinds: [java, 'ours', java],
    async run({ ensemble, open }) {
      const address = (sid: number) => `127.0.0.1:${ensemble.peer(sid).port}`;
      const zk = await open({ sessionTimeoutMs: 20_000 }, address(1));
      const other = await open({}, address(3));
      const { sessionId } = zk;
      await zk.create('/mine', null, { mode: 'ephemeral' });
      let heard = 0;
      let received = 0;
      let version = 0;
      for (const sid of [2, 3, 2, 1, 3, 1]) {
        await zk.sync('/mine');
        await zk.getData('/mine', {
          watch: ({ type }) => {
            if (type === 'NodeDataChanged') heard++;
          },
        });
        zk.updateServerList(address(sid));
        await waitUntil(`the client is at server ${sid}`, () => zk.state === 'connected' && portOf(zk) === ensemble.peer(sid).port);
        assert.equal((await zk.setData('/mine', String(sid), { version })).version, ++version);
        await syncWithLeader(other);
        assert.equal((await other.exists('/mine'))?.ephemeralOwner, sessionId);
        await waitUntil('the moved watch fires', () => heard === received + 1);
        received = heard;
      }
      assert.equal(zk.sessionId, sessionId);
      await zk.close();
      await syncWithLeader(other);
      assert.equal(await other.exists('/mine'), null);
    },
  },
];

/**
 * A server without a quorum beside one with a quorum, which the client has to find by probing:
 * servers of different ensembles, since these two never meet.
 */
async function checkLeavesReadOnlyServer(): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-read-only-'));
  const port = await reservePort();
  const lines: Record<string, string> = {};
  for (const sid of [1, 2, 3]) lines[`server.${sid}`] = `127.0.0.1:${await reservePort()}:${await reservePort()}`;
  const dataDir = path.join(folder, 'data');
  const lonely = path.join(folder, 'lonely');
  const whole = path.join(folder, 'whole');
  for (const each of [dataDir, lonely, whole]) await mkdir(each);
  await writeFile(path.join(dataDir, 'myid'), '1\n');
  const config = { tickTime: 500, initLimit: 20, syncLimit: 10 };
  const properties = { 'readonlymode.enabled': true, 'zookeeper.admin.enableServer': false };
  const processes = [
    await launchServer(
      { kind: java, folder: lonely, dataDir, config: { ...config, ...lines, localSessionsEnabled: true }, properties },
      port,
    ),
  ];
  try {
    const server = await startServer({ kind: java, folder: whole });
    processes.push(server);
    const heard: string[] = [];
    // With this random number a client on a remaining server stays there when the list changes, so
    // it has to search for the other.
    const random = { uint32: () => 0xffff_ffff };
    const options = {
      readOnly: true,
      connectTimeoutMs: waitTimeoutMs,
      random,
      onState: ({ state }: { state: string }) => void heard.push(state),
    };
    await using zk = await connect(`127.0.0.1:${port}`, options);
    assert.equal(zk.state, 'connectedReadOnly');
    const { sessionId } = zk;
    assert.equal(await outcomeOf(zk.create('/a')), 'NotReadOnly refused');
    const changes: string[] = [];
    await zk.exists('/a', { watch: ({ type }) => void changes.push(type) });
    assert.equal(zk.updateServerList([`127.0.0.1:${port}`, server.connectString]), false);
    await waitUntil('the client has found the server with a quorum', () => zk.connectedServer === server.connectString);
    assert.deepEqual([zk.state, heard], ['connected', ['ConnectedReadOnly', 'Disconnected', 'SyncConnected']]);
    assert.notEqual(zk.sessionId, sessionId);
    await zk.create('/a');
    await waitUntil('the watch has moved', () => changes.includes('NodeCreated'));
  } finally {
    for (const each of processes) await each.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

export async function runClientEnsembles(report: Report): Promise<void> {
  for (const { name, kinds, options, run } of checks) {
    const sids = kinds.map((_, index) => index + 1);
    const title = `client and an ensemble of ${kinds.join(', ')}: ${name}`;
    const specs = kinds.map((kind, index) => ({ sid: index + 1, kind, role: 'participant' as const }));
    const ensemble = await createEnsemble(specs, options);
    const clients: Client[] = [];
    try {
      await ensemble.launch(sids);
      await ensemble.untilServing();
      const open = async (settings: ConnectOptions = {}, servers = ensemble.connectString): Promise<Client> => {
        const client = await connect(servers, { connectTimeoutMs: waitTimeoutMs, ...settings });
        clients.push(client);
        return client;
      };
      await run({ ensemble, open });
      report.pass(title);
    } catch (error) {
      report.fail(title, error instanceof Error ? (error.stack ?? error.message) : String(error));
    } finally {
      await Promise.all(clients.map((client) => client.close()));
      await ensemble[Symbol.asyncDispose]();
    }
  }
  const title = `client: B39, a read-only server is left for one with a quorum, found by probing`;
  try {
    await checkLeavesReadOnlyServer();
    report.pass(title);
  } catch (error) {
    report.fail(title, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}
