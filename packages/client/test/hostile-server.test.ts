/**
 * A server that sends arbitrary bytes. Whatever it sends, nothing is thrown, every call settles,
 * and the client works with the next, correct server.
 */
import {
  type Codec,
  EventType,
  openAcl,
  type OperationName,
  operations,
  readConnectRequest,
  Reader,
  type ReplyOf,
  type Stat,
  type Writer,
  writeStat,
} from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { type Client, connect, KeeperError, op } from '../src/index.ts';
import { ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, notification, reply } from './support/server-frames.ts';

const stat: Stat = {
  czxid: 1,
  mzxid: 2,
  ctime: 3,
  mtime: 4,
  version: 5,
  cversion: 6,
  aversion: 7,
  ephemeralOwner: 8n,
  dataLength: 9,
  numChildren: 10,
  pzxid: 11,
};

interface Exchange {
  readonly ask: (zk: Client) => Promise<unknown>;
  readonly answer: (writer: Writer) => void;
}

function exchange<Name extends OperationName>(name: Name, answer: ReplyOf<Name>, ask: (zk: Client) => Promise<unknown>): Exchange {
  const codec = operations[name].reply as Codec<ReplyOf<Name>>;
  return { ask, answer: (writer) => codec.write(writer, answer) };
}

const watch = () => {};

/** Calls, and correct answers to them. */
const talk: readonly Exchange[] = [
  exchange('create2', { path: '/a', stat }, (zk) => zk.create('/a', 'x')),
  exchange('exists', { stat }, (zk) => zk.exists('/a', { watch })),
  exchange('getData', { data: Buffer.from('data'), stat }, (zk) => zk.getData('/a', { watch })),
  exchange('getChildren2', { children: ['b', 'c'], stat }, (zk) => zk.getChildren('/a')),
  exchange('getACL', { acl: openAcl, stat }, (zk) => zk.getACL('/a')),
  exchange('setData', { stat }, (zk) => zk.setData('/a', 'x')),
  exchange('multi', { results: [{ kind: 'create2', path: '/b', stat }, { kind: 'delete' }] }, (zk) =>
    zk.multi([op.create('/b'), op.delete('/b')]),
  ),
  exchange(
    'multiRead',
    {
      results: [
        { kind: 'getData', data: Buffer.from('x'), stat },
        { kind: 'error', err: -101 },
      ],
    },
    (zk) => zk.multiRead([op.getData('/b'), op.getChildren('/c')]),
  ),
  exchange('getEphemerals', { ephemerals: ['/e'] }, (zk) => zk.getEphemerals()),
  exchange('whoAmI', { clientInfo: [{ authScheme: 'ip', user: 'x' }] }, (zk) => zk.whoAmI()),
  exchange('addWatch', { err: 0 }, (zk) => zk.addWatch('/p', { watch })),
  exchange('sync', { path: '/a' }, (zk) => zk.sync('/a')),
];

const honest: readonly Buffer[] = [
  connectResponse(),
  ...talk.flatMap(({ answer }, index) => [
    reply(index + 1, index + 1, 0, answer),
    ...(index % 3 === 0 ? [notification(EventType.nodeDataChanged, '/a', index + 1)] : []),
  ]),
];

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Corrupts a stream of frames in a random way. */
function spoil(random: SeededRandom): Buffer {
  const frames = honest.map((frame) => Buffer.from(frame));
  for (let times = random.below(4); times >= 0; times--) {
    // The first is the handshake; it is corrupted too, but less often than the rest.
    const at = random.below(8) === 0 ? 0 : 1 + random.below(frames.length - 1);
    const frame = frames[at]!;
    // Already too corrupt.
    if (frame.length < 8) continue;
    switch (random.below(8)) {
      case 0:
        frame[random.below(frame.length)] = random.below(256);
        break;
      case 1:
        frame.writeInt32BE(random.uint32() | 0, random.below(4) === 0 ? 0 : Math.min(4 * random.below(frame.length / 4), frame.length - 4));
        break;
      case 2:
        frames[at] = frame.subarray(0, random.below(frame.length));
        break;
      case 3:
        frames.splice(at, 0, Buffer.from(frame));
        break;
      case 4:
        frames.splice(at, 1);
        frames.push(Buffer.from(frame));
        break;
      case 5:
        frames.splice(at, 0, Buffer.from(Array.from({ length: random.below(40) }, () => random.below(256))));
        break;
      case 6:
        // The correct length with wrong content.
        frames[at] = Buffer.concat([frame.subarray(0, 4), Buffer.from(Array.from({ length: frame.length - 4 }, () => random.below(256)))]);
        break;
      default:
        frame.writeInt32BE([-1, -2, -4, -8, 0, 1, 0x7fffffff][random.below(7)]!, 4);
        break;
    }
    if (frames.length < 2) break;
  }
  return Buffer.concat(frames);
}

/**
 * One client, one hostile server, and then a correct one. Returns whether the client was disturbed
 * and recovered.
 */
async function story(seed: number): Promise<string> {
  const random = new SeededRandom(seed);
  const clock = new ManualClock();
  const transport = new ScriptedTransport();
  const connecting = connect('one,two', { transport, clock, random: new SeededRandom(seed), sessionTimeoutMs: 9000 });
  clock.advance(0);
  transport.latest.sink.connected();
  // Half of the time the handshake is correct, so that the rest is reached.
  const bytes = random.below(2) === 0 ? Buffer.concat([honest[0]!, spoil(random).subarray(honest[0]!.length)]) : spoil(random);
  const first = transport.latest;
  const feed = (from: number, to: number) => {
    for (let at = from; at < to && !first.over;) {
      const end = Math.min(to, at + 1 + random.below(200));
      first.sink.received(Buffer.from(bytes.subarray(at, end)));
      at = end;
    }
  };
  feed(0, Math.min(bytes.length, honest[0]!.length));
  const [early] = await Promise.race([Promise.allSettled([connecting]), turn().then(() => [undefined])]);
  const calls = early?.status === 'fulfilled' ? talk.map(({ ask }) => ask(early.value)) : [];
  const settled = Promise.allSettled(calls);
  await turn();
  feed(honest[0]!.length, bytes.length);
  if (!first.over) first.sink.closed('ECONNRESET');
  const results = await settled;
  for (const result of results) if (result.status === 'rejected') expect(KeeperError.is(result.reason)).toBe(true);
  // A correct server.
  const before = transport.cnxns.length;
  for (let ms = 0; transport.cnxns.length === before && ms < 2000; ms += 10) clock.advance(10);
  expect(transport.cnxns.length).toBeGreaterThan(before);
  transport.latest.sink.connected();
  const { sessionId } = readConnectRequest(new Reader(transport.latest.sent[0], 4));
  transport.latest.sink.received(connectResponse({ session: sessionId === 0n ? 0x100n : sessionId }));
  const zk = await connecting;
  expect(zk.state).toBe('connected');
  const asked = zk.exists('/a');
  await turn();
  const frames = transport.latest.sent.at(-1)!;
  // The last frame is the request; the answer needs its xid.
  const xid = frames.readInt32BE(frames.length - 4 - 4 - 2 - 1 - 4);
  transport.latest.sink.received(reply(xid, 1_000_000, 0, (writer) => writeStat(writer, stat)));
  expect((await asked)?.version).toBe(5);
  return results.some(({ status }) => status === 'rejected') ? 'recovered' : 'unharmed';
}

/** `TSKEEPER_HOSTILE_STORIES=100000`, with `--test-timeout=0`, for a long run. */
const stories = Number(process.env['TSKEEPER_HOSTILE_STORIES'] ?? breadth(60, 500));

describe('a hostile server', () => {
  it('does not stop the client from working, whatever it sends', async () => {
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= stories; seed++) {
      const end = await story(seed).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      });
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    // All results occur, above all the one that matters.
    expect([...ends.keys()].sort()).toEqual(['recovered', 'unharmed']);
    expect(ends.get('recovered')).toBeGreaterThan(stories / 4);
  });

  it('is left at once when it sends invalid data, and the client reports the reason', async () => {
    const clock = new ManualClock();
    const transport = new ScriptedTransport();
    const connecting = connect('one,two', { transport, clock, random: new SeededRandom(1), sessionTimeoutMs: 9000 });
    clock.advance(0);
    transport.latest.sink.connected();
    transport.latest.sink.received(honest[0]!);
    const zk = await connecting;
    const reasons: (string | undefined)[] = [];
    zk.on('state', ({ reason }) => void reasons.push(reason));
    const asked = zk.exists('/a');
    await turn();
    const host = transport.latest.address.host;
    transport.latest.sink.received(Buffer.from('HTTP/1.1 400 Bad Request\r\n'));
    await expect(asked).rejects.toMatchObject({ code: 'ConnectionLoss', outcome: 'unknown', cause: { name: 'ProtocolError' } });
    expect(transport.latest.destroyed).toBe(true);
    await turn();
    expect(reasons).toEqual([
      `${host}:2181: the server sent invalid data: expected a frame of 0 to 1049599 bytes, not 1213486160 at byte 0`,
    ]);
  });

  /** A client of a scripted server, with a recursive watch on `/w`. */
  async function watching(): Promise<{ readonly zk: Client; readonly transport: ScriptedTransport; readonly events: string[] }> {
    const clock = new ManualClock();
    const transport = new ScriptedTransport();
    const connecting = connect('one,two', { transport, clock, random: new SeededRandom(1), sessionTimeoutMs: 9000 });
    clock.advance(0);
    transport.latest.sink.connected();
    transport.latest.sink.received(honest[0]!);
    const zk = await connecting;
    const events: string[] = [];
    const added = zk.addWatch('/w', { mode: 'persistentRecursive', watch: ({ path }) => void events.push(String(path).slice(0, 9)) });
    await turn();
    transport.latest.sink.received(reply(1, 1, 0, (writer) => writer.int32(0)));
    await added;
    return { zk, transport, events };
  }

  it.each(['abc', 'a/b', ''])('is left when it sends an event of an invalid path: "%s"', async (path) => {
    const { zk, transport, events } = await watching();
    transport.latest.sink.received(notification(EventType.nodeDataChanged, path, 2));
    await turn();
    expect([transport.latest.destroyed, zk.state]).toEqual([true, 'suspended']);
    expect(events).toEqual(['null']);
  });

  it('does not keep the client busy with an event of a very long path', async () => {
    const { transport, events } = await watching();
    transport.latest.sink.received(notification(EventType.nodeDataChanged, '/w'.repeat(500_000), 2));
    transport.latest.sink.received(notification(EventType.nodeDataChanged, '/'.repeat(1_000_000), 2));
    transport.latest.sink.received(notification(EventType.nodeDataChanged, `/wx${'/y'.repeat(400_000)}`, 2));
    await turn();
    expect(events).toEqual(['/w/w/w/w/']);
    expect(transport.latest.destroyed).toBe(false);
  });
});
