/**
 * Servers with several addresses (multiAddress.enabled), one of which may be dead: the next one is
 * tried while it is silent.
 */
import { describe, expect, test } from 'vitest';
import { addressOf, electionPort, frameOf, noteOf, quorumPort, RawHost, Rig, RigNode, serverOf } from './peer-rig.ts';

const [dead, alive] = ['10.0.1.1', '10.0.1.2'];
const staggered = { reachabilityCheckTimeoutMs: 300 };

function both(sid: number) {
  const hosts = [dead, alive];
  return {
    sid,
    electionAddresses: hosts.map((host) => ({ host, port: electionPort })),
    quorumAddresses: hosts.map((host) => ({ host, port: quorumPort })),
  };
}

/** Server 2, and server 1 at two addresses, of which the first does not answer. */
async function opened(setup = {}): Promise<{ rig: Rig; node: RigNode; host: RawHost }> {
  const rig = new Rig();
  const node = await new RigNode(rig, 2, [both(1), serverOf(2)], { election: setup, learner: setup }).listen();
  rig.wire.stack(dead);
  rig.wire.cut(dead, addressOf(2));
  const host = new RawHost(rig, alive);
  await host.listen(electionPort);
  await host.listen(quorumPort);
  return { rig, node, host };
}

describe('multiAddress.reachabilityCheckTimeoutMs', () => {
  test('A60: an election port tries the next address while the first is silent, and drops the first when that is connected', async () => {
    const { rig, node, host } = await opened(staggered);
    node.notify(1, noteOf(1));
    await rig.run(299);
    expect(host.accepted).toHaveLength(0);
    await rig.run(2);
    expect(host.accepted).toHaveLength(1);
    expect(node.network.streamCount).toBe(1);
    await rig.run(10_000, 100);
    expect([host.accepted.length, node.lines]).toEqual([1, []]);
  });

  test('A60: so does a learner that dials its leader', async () => {
    const { rig, node, host } = await opened(staggered);
    node.dialLeader(1);
    await rig.run(301);
    expect(host.accepted).toHaveLength(1);
    expect(node.events).toEqual(['dialled 1']);
    await rig.run(6000, 100);
    expect(node.network.streamCount).toBe(1);
  });

  test('A60: the first address is used if it answers late, but before the second', async () => {
    const { rig, node, host } = await opened(staggered);
    rig.wire.heal(dead, addressOf(2));
    const first = new RawHost(rig, dead);
    await first.listen(electionPort);
    rig.wire.conditionsOf = (from, to) => ({ delayMs: [from, to].includes(dead) ? 200 : 180 });
    node.notify(1, noteOf(1));
    await rig.run(700);
    expect([first.accepted.length, node.network.streamCount]).toEqual([1, 1]);
    // The second was on its way, and is closed again.
    expect(host.accepted.filter(({ closed, ended }) => closed === undefined && !ended)).toHaveLength(0);
  });

  test('A60: an address of a name that resolves late has its own time after another address has refused', async () => {
    const rig = new Rig();
    const hosts = [dead, 'zk1.late'];
    const late = {
      sid: 1,
      electionAddresses: hosts.map((host) => ({ host, port: electionPort })),
      quorumAddresses: hosts.map((host) => ({ host, port: quorumPort })),
    };
    const node = await new RigNode(rig, 2, [late, serverOf(2)], { election: staggered, learner: staggered }).listen();
    rig.wire.stack(dead);
    const host = new RawHost(rig, alive);
    await host.listen(quorumPort);
    const resolve = node.network.resolve.bind(node.network);
    node.network.resolve = (name) =>
      name === 'zk1.late' ? new Promise((resolved) => void rig.clock.after(250, () => resolved([alive]))) : resolve(name);
    rig.wire.conditionsOf = (_from, to) => ({ delayMs: to === alive ? 100 : 0 });
    node.dialLeader(1);
    await rig.run(600);
    expect([host.accepted.length, node.events]).toEqual([1, [expect.stringMatching(/^dialled/)]]);
    // One that does not resolve has the time of the check.
    node.network.resolve = (name) => (name === 'zk1.late' ? new Promise(() => undefined) : resolve(name));
    node.dialLeader(1);
    await rig.run(290);
    expect(node.events).toHaveLength(1);
    await rig.run(20);
    expect(node.events.slice(1)).toEqual(['dialFailed unanswered']);
  });

  test('A60: without the check an address has its whole time', async () => {
    const { rig, node, host } = await opened();
    node.notify(1, noteOf(1));
    await rig.run(4900, 100);
    expect(host.accepted).toHaveLength(0);
    await rig.run(200, 100);
    expect(host.accepted).toHaveLength(1);
  });

  test('A60: an address that refuses costs no time, with the check or without', async () => {
    for (const setup of [staggered, {}]) {
      const { rig, node, host } = await opened(setup);
      rig.wire.heal(dead, addressOf(2));
      node.notify(1, noteOf(1));
      await rig.run(5);
      expect(host.accepted).toHaveLength(1);
    }
  });

  test('A60: after one address has refused, a silent one has only the time of the check: the server does not listen', async () => {
    const rig = new Rig();
    const node = await new RigNode(rig, 2, [both(1), serverOf(2)], { election: staggered, learner: staggered }).listen();
    rig.wire.stack(dead);
    rig.wire.stack(alive);
    rig.wire.cut(dead, addressOf(2));
    node.dialLeader(1);
    node.notify(1, noteOf(1));
    await rig.run(580);
    expect(node.events).toEqual([]);
    await rig.run(60);
    expect(node.events).toEqual(['dialFailed unanswered']);
    expect(node.lines.join()).toContain(`${alive}:3888 (ECONNREFUSED), ${dead}:3888 (no answer)`);
    expect(node.network.streamCount).toBe(0);
  });

  test('A60: all addresses that are silent are given up at the end of their own time', async () => {
    const { rig, node } = await opened(staggered);
    rig.wire.cut(alive, addressOf(2));
    node.dialLeader(1);
    await rig.run(5000, 50);
    expect(node.events).toEqual([]);
    await rig.run(400, 50);
    expect(node.events).toEqual(['dialFailed unanswered']);
    expect(node.lines.join()).toContain(`${dead}:2888 (no answer), ${alive}:2888 (no answer)`);
    expect(node.network.streamCount).toBe(0);
  });

  test('A60: when the network of one address dies, messages without an answer move the connection to another', async () => {
    const { rig, node, host } = await opened(staggered);
    rig.wire.heal(dead, addressOf(2));
    const first = new RawHost(rig, dead);
    first.says = host.says = frameOf(noteOf(0));
    await first.listen(electionPort);
    node.notify(1, noteOf(1));
    await rig.run(10);
    expect([first.accepted.length, host.accepted.length]).toEqual([1, 0]);
    // An answer resets the time.
    node.notify(1, noteOf(2));
    first.accepted[0]!.send(frameOf(noteOf(5)));
    await rig.run(10);
    rig.wire.cut(dead, addressOf(2));
    for (let round = 3; round < 10; round++) {
      node.notify(1, noteOf(round));
      await rig.run(200, 10);
    }
    await rig.run(100, 10);
    expect(host.accepted).toHaveLength(1);
    expect(node.events.filter((event) => event.startsWith('unreachable'))).toEqual([]);
  });

  test('A60: an address that accepts and ends without a message is followed by the next one, when the server is to dial back', async () => {
    const rig = new Rig();
    const node = await new RigNode(rig, 1, [serverOf(1), { ...both(1), sid: 2 }]).listen();
    const hosts = [dead, alive].map((address) => new RawHost(rig, address));
    for (const host of hosts) await host.listen(electionPort);
    node.notify(2, noteOf(1));
    await rig.run(2000, 10);
    expect(hosts.map(({ accepted }) => accepted.length)).toEqual([1, 1]);
  });

  test('A60: a connection is kept while its round trip is longer than the time of the check', async () => {
    const { rig, node, host } = await opened({ reachabilityCheckTimeoutMs: 5 });
    rig.wire.conditionsOf = () => ({ delayMs: 100 });
    host.says = frameOf(noteOf(0));
    for (let round = 1; round < 20; round++) {
      node.notify(1, noteOf(round));
      await rig.run(50, 10);
      if (round % 4 === 0) host.accepted[0]?.send(frameOf(noteOf(round)));
    }
    expect(host.accepted).toHaveLength(1);
  });

  test('A60: a server with one address keeps its connection, however long it does not answer', async () => {
    const rig = new Rig();
    const node = await new RigNode(rig, 2, [serverOf(1), serverOf(2)], { election: staggered }).listen();
    const host = new RawHost(rig, addressOf(1));
    host.says = frameOf(noteOf(0));
    await host.listen(electionPort);
    for (let round = 1; round < 20; round++) {
      node.notify(1, noteOf(round));
      await rig.run(200, 10);
    }
    expect(host.accepted).toHaveLength(1);
  });
});
