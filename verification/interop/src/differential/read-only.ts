/**
 * Compares read-only mode with ZooKeeper's: one server of three, alone, of either kind in turn. The
 * same handshakes and requests go to both, and every byte of the answers must be the same.
 *
 * Local sessions are off, so the servers open no session; they take one that they do not know for
 * alive if its client has the password, which is how the requests of all kinds get in.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { FrameCutter, frameOf, launchServer, reservePort, type ServerKind, sessionPasswd } from '@tskeeper/harness';
import { openAcl, operations, type OperationName, writeConnectRequest, writeRequestHeader, Writer, Xid } from '@tskeeper/protocol';
import type { Report } from '../report.ts';
import { reference } from './run.ts';

/** A session that no server has opened, with the top byte of another server. */
const sessionId = 0x0300_0000_1234_5678n;
const answerMs = 20_000;
const start = { path: '/', watch: false };
const node = { path: '/a', data: Buffer.from('x'), acl: openAcl, flags: 0 };
const part = { kind: 'setData' as const, path: '/', data: null, version: -1 };

const requests: readonly (readonly [OperationName, unknown])[] = [
  ['ping', undefined],
  ['exists', start],
  ['exists', { path: '/a', watch: true }],
  ['getData', { path: '/', watch: true }],
  ['getACL', { path: '/' }],
  ['getChildren', start],
  ['getChildren2', { path: '/zookeeper', watch: true }],
  ['getAllChildrenNumber', { path: '/' }],
  ['getEphemerals', { prefixPath: '/' }],
  ['multiRead', { ops: [{ kind: 'getChildren', ...start }] }],
  ['whoAmI', undefined],
  ['auth', { type: 0, scheme: 'digest', auth: Buffer.from('me:secret') }],
  ['addWatch', { path: '/', mode: 1 }],
  ['checkWatches', { path: '/', type: 3 }],
  ['removeWatches', { path: '/', type: 3 }],
  ['setWatches', { relativeZxid: 0, dataWatches: ['/a'], existWatches: ['/zookeeper'], childWatches: [] }],
  [
    'setWatches2',
    {
      relativeZxid: 0,
      dataWatches: ['/none'],
      existWatches: [],
      childWatches: ['/'],
      persistentWatches: ['/'],
      persistentRecursiveWatches: [],
    },
  ],
  ['create', node],
  ['create', { ...node, flags: 1 }],
  ['create2', node],
  ['createContainer', { ...node, flags: 4 }],
  ['createTTL', { ...node, flags: 5, ttl: 1000 }],
  ['delete', { path: '/a', version: -1 }],
  ['deleteContainer', { path: '/a' }],
  ['setData', { path: '/', data: null, version: -1 }],
  ['setACL', { path: '/', acl: openAcl, version: -1 }],
  ['multi', { ops: [part] }],
  ['multi', { ops: [] }],
  ['reconfig', { joiningServers: null, leavingServers: '3', newMembers: null, curConfigId: -1 }],
  ['sync', { path: '/' }],
  ['closeSession', undefined],
  ['exists', start],
  ['check', { path: '/', version: -1 }],
];

interface Hello {
  readonly readOnly: boolean | undefined;
  readonly session?: bigint;
  readonly passwd?: Buffer;
  readonly lastZxidSeen?: number;
}

/**
 * Sends a handshake, and each of the frames after the answer to the one before; ZooKeeper answers
 * some requests before earlier ones. Returns all that comes back, up to the last answer or the end.
 */
async function exchange(port: number, hello: Hello, frames: readonly Buffer[] = []): Promise<string[]> {
  const { session = 0n, passwd = sessionPasswd(session), lastZxidSeen = 0, readOnly } = hello;
  const writer = new Writer();
  writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen, timeOut: 10_000, sessionId: session, passwd, readOnly });
  const waiting = [frameOf(Buffer.from(writer.written())), ...frames];
  const socket = connect({ host: '127.0.0.1', port });
  const cutter = new FrameCutter();
  const heard: string[] = [];
  await new Promise<void>((resolve) => {
    const sendNext = () => {
      const next = waiting.shift();
      if (next === undefined) resolve();
      else socket.write(next);
    };
    socket.setTimeout(answerMs, () => {
      heard.push('silence');
      resolve();
    });
    socket.on('error', () => resolve());
    socket.on('end', () => {
      heard.push('closed');
      resolve();
    });
    socket.on('data', (chunk) => {
      for (const frame of cutter.push(chunk)) {
        heard.push(frame.toString('hex'));
        if (frame.readInt32BE(0) !== Xid.notification) sendNext();
      }
    });
    sendNext();
  });
  socket.destroy();
  return heard;
}

function frameFor([name, record]: (typeof requests)[number], at: number): Buffer {
  const writer = new Writer();
  const { opCode, request } = operations[name];
  writeRequestHeader(writer, { xid: name === 'ping' ? Xid.ping : name === 'auth' ? Xid.auth : 1 + at, type: opCode });
  (request as { write(to: Writer, value: unknown): void }).write(writer, record);
  return frameOf(Buffer.from(writer.written()));
}

/** What a read-only server of this kind answers, by the names of the questions. */
async function observe(kind: ServerKind, lines: Readonly<Record<string, string>>): Promise<Map<string, string>> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-read-only-'));
  const dataDir = path.join(folder, 'data');
  await mkdir(dataDir);
  await writeFile(path.join(dataDir, 'myid'), '1\n');
  const port = await reservePort();
  const config = { tickTime: 500, initLimit: 20, syncLimit: 10, extendedTypesEnabled: true, ...lines };
  const server = await launchServer(
    { kind, folder, dataDir, config, properties: { 'readonlymode.enabled': true, 'log.level': 'OFF' } },
    port,
  );
  try {
    const isReadOnly = async () => (await server.fourLetterWord('isro').catch(() => '')).trim() === 'ro';
    await server.untilReady({ isReady: isReadOnly });
    const found = new Map<string, string>();
    const note = async (what: string, hello: Hello) => {
      found.set(what, (await exchange(port, hello)).join());
    };
    await note('a client that does not accept it', { readOnly: false });
    await note('a client that does not know of it', { readOnly: undefined });
    await note('a new session', { readOnly: true });
    await note('a session', { readOnly: true, session: sessionId });
    await note('a wrong password', { readOnly: true, session: sessionId, passwd: Buffer.alloc(16) });
    await note('a later zxid', { readOnly: true, session: sessionId, lastZxidSeen: 1 });
    const replies = await exchange(port, { readOnly: true, session: sessionId }, requests.map(frameFor));
    found.set('the number of replies and events', String(replies.length));
    for (const [at, reply] of replies.entries()) found.set(`answer ${at}`, reply);
    found.set('isro', await server.fourLetterWord('isro'));
    const srvr = await server.fourLetterWord('srvr');
    found.set(
      'srvr',
      ['READ-ONLY mode; serving only read-only clients', 'Mode: read-only'].filter((line) => srvr.includes(`${line}\n`)).join(),
    );
    found.set('mntr', /^zk_server_state\t.*$/m.exec(await server.fourLetterWord('mntr'))?.[0] ?? '');
    return found;
  } finally {
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

export async function runReadOnlyComparison(kind: ServerKind, report: Report): Promise<void> {
  const lines: Record<string, string> = {};
  // Both have the same configuration; they run one after the other.
  for (const sid of [1, 2, 3]) lines[`server.${sid}`] = `127.0.0.1:${await reservePort()}:${await reservePort()}`;
  const expected = await observe(reference, lines);
  const found = await observe(kind, lines);
  const name = `differential: ${requests.length} requests to a read-only server, ${reference} and ${kind}`;
  const differences = [...expected].filter(([what, answer]) => found.get(what) !== answer);
  if (differences.length === 0) report.pass(name);
  else report.fail(name, differences.map(([what, answer]) => `${what}: ${answer} and ${found.get(what)}`).join('\n'));
}
