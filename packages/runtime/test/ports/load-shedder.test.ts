/**
 * Bytes held for clients are shared by address, then by connection: those that hold most are
 * closed, and others are accepted and served.
 */
import { describe, expect, test } from 'vitest';
import { frame, PortRig, type TestClient } from './port-rig.ts';

const attacker = '10.0.6.6';
const honest = (number: number): string => `10.0.9.${number}`;

/**
 * A port whose clients get replies only as fast as they read, with a limit of 1,000,000 held bytes.
 */
async function openPort(): Promise<PortRig> {
  const rig = await PortRig.open({ options: { inFlightBytesMax: 1_000_000, maxClientCnxns: 0 } });
  rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 100 } : {});
  return rig;
}

/** A client that reads nothing, for which so many bytes are held. */
function hoard(rig: PortRig, address: string, bytes: number): TestClient {
  const id = rig.core.contexts.size;
  const client = rig.join(address);
  client.network.pause(client.stream);
  rig.runTurn(() => rig.core.write(id, Buffer.alloc(bytes - 4)));
  rig.settle();
  return client;
}

function visit(rig: PortRig, address: string): string[] {
  const client = rig.join(address);
  client.send(frame('x'));
  rig.settle();
  const frames = client.frames();
  client.end();
  rig.settle();
  return frames;
}

const livingOf = (clients: readonly TestClient[]): number => clients.filter(({ closed }) => closed === undefined).length;

describe('bytes held for clients', () => {
  test('while 58 connections of one address hold nearly the limit, 142 new ones from other addresses are accepted and served', async () => {
    const rig = await openPort();
    const slow = Array.from({ length: 58 }, () => hoard(rig, attacker, 17_000));
    const served = Array.from({ length: 142 }, (_, index) => visit(rig, honest(index + 1)));
    expect(served.filter((frames) => frames.join() === 'welcome,x')).toHaveLength(142);
    expect(rig.port.inFlightBytes).toBeLessThanOrEqual(750_000);
    // No more of them are closed than necessary.
    expect(livingOf(slow)).toBe(44);
  });

  test('a single address may hold the whole limit, and three quarters of it as soon as there is another address', async () => {
    const rig = await openPort();
    const slow = Array.from({ length: 58 }, () => hoard(rig, attacker, 17_000));
    expect(livingOf(slow)).toBe(58);
    expect(rig.join(honest(1)).frames()).toEqual(['welcome']);
    expect(livingOf(slow)).toBe(44);
  });

  test('above the limit connections of the heaviest address are closed, although a connection of another holds more than each of them', async () => {
    const rig = await openPort();
    const slow = Array.from({ length: 36 }, () => hoard(rig, attacker, 20_000));
    const reader = hoard(rig, honest(1), 330_000);
    expect(reader.closed).toBeUndefined();
    expect(livingOf(slow)).toBe(33);
    expect(rig.port.inFlightBytes).toBeLessThanOrEqual(1_000_000);
    reader.network.resume(reader.stream);
    rig.settle();
    expect(reader.received).toHaveLength(11 + 330_000);
  });

  test('of the heaviest address the connection that holds most is closed', async () => {
    const rig = await openPort();
    const [small, large, middle] = [hoard(rig, attacker, 100_000), hoard(rig, attacker, 400_000), hoard(rig, attacker, 200_000)];
    const other = hoard(rig, honest(1), 310_000);
    expect([small, middle, large, other].map(({ closed }) => closed)).toEqual([undefined, undefined, 'ECONNRESET', undefined]);
    expect(rig.lines.at(-1)).toMatch(/10\.0\.6\.6:\d+ was closed: it held 400000 of the 700000 bytes that are held for 10\.0\.6\.6/);
  });

  test('of many addresses that hold a little each, as few connections as necessary are closed', async () => {
    const rig = await openPort();
    const clients = Array.from({ length: 100 }, (_, index) => hoard(rig, honest(index + 1), 10_000));
    expect(livingOf(clients)).toBe(100);
    const last = [hoard(rig, '10.0.8.1', 9_000), hoard(rig, '10.0.8.2', 9_000)];
    expect(livingOf(clients)).toBe(99);
    expect(livingOf(last)).toBe(2);
  });

  test('events that wait for clients that do not read count, and only the connections of those clients are closed', async () => {
    const rig = await openPort();
    const watchers = Array.from({ length: 20 }, () => hoard(rig, attacker, 5));
    const other = rig.join(honest(1));
    for (let round = 0; round < 100; round++) {
      rig.runTurn(() => {
        for (let id = 0; id < 20; id++) rig.core.write(id, Buffer.alloc(1000));
      });
    }
    rig.settle();
    expect(rig.port.inFlightBytes).toBeLessThanOrEqual(750_000);
    expect(livingOf(watchers)).toBeLessThan(20);
    other.send(frame('x'));
    rig.settle();
    expect(other.frames()).toEqual(['welcome', 'x']);
  });

  test('partly received requests count like replies', async () => {
    const rig = await openPort();
    const senders = Array.from({ length: 30 }, () => rig.join(attacker));
    const other = rig.join(honest(1));
    for (const sender of senders) {
      sender.send(frame('x'.repeat(50_000)).subarray(0, 49_000));
      rig.settle();
    }
    expect(rig.port.inFlightBytes).toBeLessThanOrEqual(750_000);
    expect(other.closed).toBeUndefined();
    expect(livingOf(senders)).toBeGreaterThan(8);
  });

  test('an address that holds more than half is not read where its replies wait; others are', async () => {
    const rig = await openPort();
    const slow = Array.from({ length: 30 }, () => hoard(rig, attacker, 20_000));
    const idle = rig.join(attacker);
    const other = hoard(rig, honest(1), 20_000);
    slow[0]!.send(frame('of a heavy one'));
    idle.send(frame('of one for whom nothing is held'));
    other.send(frame('of a light one'));
    rig.settle();
    expect(rig.core.bodies).toEqual(['of one for whom nothing is held', 'of a light one']);
    for (const client of slow.slice(1)) client.reset();
    rig.settle();
    expect(rig.core.bodies.at(-1)).toBe('of a heavy one');
  });

  test('a large reply that is read slowly holds at most twice its unread part', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 64 * 1024 } : {});
    const client = rig.join();
    client.network.pause(client.stream);
    const held: number[] = [];
    const { network } = rig;
    const send = network.send.bind(network);
    network.send = (batch) => {
      for (let at = 0; at < batch.count; at++) held.push(batch.buffers[at]!.length);
      send(batch);
    };
    rig.runTurn(() => rig.core.write(0, Buffer.alloc(20_000_000)));
    client.network.resume(client.stream);
    rig.clock.advance(1000);
    expect(client.received).toHaveLength(11 + 20_000_004);
    expect(held[0]).toBeGreaterThanOrEqual(20_000_000);
    expect(held.at(-1)).toBeLessThan(3_000_000);
  });
});
