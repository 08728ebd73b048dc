import { describe, expect, test } from 'vitest';
import { electionPortDefaults } from '../../src/internal.ts';
import { addressOf, electionPort, frameOf, initialOf, noteOf, RawHost, Rig, RigNode, serverOf } from './peer-rig.ts';

const one = serverOf(1);
const two = serverOf(2);
const three = serverOf(3);
const own = (sid: number) => [{ host: addressOf(sid), port: electionPort }];

/** Server 2 alone, among raw hosts. */
async function openTwo(servers = [one, two, three], setup = {}): Promise<{ rig: Rig; node: RigNode }> {
  const rig = new Rig();
  return { rig, node: await new RigNode(rig, 2, servers, setup).listen() };
}

async function hostOf(rig: Rig, address: string): Promise<RawHost> {
  const host = new RawHost(rig, address);
  await host.listen(electionPort);
  return host;
}

/** A server that sends its vote over each connection that it accepts. */
async function speakingHostOf(rig: Rig, address: string): Promise<RawHost> {
  const host = await hostOf(rig, address);
  host.says = frameOf(noteOf(0));
  return host;
}

describe('which connection is kept', () => {
  test('a smaller server is dialled, gets the introduction, and is kept', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(1));
    node.notify(1, noteOf(7));
    await rig.settle();
    const [end] = host.accepted;
    expect(end!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(7))]));
    expect(end!.pieces.length).toBe(1);
    end!.send(frameOf(noteOf(3)));
    await rig.settle();
    expect(node.events).toEqual(['reachable 1', '1: 3']);
  });

  test('a larger server is dialled, gets the introduction, and is closed: it has to dial', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(3));
    node.notify(3, noteOf(7));
    await rig.settle();
    const [end] = host.accepted;
    expect(end!.received).toEqual(initialOf(2, own(2)));
    expect([end!.ended, end!.closed]).toEqual([true, 'end']);
    expect(node.events).toEqual([]);
    const back = host.dial(addressOf(2), electionPort);
    back.send(initialOf(3, own(3)));
    await rig.settle();
    expect(back.received).toEqual(frameOf(noteOf(7)));
    expect(node.events).toEqual(['reachable 3']);
  });

  test('a larger server that dials is kept, and replaces the earlier connection', async () => {
    const { rig, node } = await openTwo();
    const host = new RawHost(rig, addressOf(3));
    const first = host.dial(addressOf(2), electionPort);
    first.send(initialOf(3, own(3)));
    await rig.settle();
    const second = host.dial(addressOf(2), electionPort);
    second.send(Buffer.concat([initialOf(3, own(3)), frameOf(noteOf(4))]));
    await rig.settle();
    expect([first.closed, second.closed]).toEqual(['end', undefined]);
    first.send(frameOf(noteOf(9)));
    node.notify(3, noteOf(7));
    await rig.run(3000, 100);
    expect(second.received).toEqual(frameOf(noteOf(7)));
    expect(node.events).toEqual(['reachable 3', 'reachable 3', '3: 4']);
  });

  test('the late initial message of an older connection does not replace a newer one', async () => {
    const { rig, node } = await openTwo();
    const host = new RawHost(rig, addressOf(3));
    const first = host.dial(addressOf(2), electionPort);
    await rig.settle();
    const second = host.dial(addressOf(2), electionPort);
    second.send(initialOf(3, own(3)));
    await rig.settle();
    first.send(initialOf(3, own(3)));
    await rig.settle();
    expect([first.closed, second.closed]).toEqual(['end', undefined]);
    expect(node.events).toEqual(['reachable 3']);
  });

  test('a smaller server that dials is closed, with the earlier connection, and dialled at the address it names', async () => {
    const { rig, node } = await openTwo();
    const host = await speakingHostOf(rig, addressOf(1));
    const elsewhere = await speakingHostOf(rig, '10.0.1.1');
    node.notify(1, noteOf(7));
    await rig.settle();
    const asking = host.dial(addressOf(2), electionPort);
    asking.send(
      initialOf(
        1,
        own(1).map(({ port }) => ({ host: '10.0.1.1', port })),
      ),
    );
    await rig.settle();
    expect([asking.closed, host.accepted[0]!.closed, host.accepted.length]).toEqual(['end', 'end', 1]);
    expect(elsewhere.accepted[0]!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(7))]));
    expect(node.events).toEqual(['reachable 1', '1: 0', 'reachable 1', '1: 0']);
  });

  test('a smaller server that names a wildcard, or an unreachable address, is dialled at its configured address', async () => {
    for (const named of ['0.0.0.0', '10.0.7.7']) {
      const { rig, node } = await openTwo();
      const host = await speakingHostOf(rig, addressOf(1));
      const asking = host.dial(addressOf(2), electionPort);
      asking.send(initialOf(1, [{ host: named, port: electionPort }]));
      await rig.settle();
      expect(host.accepted[0]!.received).toEqual(initialOf(2, own(2)));
      expect(node.events).toEqual(['reachable 1', '1: 0']);
    }
  });

  test('the connection of a server with the number of this server, or one below 0, is closed and logged', async () => {
    for (const sid of [2, -5]) {
      const { rig, node } = await openTwo();
      const end = new RawHost(rig, '10.0.9.9').dial(addressOf(2), electionPort);
      end.send(initialOf(sid, own(2)));
      await rig.settle();
      expect(end.closed).toBe('end');
      expect(node.events).toEqual([]);
      expect(node.lines.length).toBe(1);
      expect(node.lines[0]).toContain('10.0.9.9');
    }
  });

  test('observers without a number are kept, and numbered -1, -2', async () => {
    const { rig, node } = await openTwo();
    const ends = [8, 9].map((last) => new RawHost(rig, `10.0.9.${last}`).dial(addressOf(2), electionPort));
    for (const end of ends) {
      end.send(Buffer.concat([initialOf(undefined, own(9)), frameOf(noteOf(1))]));
      await rig.settle();
    }
    node.notify(-2, noteOf(5));
    await rig.settle();
    expect(ends.map((end) => end.received.length)).toEqual([0, frameOf(noteOf(5)).length]);
    expect(node.events).toEqual(['reachable -1', '-1: 1', 'reachable -2', '-2: 1']);
    for (const end of ends) end.reset();
    await rig.settle();
    node.notify(-2, noteOf(6));
    expect(node.lines.at(-1)).toBe('Server -2 is not in the configuration, so no vote is sent to it.');
  });

  test('a server of 3.4 sends only its number: a larger one is kept, a smaller one dialled back', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(1));
    const larger = new RawHost(rig, addressOf(3)).dial(addressOf(2), electionPort);
    const sidThree = Buffer.alloc(8);
    sidThree.writeInt32BE(3, 4);
    const sidOne = Buffer.alloc(8);
    sidOne.writeInt32BE(1, 4);
    larger.send(sidThree);
    const smaller = host.dial(addressOf(2), electionPort);
    smaller.send(sidOne);
    await rig.settle();
    expect([larger.closed, smaller.closed]).toEqual([undefined, 'end']);
    expect(host.accepted.at(-1)!.received).toEqual(initialOf(2, own(2)));
    expect(node.events.toSorted()).toContain('reachable 3');
  });

  test('a connection with an unknown version of the protocol is closed, with one log line', async () => {
    const { rig, node } = await openTwo();
    const end = new RawHost(rig, '10.0.9.9').dial(addressOf(2), electionPort);
    const bytes = initialOf(3, own(3));
    bytes.writeInt32BE(-65534, 4);
    end.send(bytes);
    await rig.settle();
    expect(end.closed).toBe('end');
    expect(node.lines).toEqual([
      '10.0.9.9:32768 was closed on the election port: expected a version of the election protocol, not -65534 at byte 0.',
    ]);
  });

  test('with multiAddress.enabled the initial message names all own addresses', async () => {
    const both = { ...two, electionAddresses: [...own(2), { host: 'fe80::2', port: 1 }] };
    for (const multiAddressEnabled of [false, true]) {
      const { rig, node } = await openTwo([one, both], { election: { multiAddressEnabled } });
      const host = await hostOf(rig, addressOf(1));
      node.notify(1, noteOf(7));
      await rig.settle();
      const greeting = multiAddressEnabled ? initialOf(2, both.electionAddresses, -65535) : initialOf(2, own(2));
      expect(host.accepted[0]!.received).toEqual(Buffer.concat([greeting, frameOf(noteOf(7))]));
    }
  });
});

describe('two servers that dial each other', () => {
  /**
   * Delays of dials and of bytes in every combination, and one server starting before the other.
   */
  const delays = [0, 1, 2, 5];

  async function expectMeeting(aheadMs: number, delayMs: (from: string, to: string) => number): Promise<void> {
    const rig = new Rig();
    rig.wire.conditionsOf = (from, to) => ({ delayMs: delayMs(from, to) });
    const [smaller, larger] = await Promise.all([1, 2].map((sid) => new RigNode(rig, sid, [one, two]).listen()));
    const begins = aheadMs >= 0 ? [smaller!, larger!] : [larger!, smaller!];
    begins[0]!.notify(3 - begins[0]!.sid, noteOf(10 + begins[0]!.sid));
    await rig.run(Math.abs(aheadMs));
    begins[1]!.notify(3 - begins[1]!.sid, noteOf(10 + begins[1]!.sid));
    await rig.run(60);
    const settled = [smaller!.network.acceptedCount, larger!.network.acceptedCount];
    await rig.run(4000, 500);
    expect([smaller!.network.acceptedCount, larger!.network.acceptedCount], 'no server continues to dial').toEqual(settled);
    expect(rig.cnxns.length).toBe(1);
    expect(rig.cnxns[0]!.dialer.address).toBe(addressOf(2));
    expect(smaller!.events.at(-1)).toBe('2: 12');
    expect(larger!.events.at(-1)).toBe('1: 11');
    for (const node of [smaller!, larger!]) expect(node.events.filter((event) => event.startsWith('unreachable'))).toEqual([]);
    // And the connection works.
    smaller!.notify(2, noteOf(21));
    larger!.notify(1, noteOf(22));
    await rig.run(20);
    expect([smaller!.events.at(-1), larger!.events.at(-1)]).toEqual(['2: 22', '1: 21']);
  }

  test('keep one connection, dialled by the larger, whichever is first and however long each direction takes', async () => {
    for (const aheadMs of [-6, -3, -2, -1, 0, 1, 2, 3, 4, 6, 11]) {
      for (const there of delays) for (const back of delays) await expectMeeting(aheadMs, (from) => (from === addressOf(1) ? there : back));
    }
  });

  test('keep one connection when each connection has its own delays', async () => {
    for (let seed = 1; seed <= 300; seed++) {
      let state = seed;
      const next = (below: number): number => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return (state >>> 16) % below;
      };
      await expectMeeting(next(9) - 4, () => next(8));
    }
  });

  test('keep one connection after the earlier one was reset on both sides at once', async () => {
    for (const there of delays) {
      for (const back of delays) {
        const rig = new Rig();
        rig.wire.conditionsOf = (from) => ({ delayMs: from === addressOf(1) ? there : back });
        const [smaller, larger] = await Promise.all([1, 2].map((sid) => new RigNode(rig, sid, [one, two]).listen()));
        larger!.notify(1, noteOf(1));
        smaller!.notify(2, noteOf(1));
        await rig.run(100);
        for (const { forward } of rig.cnxns) forward.resetAfter(0);
        smaller!.notify(2, noteOf(2));
        await rig.run(100);
        const settled = smaller!.network.acceptedCount;
        await rig.run(4000, 500);
        expect(smaller!.network.acceptedCount).toBe(settled);
        expect(rig.cnxns.map(({ dialer }) => dialer.address)).toEqual([addressOf(2)]);
        expect([smaller!.events.at(-1), larger!.events.at(-1)]).toEqual(['2: 1', '1: 2']);
      }
    }
  });
});

describe('a larger server', () => {
  test('is asked to dial at most twice a second, however many messages there are', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(3));
    for (let round = 1; round <= 40; round++) {
      node.notify(3, noteOf(round));
      await rig.run(10);
    }
    expect(host.accepted.length).toBe(1);
    await rig.run(100, 10);
    expect(host.accepted.length).toBe(2);
    host.dial(addressOf(2), electionPort).send(initialOf(3, own(3)));
    await rig.run(2000, 100);
    expect(host.accepted.length).toBe(2);
    expect(node.events).toEqual(['reachable 3']);
  });

  test('is not asked to dial again when it dials while it is being dialled', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(3));
    rig.wire.conditionsOf = (_from, to) => ({ delayMs: to === addressOf(3) ? 20 : 1 });
    const dialling = host.dial(addressOf(2), electionPort);
    dialling.send(initialOf(3, own(3)));
    await rig.run(5);
    node.notify(3, noteOf(1));
    await rig.run(100);
    expect(host.accepted).toEqual([]);
    expect(dialling.received).toEqual(frameOf(noteOf(1)));
    expect(node.network.streamCount).toBe(1);
  });
});

describe('messages', () => {
  async function withOne(setup = {}) {
    const { rig, node } = await openTwo(undefined, setup);
    const host = await hostOf(rig, addressOf(1));
    node.notify(1, noteOf(1));
    await rig.settle();
    return { rig, node, host, end: host.accepted[0]! };
  }

  test('that wait for a server that reads nothing are replaced by the newest', async () => {
    const { rig, node, end } = await withOne();
    const { forward } = rig.cnxns[0]!;
    forward.conditions.windowBytes = 10;
    for (const round of [2, 3, 4, 5]) node.notify(1, noteOf(round));
    await rig.settle();
    forward.conditions.windowBytes = 1000;
    forward.conditionsChanged();
    await rig.settle();
    const greeting = initialOf(2, own(2));
    expect(end.received).toEqual(Buffer.concat([greeting, ...[1, 2, 5].map((round) => frameOf(noteOf(round)))]));
  });

  test('of one turn are replaced by the newest', async () => {
    const { rig, node, end } = await withOne();
    node.runTurn(() => [2, 3, 4].forEach((round) => node.election.notify(1, noteOf(round))));
    await rig.settle();
    expect(end.received.subarray(initialOf(2, own(2)).length)).toEqual(Buffer.concat([frameOf(noteOf(1)), frameOf(noteOf(4))]));
  });

  test('are sent again over a new connection when they are the last, unless a newer one waits', async () => {
    const { rig, node, host, end } = await withOne();
    host.says = frameOf(noteOf(0));
    end.send(host.says);
    await rig.settle();
    end.reset();
    await rig.settle();
    const [, again] = host.accepted;
    expect(again!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(1))]));
    again!.reset();
    await rig.settle();
    host.accepted[2]!.reset();
    await rig.settle();
    // It was dialled just now, twice; the next message dials.
    expect(host.accepted.length).toBe(3);
    node.notify(1, noteOf(2));
    await rig.settle();
    expect(host.accepted[3]!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(2))]));
  });

  test('E20: are logged when they cannot be decoded, and do not close the connection', async () => {
    const { rig, node, end } = await withOne();
    const bad = frameOf(noteOf(5));
    bad.writeInt32BE(9, 4);
    end.send(Buffer.concat([bad, Buffer.from('0000000101', 'hex'), frameOf(noteOf(6))]));
    await rig.settle();
    expect(end.closed).toBeUndefined();
    expect(node.events).toEqual(['reachable 1', '1: 6']);
    expect(node.lines).toEqual([
      'A notification of server 1 at 10.0.0.1:3888 was dropped: expected the state of a server, not 9 at byte 4.',
      expect.stringContaining('A notification of server 1 at 10.0.0.1:3888 was dropped: '),
    ]);
  });

  test('cause few log lines when a thousand of them cannot be decoded', async () => {
    const { rig, node, end } = await withOne();
    for (let count = 0; count < 1000; count++) end.send(Buffer.from('0000000101', 'hex'));
    end.send(frameOf(noteOf(6)));
    await rig.settle();
    expect(node.events.at(-1)).toBe('1: 6');
    expect(node.lines.length).toBeLessThan(30);
  });

  test('with 1 to 524288 bytes are received; any other length closes the connection', async () => {
    const longest = Buffer.alloc(4 + 524_288);
    frameOf(noteOf(9)).copy(longest);
    longest.writeInt32BE(524_288);
    for (const length of [0, -1, 524_289, 0x7fffffff]) {
      const { rig, node, end } = await withOne();
      end.send(longest);
      await rig.settle();
      expect(node.events.at(-1)).toBe('1: 9');
      const head = Buffer.alloc(4);
      head.writeInt32BE(length);
      end.send(head);
      await rig.settle();
      expect(end.closed).toBe('end');
      expect(node.lines).toEqual([
        `Server 1 at 10.0.0.1:3888 was closed on the election port: expected a frame of 1 to 524288 bytes, not ${length} at byte 0.`,
      ]);
    }
  });

  test('are received in pieces, in order and completely when many arrive at once', async () => {
    const { rig, node, end } = await withOne();
    const rounds = Array.from({ length: 1000 }, (_, round) => round);
    end.send(Buffer.concat(rounds.map((round) => frameOf(noteOf(round)))));
    end.end();
    await rig.settle();
    await rig.settle();
    await rig.settle();
    await rig.run(5);
    expect(node.notes.map(({ electionEpoch }) => electionEpoch)).toEqual(rounds);
    expect(end.closed).toBe('end');
  });

  test('are decoded when they arrive one byte at a time', async () => {
    const { rig, node } = await openTwo();
    rig.wire.conditionsOf = () => ({ pieceBytes: 1, pieceIntervalMs: 1 });
    const end = new RawHost(rig, addressOf(3)).dial(addressOf(2), electionPort);
    end.send(Buffer.concat([initialOf(3, own(3)), frameOf(noteOf(4)), frameOf(noteOf(5))]));
    await rig.run(300);
    expect(node.events).toEqual(['reachable 3', '3: 4', '3: 5']);
  });

  test('a reset at any byte of the output of a dialling server leaves no state', async () => {
    const bytes = Buffer.concat([initialOf(3, own(3)), frameOf(noteOf(4))]);
    for (let at = 0; at < bytes.length; at++) {
      const { rig, node } = await openTwo([two]);
      const end = new RawHost(rig, addressOf(3)).dial(addressOf(2), electionPort);
      await rig.settle();
      rig.cnxns[0]!.forward.resetAfter(at);
      end.send(bytes);
      await rig.settle();
      expect(node.network.streamCount).toBe(0);
      expect(node.election.deadline()).toBeUndefined();
      expect(node.events).toEqual(at < initialOf(3, own(3)).length ? [] : ['reachable 3']);
    }
  });
});

describe('reachable and unreachable', () => {
  test('a server whose connection has closed is dialled at once, and reported once as unreachable when that is refused', async () => {
    const rig = new Rig();
    const [smaller, larger] = await Promise.all([1, 2].map((sid) => new RigNode(rig, sid, [one, two]).listen()));
    for (const [here, there] of [
      [smaller!, larger!],
      [larger!, smaller!],
    ] as const) {
      here.notify(there.sid, noteOf(1));
      await rig.settle();
      await rig.run(2000, 100);
      here.events.length = 0;
      there.crash();
      await rig.settle();
      expect(here.events).toEqual([`unreachable ${there.sid}`]);
      for (let round = 2; round < 9; round++) {
        here.notify(there.sid, noteOf(round));
        await rig.run(600, 100);
      }
      expect(here.events).toEqual([`unreachable ${there.sid}`]);
      const revived = await new RigNode(rig, there.sid, [one, two]).listen();
      here.notify(there.sid, noteOf(9));
      await rig.settle();
      expect(here.events).toEqual([`unreachable ${there.sid}`, `reachable ${there.sid}`]);
      expect(revived.events).toEqual([`reachable ${here.sid}`, `${here.sid}: 9`]);
      revived.crash();
      await rig.run(3000, 100);
      expect(here.events.at(-1)).toBe(`unreachable ${there.sid}`);
      await new RigNode(rig, there.sid, [one, two]).listen();
      if (there === larger) break;
    }
  });

  // As a kernel closes the sockets of a killed process, one after the other.
  test('a server whose connection closes a moment before its port does is unreachable at once', async () => {
    for (const sid of [1, 3]) {
      const { rig, node } = await openTwo();
      const host = new RawHost(rig, addressOf(sid));
      const listener = await host.listen(electionPort);
      const connected = host.dial(addressOf(2), electionPort);
      if (sid === 3) connected.send(initialOf(3, own(3)));
      else node.notify(1, noteOf(1));
      await rig.run(5000, 100);
      if (sid === 1) host.accepted[0]!.send(frameOf(noteOf(0)));
      await rig.settle();
      expect(node.events[0]).toBe(`reachable ${sid}`);
      rig.wire.conditionsOf = () => ({ delayMs: 5 });
      const before = host.accepted.length;
      (sid === 3 ? connected : host.accepted[0]!).reset();
      while (host.accepted.length === before) await rig.run(1);
      // The node knows that the connection was accepted, and its message is in transit.
      await rig.run(7);
      await listener.close();
      host.accepted.at(-1)!.reset();
      await rig.run(30);
      expect(node.events.filter((event) => event.startsWith('un'))).toEqual([`unreachable ${sid}`]);
    }
  });

  test('a server that was never connected is not reported as unreachable, however often it refuses', async () => {
    const { rig, node } = await openTwo();
    rig.wire.stack(addressOf(1));
    for (let round = 1; round < 5; round++) {
      node.notify(1, noteOf(round));
      await rig.run(1000, 100);
    }
    expect(node.events).toEqual([]);
    expect(node.lines).toEqual(['Server 1 cannot be reached: 10.0.0.1:3888 (ECONNREFUSED).']);
  });

  test('a dial without an answer reports nothing, and is repeated at the next message', async () => {
    const { rig, node } = await openTwo();
    const host = await speakingHostOf(rig, addressOf(1));
    node.notify(1, noteOf(1));
    await rig.settle();
    rig.wire.cut(addressOf(1), addressOf(2));
    for (const { backward } of rig.cnxns) backward.resetAfter(0);
    await rig.run(4999, 100);
    expect(node.lines).toEqual([]);
    await rig.run(1);
    expect(node.lines).toEqual(['Server 1 cannot be reached: 10.0.0.1:3888 (no answer).']);
    rig.wire.heal(addressOf(1), addressOf(2));
    await rig.run(60_000, 1000);
    expect(host.accepted.length).toBe(1);
    node.notify(1, noteOf(2));
    await rig.settle();
    expect(host.accepted.length).toBe(2);
    expect(node.events).toEqual(['reachable 1', '1: 0', 'reachable 1', '1: 0']);
  });

  test('after reconnect the old connection to a server is no longer read, and the server is reachable with the new one', async () => {
    const { rig, node } = await openTwo();
    const host = await speakingHostOf(rig, addressOf(1));
    node.notify(1, noteOf(7));
    await rig.settle();
    node.runTurn(() => node.election.reconnect(1));
    host.accepted[0]!.send(frameOf(noteOf(3)));
    await rig.settle();
    expect(host.accepted.map(({ closed }) => closed)).toEqual(['end', undefined]);
    host.accepted[1]!.send(frameOf(noteOf(4)));
    await rig.settle();
    expect(node.events).toEqual(['reachable 1', '1: 0', 'reachable 1', '1: 0', '1: 4']);
  });

  test('a server with several addresses is unreachable when all of them refuse', async () => {
    for (const [second, delivered] of [
      ['10.0.1.1', ['reachable 1', '1: 0', 'unreachable 1']],
      ['10.0.2.2', ['reachable 1', '1: 0']],
    ] as const) {
      const rig = new Rig();
      const listed = { ...one, electionAddresses: [...own(1), { host: second, port: electionPort }] };
      const node = await new RigNode(rig, 2, [listed, two]).listen();
      const host = new RawHost(rig, addressOf(1));
      const listener = await host.listen(electionPort);
      host.says = frameOf(noteOf(0));
      rig.wire.stack('10.0.1.1');
      node.notify(1, noteOf(1));
      await rig.settle();
      await listener.close();
      host.accepted[0]!.reset();
      await rig.settle();
      expect(node.events).toEqual(delivered);
    }
  });

  test('a server that has asked to be dialled, and refuses the dial, is unreachable if there was a connection', async () => {
    const { rig, node } = await openTwo();
    const host = new RawHost(rig, addressOf(1));
    host.says = frameOf(noteOf(0));
    const ask = async (): Promise<void> => {
      host.dial(addressOf(2), electionPort).send(initialOf(1, own(1)));
      await rig.settle();
    };
    await ask();
    expect(node.events).toEqual([]);
    const listener = await host.listen(electionPort);
    await ask();
    await listener.close();
    await ask();
    expect(node.events).toEqual(['reachable 1', '1: 0', 'unreachable 1']);
  });

  describe.each(['end', 'reset'] as const)(
    'where an intermediary accepts for a server, and closes with %s when the server does not listen',
    (refusal) => {
      const early = { location: 'far end', refusal, refusalMs: 3, dialTimeoutMs: 60_000 } as const;

      test.each([1, 3])(
        'server %i is unreachable when its process has ended, and reachable when a new one has sent a message',
        async (sid) => {
          const rig = new Rig();
          rig.wire.proxyFor = () => early;
          const node = await new RigNode(rig, 2, [one, two, three]).listen();
          const other = await new RigNode(rig, sid, [one, two, three]).listen();
          for (const [from, to] of [
            [node, other],
            [other, node],
          ] as const) {
            from.notify(to.sid, noteOf(1));
            await rig.run(100);
          }
          expect(node.events.at(-1)).toBe(`${sid}: 1`);
          await rig.run(5000, 100);
          node.events.length = 0;
          other.crash();
          await rig.run(sid === 1 ? 50 : 1200);
          expect(node.events).toEqual([`unreachable ${sid}`]);
          for (let round = 2; round < 9; round++) {
            node.notify(sid, noteOf(round));
            await rig.run(600, 10);
          }
          expect(node.events).toEqual([`unreachable ${sid}`]);
          const revived = await new RigNode(rig, sid, [one, two, three]).listen();
          revived.notify(2, noteOf(9));
          await rig.run(600, 10);
          expect(node.events).toEqual([`unreachable ${sid}`, `reachable ${sid}`, `${sid}: 9`]);
        },
      );
    },
  );

  test('a connection that is closed once before any message has arrived reports nothing', async () => {
    const { rig, node } = await openTwo();
    const host = await speakingHostOf(rig, addressOf(1));
    node.notify(1, noteOf(1));
    await rig.settle();
    host.says = undefined;
    host.accepted[0]!.reset();
    await rig.settle();
    host.says = frameOf(noteOf(5));
    host.accepted[1]!.reset();
    await rig.settle();
    expect(node.events).toEqual(['reachable 1', '1: 0', 'reachable 1', '1: 5']);
  });

  test('a larger server that ends the connection, and dials back only later, is unreachable meanwhile', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(3));
    const first = host.dial(addressOf(2), electionPort);
    first.send(initialOf(3, own(3)));
    await rig.run(3000, 100);
    first.reset();
    await rig.run(499);
    expect(node.events).toEqual(['reachable 3']);
    await rig.run(2);
    expect(node.events).toEqual(['reachable 3', 'unreachable 3']);
    host.dial(addressOf(2), electionPort).send(initialOf(3, own(3)));
    await rig.settle();
    expect(node.events).toEqual(['reachable 3', 'unreachable 3', 'reachable 3']);
  });

  test('a connection without a received message is replaced when there is another message to send, at most once a second', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(1));
    for (let round = 1; round <= 20; round++) {
      node.notify(1, noteOf(round));
      await rig.run(150);
    }
    expect(host.accepted.length).toBe(3);
    host.accepted[2]!.send(frameOf(noteOf(7)));
    for (let round = 21; round <= 40; round++) {
      node.notify(1, noteOf(round));
      await rig.run(150);
    }
    expect(host.accepted.length).toBe(3);
    expect(node.events).toEqual(['reachable 1', '1: 7']);
  });

  test('a server whose connections close as soon as they are made is not dialled endlessly', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(1));
    node.notify(1, noteOf(1));
    for (let ms = 0; ms < 500; ms++) {
      await rig.run(1);
      host.accepted.at(-1)?.reset();
    }
    expect(host.accepted.length).toBeLessThan(5);
  });
});

describe('names and addresses', () => {
  test('a name is resolved at each dial, so that a server with a new address is found', async () => {
    const named = serverOf(1, 'zk1');
    const { rig, node } = await openTwo([named, two]);
    const before = await speakingHostOf(rig, addressOf(1));
    const after = await hostOf(rig, '10.0.1.1');
    rig.wire.name('zk1', [addressOf(1)]);
    node.notify(1, noteOf(1));
    await rig.settle();
    rig.wire.name('zk1', ['10.0.1.1']);
    before.accepted[0]!.reset();
    await rig.settle();
    expect([before.accepted.length, after.accepted.length]).toEqual([1, 1]);
  });

  test('a name that does not resolve is tried again at the next message, and reports nothing about the server', async () => {
    const { rig, node } = await openTwo([serverOf(1, 'zk1'), two]);
    const host = await speakingHostOf(rig, addressOf(1));
    node.notify(1, noteOf(1));
    node.notify(1, noteOf(2));
    await rig.settle();
    expect(node.lines).toEqual(['Server 1 cannot be reached: zk1:3888 (the name zk1 does not resolve (ENOTFOUND).).']);
    rig.wire.name('zk1', [addressOf(1)]);
    node.notify(1, noteOf(3));
    await rig.settle();
    expect(host.accepted[0]!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(3))]));
    expect(node.events).toEqual(['reachable 1', '1: 0']);
  });

  test('a look-up that hangs delays no other server, ends with the time limit of the dial, and its late answer is ignored', async () => {
    const { rig, node } = await openTwo([serverOf(1, 'zk1'), two, three]);
    const answers: (() => void)[] = [];
    const resolve = node.network.resolve.bind(node.network);
    node.network.resolve = (host) => (host === 'zk1' ? new Promise((done) => answers.push(() => done([addressOf(1)]))) : resolve(host));
    const host = await hostOf(rig, addressOf(1));
    const other = await hostOf(rig, addressOf(3));
    node.notify(1, noteOf(1));
    node.notify(3, noteOf(1));
    await rig.settle();
    expect(other.accepted.length).toBe(1);
    await rig.run(electionPortDefaults.cnxTimeoutMs, 500);
    expect(node.lines).toEqual(['Server 1 cannot be reached: zk1:3888 (no answer).']);
    expect(answers.length).toBe(1);
    answers[0]!();
    await rig.settle();
    expect(host.accepted.length).toBe(0);
    node.notify(1, noteOf(2));
    answers[1]!();
    await rig.settle();
    expect(host.accepted.length).toBe(1);
  });

  test('A60: several addresses are tried in turn, those of one name as well', async () => {
    const listed = { ...one, electionAddresses: [...own(1), { host: 'zk1', port: electionPort }] };
    const { rig, node } = await openTwo([listed, two]);
    rig.wire.name('zk1', ['10.0.1.1', '10.0.1.2', '10.0.1.3']);
    rig.wire.stack(addressOf(1));
    rig.wire.stack('10.0.1.1');
    rig.wire.cut('10.0.1.2', addressOf(2));
    const last = await hostOf(rig, '10.0.1.3');
    node.notify(1, noteOf(1));
    await rig.run(4900, 100);
    expect(last.accepted.length).toBe(0);
    await rig.run(200, 100);
    expect(last.accepted.length).toBe(1);
    expect(node.network.streamCount).toBe(1);
    expect(node.lines).toEqual([]);
  });

  test('the next dial uses a new configuration, and a removed server is forgotten when its connection closes', async () => {
    const { rig, node } = await openTwo();
    const host = await speakingHostOf(rig, addressOf(1));
    const moved = await hostOf(rig, '10.0.1.1');
    node.notify(1, noteOf(1));
    await rig.settle();
    node.runTurn(() => node.election.setServers([serverOf(1, '10.0.1.1'), two]));
    node.notify(1, noteOf(2));
    await rig.settle();
    expect(moved.accepted.length).toBe(0);
    host.accepted[0]!.reset();
    await rig.settle();
    expect(moved.accepted.length).toBe(1);
    node.runTurn(() => node.election.setServers([two]));
    node.notify(1, noteOf(3));
    await rig.settle();
    expect(moved.accepted[0]!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(2)), frameOf(noteOf(3))]));
    moved.accepted[0]!.reset();
    await rig.settle();
    node.notify(1, noteOf(4));
    await rig.settle();
    expect(node.lines).toEqual(['Server 1 is not in the configuration, so no vote is sent to it.']);
    expect(moved.accepted.length).toBe(1);
  });
});

test('A58: a server that a reconfiguration has removed introduces itself with its last address', async () => {
  const { rig, node } = await openTwo();
  const host = await hostOf(rig, addressOf(1));
  node.runTurn(() => node.election.setServers([one, three]));
  node.notify(1, noteOf(7));
  await rig.settle();
  expect(host.accepted[0]!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(7))]));
});

describe('listening', () => {
  test('a port that cannot be bound is tried three times, a second apart, and then rejects with a sentence', async () => {
    const rig = new Rig();
    await new RawHost(rig, addressOf(2)).listen(electionPort);
    const node = new RigNode(rig, 2, [two]);
    let said = '';
    void node.election.listen(own(2)[0]!).catch((error: Error) => (said = error.message));
    await rig.run(1999, 1);
    expect(said).toBe('');
    await rig.run(1);
    expect(said).toBe(
      'The election port, 10.0.0.2:3888, could not be bound: port 3888 is already in use by this process. Choose another port. Gave up after 3 tries; zookeeper.electionPortBindRetry sets how many, 0 for no limit.',
    );
    expect(node.lines.length).toBe(2);
  });

  test('a port is tried without limit when the configured number of tries is 0, until it is shut down', async () => {
    const rig = new Rig();
    const holder = await new RawHost(rig, addressOf(2)).listen(electionPort);
    const node = new RigNode(rig, 2, [two], { election: { bindTriesMax: 0 } });
    const listening = node.election.listen(own(2)[0]!);
    await rig.run(60_000, 1000);
    await holder.close();
    await rig.run(1000, 100);
    expect((await listening)!.endpoint.port).toBe(electionPort);
    const shut = new RigNode(rig, 2, [two], { election: { bindTriesMax: 0 } });
    const never = shut.election.listen(own(2)[0]!);
    await rig.run(10);
    await shut.election.shutDown(rig.clock.now());
    await rig.run(1000, 100);
    expect(await never).toBeUndefined();
  });

  test('a name that does not resolve is retried without limit', async () => {
    const rig = new Rig();
    const node = new RigNode(rig, 2, [two]);
    const listening = node.election.listen({ host: 'zk2', port: electionPort });
    await rig.run(30_000, 1000);
    rig.wire.name('zk2', [addressOf(2)]);
    await rig.run(1000, 100);
    expect((await listening)!.endpoint.port).toBe(electionPort);
  });

  test('a port that is shut down sends its waiting messages, closes, and dials no server', async () => {
    const { rig, node } = await openTwo();
    const host = await hostOf(rig, addressOf(1));
    node.notify(1, noteOf(1));
    await rig.settle();
    node.runTurn(() => {
      node.election.notify(1, noteOf(2));
      void node.election.shutDown(rig.clock.now());
    });
    node.notify(3, noteOf(2));
    await rig.run(5000, 500);
    const [end] = host.accepted;
    expect(end!.received).toEqual(Buffer.concat([initialOf(2, own(2)), frameOf(noteOf(1)), frameOf(noteOf(2))]));
    expect([end!.closed, node.network.streamCount, host.accepted.length]).toEqual(['end', 0, 1]);
  });
});

describe('hostile input', () => {
  test('a connection without an introduction within the time-out is closed', async () => {
    const { rig, node } = await openTwo();
    const end = new RawHost(rig, '10.0.9.9').dial(addressOf(2), electionPort);
    end.send(initialOf(3, own(3)).subarray(0, 30));
    await rig.run(9999, 1000);
    expect(end.closed).toBeUndefined();
    await rig.run(2, 1);
    expect(end.closed).toBe('ECONNRESET');
    expect(node.lines).toEqual(['10.0.9.9:32768 did not introduce itself within 10000 ms to the election port, and was closed.']);
  });

  test('ten thousand silent connections take a limited number of places, and none from an honest server', async () => {
    const { rig, node } = await openTwo();
    const host = new RawHost(rig, '10.0.9.9');
    const silent = Array.from({ length: 5000 }, () => host.dial(addressOf(2), electionPort));
    const honest = new RawHost(rig, addressOf(3)).dial(addressOf(2), electionPort);
    silent.push(...Array.from({ length: 5000 }, () => host.dial(addressOf(2), electionPort)));
    await rig.settle();
    expect(node.network.streamCount).toBeLessThanOrEqual(electionPortDefaults.halfOpenMax + 1);
    honest.send(Buffer.concat([initialOf(3, own(3)), frameOf(noteOf(4))]));
    await rig.settle();
    expect(node.events).toEqual(['reachable 3', '3: 4']);
    expect(node.lines.length).toBeLessThan(30);
    await rig.run(10_000, 1000);
    expect(node.network.streamCount).toBe(1);
  });

  test('servers outside the configuration have a limited number of places', async () => {
    const { rig, node } = await openTwo(undefined, { election: { unknownPeersMax: 5 } });
    const host = new RawHost(rig, '10.0.9.9');
    const ends = Array.from({ length: 20 }, (_, at) => {
      const end = host.dial(addressOf(2), electionPort);
      end.send(initialOf(100 + at, own(3)));
      return end;
    });
    await rig.settle();
    expect(ends.filter(({ closed }) => closed === undefined).length).toBe(5);
    const listed = new RawHost(rig, addressOf(3)).dial(addressOf(2), electionPort);
    listed.send(initialOf(3, own(3)));
    await rig.settle();
    expect(node.events.at(-1)).toBe('reachable 3');
    for (const end of ends) end.reset();
    await rig.settle();
    const late = host.dial(addressOf(2), electionPort);
    late.send(initialOf(200, own(3)));
    await rig.settle();
    expect(late.closed).toBeUndefined();
  });

  test('random bytes never harm an honest server', async () => {
    const { rig, node } = await openTwo();
    const honest = new RawHost(rig, addressOf(3)).dial(addressOf(2), electionPort);
    honest.send(initialOf(3, own(3)));
    await rig.settle();
    let state = 1;
    const byte = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 24;
    const host = new RawHost(rig, '10.0.9.9');
    for (let round = 1; round <= 1000; round++) {
      const noise = Buffer.from(Array.from({ length: 1 + (byte() % 80) }, byte));
      const end = host.dial(addressOf(2), electionPort);
      if (round % 3 === 0) end.send(initialOf(300 + round, own(3)));
      if (round % 3 === 1) initialOf(4, own(3)).copy(noise);
      end.send(noise);
      honest.send(frameOf(noteOf(round)));
      await rig.run(1);
      expect(node.events).toContain(`3: ${round}`);
      end.reset();
    }
    expect(honest.closed).toBeUndefined();
  });

  test('a server that closes and continues to send is cut off', async () => {
    const { rig, node } = await openTwo();
    const end = new RawHost(rig, '10.0.9.9').dial(addressOf(2), electionPort);
    await rig.settle();
    rig.cnxns[0]!.backward.cut();
    end.send(Buffer.concat([initialOf(2, own(2)), Buffer.alloc(3 * 1024 * 1024)]));
    await rig.settle();
    expect(node.network.streamCount).toBe(0);
    rig.cnxns[0]!.backward.heal();
    await rig.settle();
    expect(end.closed).toBe('ECONNRESET');
  });
});
