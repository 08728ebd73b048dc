import { ManualClock } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fourLetterWord, type FourLetterWordOptions } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { settle } from './support/outcomes.ts';
import { ScriptedTransport } from './support/scripted-transport.ts';

describe('B56: a four letter word', () => {
  let world: ClientWorld;

  beforeEach(async () => {
    world = await ClientWorld.start();
  });

  afterEach(async () => {
    await world.close();
  });

  it('is answered by a server, without a session', async () => {
    const { transport, clock } = world.options();
    const text = await world.until(fourLetterWord('server:2181', 'srvr', { transport, clock }));
    expect(text).toMatch(/^Zookeeper version: [\s\S]*\nMode: standalone\n/);
  });

  it('that the server does not allow rejects with Unimplemented, and the error names the setting', async () => {
    const { transport, clock } = world.options();
    const { outcome, error } = await world.until(settle(fourLetterWord('server:2181', 'mntr', { transport, clock })));
    expect(outcome).toBe('Unimplemented refused');
    expect(error!.reason).toBe('the 4lw.commands.whitelist of server:2181 does not have mntr');
  });

  it('rejects an endless answer', async () => {
    const transport = new ScriptedTransport();
    const asked = settle(fourLetterWord('zk', 'dump', { transport, clock: new ManualClock() }));
    await Promise.resolve();
    await Promise.resolve();
    const { latest } = transport;
    latest.sink.connected();
    const piece = Buffer.alloc(1 << 20, 'x');
    for (let pieces = 0; !latest.over && pieces < 1000; pieces++) latest.sink.received(piece);
    expect(latest.destroyed).toBe(true);
    expect(await asked).toMatchObject({
      outcome: 'ConnectionLoss unknown',
      error: { reason: 'zk:2181: its answer is longer than 64 MiB' },
    });
  });

  it('reports why there is no answer', async () => {
    const { transport, clock } = world.options();
    world.kill();
    const { outcome, error } = await world.until(settle(fourLetterWord('server:2181', 'ruok', { transport, clock })));
    expect(outcome).toBe('ConnectionLoss unknown');
    expect(error!.reason).toContain('server:2181: address lookup failed: ');
    await world.boot();
  });
});

describe('B56: a four letter word, with a simulated server', () => {
  const clock = new ManualClock(0);
  const turns = async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };

  class Addresses extends ScriptedTransport {
    resolve(): Promise<readonly string[]> {
      return Promise.resolve(['10.0.0.1', '10.0.0.2']);
    }
  }

  function asking(options: FourLetterWordOptions = {}) {
    const transport = new Addresses();
    const answer = settle(fourLetterWord('zk', 'stat', { transport, clock, ...options }));
    return { transport, answer };
  }

  it('tries the addresses of the name in turn; the answer is complete when the server closes the connection', async () => {
    const { transport, answer } = asking();
    await turns();
    transport.latest.sink.closed('ECONNREFUSED');
    await turns();
    expect(transport.cnxns.map(({ address }) => address)).toEqual([
      { host: '10.0.0.1', port: 2181, name: 'zk' },
      { host: '10.0.0.2', port: 2181, name: 'zk' },
    ]);
    const { sink } = transport.latest;
    sink.connected();
    expect(Buffer.concat(transport.latest.sent).toString()).toBe('stat');
    sink.received(Buffer.from('Clients:\n'));
    sink.received(Buffer.from(' none\n'));
    sink.closed(undefined);
    expect(await answer).toMatchObject({ outcome: 'done', result: 'Clients:\n none\n' });
  });

  it('rejects after a broken connection, as the answer may be incomplete', async () => {
    const { transport, answer } = asking();
    for (const broken of ['ECONNRESET', 'EPIPE']) {
      await turns();
      transport.latest.sink.connected();
      transport.latest.sink.received(Buffer.from('Clients:'));
      transport.latest.sink.closed(broken);
    }
    expect(await answer).toMatchObject({ outcome: 'ConnectionLoss unknown', error: { reason: 'zk:2181: EPIPE' } });
  });

  it('ends at its time-out, and leaves no connection', async () => {
    const { transport, answer } = asking({ timeoutMs: 3000 });
    await turns();
    transport.latest.sink.connected();
    clock.advance(2999);
    expect(transport.latest.destroyed).toBe(false);
    clock.advance(1);
    expect(await answer).toMatchObject({ outcome: 'RequestTimeout unknown', error: { reason: 'no answer from zk within 3000 ms' } });
    expect(transport.latest.destroyed).toBe(true);
  });

  it('can be cancelled, also during name lookup', async () => {
    const early = new AbortController();
    const transport = new Addresses();
    const answer = fourLetterWord('zk', 'ruok', { transport, clock, signal: early.signal });
    early.abort(new Error('enough'));
    await expect(answer).rejects.toThrow('enough');
    await turns();
    expect(transport.cnxns).toEqual([]);
    await expect(fourLetterWord('zk', 'ruok', { transport, clock, signal: early.signal })).rejects.toThrow('enough');
  });

  it.each([
    ['zk', 'SRVR', 'a four letter word must be four lower-case letters, such as srvr, not "SRVR"'],
    ['zk', 'stats', 'not "stats"'],
    ['a,b', 'ruok', 'fourLetterWord takes one server, not "a,b"'],
  ])('sent to "%s" as "%s" is rejected before any connection', async (server, word, complaint) => {
    const transport = new Addresses();
    const { outcome, error } = await settle(fourLetterWord(server, word, { transport, clock }));
    expect(outcome).toBe('BadArguments notSent');
    expect(error!.message).toContain(complaint);
    expect(transport.cnxns).toEqual([]);
    await expect(fourLetterWord('zk:0', 'ruok', { transport, clock })).rejects.toMatchObject({ name: 'ConnectStringError' });
  });
});
