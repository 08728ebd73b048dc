/**
 * Which connection is dropped for a newcomer when all places are taken: never one with a session,
 * and one of an address with many before one of an address with few.
 */
import { describe, expect, test } from 'vitest';
import { frame, handshake, PortRig } from './port-rig.ts';

const attacker = '10.0.6.6';
const honest = (number: number): string => `10.0.9.${number}`;

describe('places for connections', () => {
  test('the oldest connection without a session of the address with the most is dropped, although others are older', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0, maxCnxns: 12 } });
    const slow = rig.dial(honest(1));
    rig.clock.advance(100);
    const silent = Array.from({ length: 11 }, () => rig.dial(attacker));
    rig.clock.advance(1000);
    expect(rig.join(honest(2)).frames()).toEqual(['welcome']);
    expect(silent.map(({ closed }) => closed)).toEqual(['ECONNRESET', ...Array.from({ length: 10 }, () => undefined)]);
    slow.send(handshake());
    rig.settle();
    expect(slow.frames()).toEqual(['welcome']);
  });

  test('a client whose handshake waits for its turn does not count as silent', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0, maxCnxns: 3 } });
    const listener = await rig.port.listen({ address: undefined, port: 2182, backlog: undefined });
    const spoken = [rig.dial(attacker), rig.dial(attacker)];
    const silent = rig.dial(honest(1));
    rig.runTurn((now) => {
      rig.core.busyTurns = 1;
      const bytes = handshake();
      rig.port.received({ count: 2, streams: [0, 1], buffers: [bytes, bytes], starts: [0, 0], ends: [bytes.length, bytes.length] }, now);
      rig.port.accepted(77, listener, { address: honest(2), port: 1 }, { elapsedMs: now.elapsedMs + 1500, wallMs: now.wallMs });
    });
    rig.settle();
    expect(spoken.map((client) => client.frames())).toEqual([['welcome'], ['welcome']]);
    expect(spoken.map(({ closed }) => closed)).toEqual([undefined, undefined]);
    expect(silent.closed).toBe('ECONNRESET');
  });

  test('no session is dropped: an address that has its share is refused near the limit, and others get the last places', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0, maxCnxns: 64 } });
    const sessions = Array.from({ length: 80 }, () => rig.join(attacker));
    expect(sessions.filter(({ closed }) => closed === undefined)).toHaveLength(60);
    expect(rig.lines[0]).toContain('10.0.6.6 has 60 of 64 connections');
    const newcomers = [1, 2, 3, 4].map((number) => rig.join(honest(number)));
    expect(newcomers.map((client) => client.frames())).toEqual(Array.from({ length: 4 }, () => ['welcome']));
    expect(rig.dial(honest(5)).closed).toBe('ECONNRESET');
    for (const client of [...sessions.slice(0, 60), ...newcomers]) client.send(frame('x'));
    rig.settle();
    expect(rig.core.bodies).toHaveLength(64);
    // A place that becomes free is for addresses that have fewer.
    newcomers[0]!.reset();
    rig.settle();
    expect(rig.dial(attacker).closed).toBe('ECONNRESET');
    expect(rig.join(honest(5)).frames()).toEqual(['welcome']);
  });

  test('all places are used when all addresses have equally many connections', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0, maxCnxns: 64 } });
    for (let round = 0; round < 2; round++) {
      for (let number = 1; number <= 32; number++) expect(rig.join(honest(number)).frames()).toEqual(['welcome']);
    }
    expect(rig.port.cnxnCount).toBe(64);
  });
});
