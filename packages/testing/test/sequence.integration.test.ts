/**
 * The end of the sequence numbers as a client of an ensemble sees it: after restarts, after a
 * snapshot from the leader, and at every server.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compareSequences, connect, sequenceOf } from '@tskeeper/client';
import {
  formatZxid,
  logFileHeader,
  makeZxid,
  OpCode,
  openAcl,
  writeFileHeader,
  writeLogEntry,
  Writer,
  writeTxn,
  type Zxid,
} from '@tskeeper/protocol';
import { type Logger, silentLogger } from '@tskeeper/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type EnsembleServer, TestEnsemble } from '../src/index.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tskeeper-sequence-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** A log in which /q has counted this many creates: to execute 2^31 of them would take hours. */
function logAfterCreates(count: number): Buffer {
  const writer = new Writer();
  writeFileHeader(writer, logFileHeader);
  const create = (zxid: Zxid, path: string, parentCVersion: number): void => {
    const txn = new Writer();
    writeTxn(txn, {
      header: { clientHigh: 0, clientLow: 1, cxid: 0, zxid, time: 1, type: OpCode.create },
      txn: { kind: 'create', path, data: null, acl: openAcl, ephemeral: false, parentCVersion },
      digest: undefined,
    });
    writeLogEntry(writer, Buffer.from(txn.written()));
  };
  create(makeZxid(1, 1), '/q', 1);
  create(makeZxid(1, 2), '/q/first', count);
  return Buffer.from(writer.written());
}

const numberOf = (name: string): number => sequenceOf(name, 'n-')!;

async function createsAt(server: EnsembleServer, count = 1): Promise<string[]> {
  await using client = await connect(server.connectString);
  const made = await Promise.all(Array.from({ length: count }, () => client.create('/q/n-', null, { mode: 'ephemeralSequential' })));
  const kept = await client.create('/q/n-', null, { mode: 'persistentSequential' });
  return [...made.map(({ path }) => path), kept.path];
}

it('A6, C3-20: after 2147483647 clients of an ensemble get -2147483648, at each server, after restarts, and from a snapshot of the leader', async () => {
  // Two servers have the log; the third has no data and receives a snapshot.
  for (const sid of [1, 2]) {
    const data = join(folder, `server-${sid}`, 'version-2');
    await mkdir(data, { recursive: true });
    await writeFile(join(data, `log.${makeZxid(1, 1).toString(16)}`), logAfterCreates(2_147_483_644));
  }
  const config = { 'snapshot.trust.empty': true, forceSnapshotSync: true };
  // Servers that have installed a snapshot of the leader, with its zxid.
  const installed: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    info: (message, fields) => {
      if (fields.event === 'snapshot.installed') installed.push(`${message.split(':')[0]} ${fields.zxid}`);
    },
  };
  await using ensemble = await TestEnsemble.start({ servers: 3, storage: { dataDir: folder }, config, logger });
  const [one, two, three] = [1, 2, 3].map((sid) => ensemble.server(sid)) as [EnsembleServer, EnsembleServer, EnsembleServer];
  // It does not lead without the log, and has the counter only from the snapshot.
  expect(ensemble.leader).not.toBe(three);
  expect(installed).toContain(`server 3 ${formatZxid(makeZxid(1, 2))}`);
  const paths = [...(await createsAt(three)), ...(await createsAt(one))];
  expect(paths).toEqual(['/q/n-2147483644', '/q/n-2147483645', '/q/n-2147483646', '/q/n-2147483647']);

  const beyond = await createsAt(two, 2);
  expect(beyond).toEqual(['/q/n--2147483648', '/q/n--2147483647', '/q/n--2147483646']);

  // The counter is in logs and snapshots, so the next leader has it.
  const leader = ensemble.leader;
  await leader.stop();
  expect(await ensemble.elected()).not.toBe(leader);
  await leader.start();
  await ensemble.ready();
  expect(await createsAt(ensemble.leader)).toEqual(['/q/n--2147483645', '/q/n--2147483644']);
  for (const server of ensemble.servers) await server.stop();
  installed.length = 0;
  await Promise.all(ensemble.servers.map((server) => server.start()));
  await ensemble.ready();
  // With forceSnapshotSync every learner has the counter of the leader's snapshot, although each
  // has its own log.
  const learners = ensemble.followers.map(({ sid }) => `server ${sid}`);
  expect([...new Set(installed.map((line) => line.slice(0, 'server 0'.length)))].toSorted()).toEqual(learners);
  expect(await createsAt(three)).toEqual(['/q/n--2147483643', '/q/n--2147483642']);

  const expected = ['n-2147483645', 'n-2147483647', 'n--2147483646', 'n--2147483644', 'n--2147483642'];
  for (const server of ensemble.servers) {
    await using client = await connect(server.connectString);
    await client.sync('/q');
    const { children } = await client.getChildren('/q');
    // A queue is read in the order of creation, although the number has changed its sign.
    expect(children.filter((name) => name !== 'first').toSorted((x, y) => compareSequences(numberOf(x), numberOf(y)))).toEqual(expected);
  }
});
