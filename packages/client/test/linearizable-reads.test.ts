/** Reads that see everything acknowledged before them: a sync and the read, sent together. */
import { type Codec, ErrorCode, type OperationName, operations, type ReplyOf, type Stat } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { type Client, connect, type NodeEvent, op } from '../src/index.ts';
import { ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, describeFrames, notification, reply } from './support/server-frames.ts';

const stat: Stat = {
  czxid: 1,
  mzxid: 2,
  ctime: 3,
  mtime: 4,
  version: 5,
  cversion: 6,
  aversion: 7,
  ephemeralOwner: 0n,
  dataLength: 9,
  numChildren: 10,
  pzxid: 11,
};

class Script {
  readonly clock = new ManualClock();
  readonly transport = new ScriptedTransport();
  #xid = 0;

  async connect(): Promise<Client> {
    const { clock, transport } = this;
    const joined = connect('a,b', { transport, clock, random: new SeededRandom(1) });
    await this.dialled();
    this.begin();
    return joined;
  }

  /** A server accepts the latest connection. */
  begin(): void {
    const { sink } = this.transport.latest;
    sink.connected();
    sink.received(connectResponse());
    this.transport.latest.sent.length = 0;
  }

  /** Waits until the client has dialled again. */
  async dialled(): Promise<void> {
    const count = this.transport.cnxns.length;
    while (this.transport.cnxns.length === count) {
      this.clock.advance(100);
      await this.#settle();
    }
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  }

  /** What the client has sent since, per write. */
  async sent(): Promise<string[]> {
    await this.#settle();
    return this.transport.latest.sent.splice(0).map((bytes) => describeFrames(bytes, false).join(', '));
  }

  answer<Name extends OperationName>(name: Name, body: ReplyOf<Name> | { readonly err: number }): Buffer {
    const xid = ++this.#xid;
    if ('err' in (body as object) && name !== 'addWatch') return reply(xid, 9, (body as { err: number }).err);
    return reply(xid, 9, 0, (writer) => (operations[name].reply as Codec<ReplyOf<Name>>).write(writer, body as ReplyOf<Name>));
  }

  /** Leaves a request without an answer. */
  skip(): void {
    this.#xid++;
  }

  hear(...frames: readonly Buffer[]): void {
    this.transport.latest.sink.received(Buffer.concat(frames));
  }
}

const data = { data: Buffer.from('new'), stat };

describe('a linearizable read', () => {
  it('D8: is sent with its sync in one write, and takes one round trip', async () => {
    const script = new Script();
    const zk = await script.connect();
    const read = zk.getData('/a', { linearizable: true });
    const sent = await script.sent();
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatch(/^sync.* getData/);
    script.hear(script.answer('sync', { path: '/' }), script.answer('getData', data));
    expect((await read).stat.version).toBe(5);
  });

  it('is possible with every read method', async () => {
    const script = new Script();
    const zk = await script.connect();
    const linearizable = true;
    const reads = [
      zk.exists('/a', { linearizable }),
      zk.getChildren('/a', { linearizable }),
      zk.getACL('/a', { linearizable }),
      zk.getAllChildrenNumber('/a', { linearizable }),
      zk.getEphemerals('/', { linearizable }),
      zk.getConfig({ linearizable }),
      zk.multiRead([op.getData('/a')], { linearizable }),
    ];
    const [sent] = await script.sent();
    expect(sent!.match(/sync/g)).toHaveLength(reads.length);
    expect(
      sent!
        .split(', ')
        .filter((_, index) => index % 2 === 0)
        .every((line) => line.includes('sync')),
    ).toBe(true);
    for (const read of reads) read.catch(() => undefined);
  });

  it('is off by default: a plain read sends no sync', async () => {
    const script = new Script();
    const zk = await script.connect();
    void zk.getData('/a', { linearizable: false }).catch(() => undefined);
    expect((await script.sent())[0]).not.toContain('sync');
  });

  it('fails as its sync does, whatever the read returns, and then sets no watch', async () => {
    for (const answer of [data, { err: ErrorCode.NoNode }]) {
      const script = new Script();
      const zk = await script.connect();
      const events: NodeEvent[] = [];
      const read = zk.exists('/a', { linearizable: true, watch: (event) => void events.push(event as NodeEvent) });
      await script.sent();
      const body = 'err' in answer ? answer : { stat };
      script.hear(script.answer('sync', { err: ErrorCode.NotReadOnly }), script.answer('exists', body));
      await expect(read).rejects.toMatchObject({ code: 'NotReadOnly', op: 'exists', path: '/a' });
      script.hear(notification(3, '/a'));
      await script.sent();
      expect(events).toEqual([]);
    }
  });

  it('fails as the read does', async () => {
    const script = new Script();
    const zk = await script.connect();
    const read = zk.getData('/a', { linearizable: true });
    await script.sent();
    script.hear(script.answer('sync', { path: '/' }), script.answer('getData', { err: ErrorCode.NoNode }));
    await expect(read).rejects.toMatchObject({ code: 'NoNode', op: 'getData', path: '/a' });
  });

  it('D8: is never answered by another server than the synced one', async () => {
    const script = new Script();
    const zk = await script.connect();
    const read = zk.getData('/a', { linearizable: true });
    await script.sent();
    script.hear(script.answer('sync', { path: '/' }));
    script.skip();
    script.transport.latest.sink.closed('reset');
    await expect(read).rejects.toMatchObject({ code: 'ConnectionLoss' });
    // Called without a connection, both wait for the next one.
    const other = zk.getData('/a', { linearizable: true });
    await script.dialled();
    script.transport.latest.sink.connected();
    script.transport.latest.sink.received(connectResponse());
    expect((await script.sent()).join(', ')).toMatch(/sync.* getData/);
    script.hear(script.answer('sync', { path: '/' }), script.answer('getData', data));
    expect((await other).stat.version).toBe(5);
  });

  it('keeps its order relative to events', async () => {
    const script = new Script();
    const zk = await script.connect();
    const order: string[] = [];
    zk.on('event', ({ path }) => order.push(path));
    const read = (async () => {
      await zk.getData('/a', { linearizable: true });
      order.push('answer');
    })();
    await script.sent();
    script.hear(
      notification(3, '/before'),
      script.answer('sync', { path: '/' }),
      script.answer('getData', data),
      notification(3, '/after'),
    );
    await read;
    await script.sent();
    expect(order).toEqual(['/before', 'answer', '/after']);
  });
});
