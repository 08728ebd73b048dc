/**
 * Recorded streams of Apache ZooKeeper's servers (fixtures/README.md), replayed against the ports.
 */
import { readFileSync } from 'node:fs';
import { PacketType } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { addressOf, electionPort, frameOf, quorumPort, RawHost, Rig, RigNode, serverOf } from './peer-rig.ts';

interface Message {
  readonly dir: 'initiator>acceptor' | 'acceptor>initiator';
  readonly offset: number;
  readonly hex: string;
  readonly initial?: { readonly sid: number };
  readonly notification?: object;
  readonly packet?: string;
  readonly snapshotBody?: object;
}

interface Connection {
  readonly port: 'election' | 'learner';
  readonly initiator: number;
  readonly acceptor: number;
  readonly messages: readonly Message[];
}

const streams = ['ensemble-mixed.json', 'ensemble-reconfig.json'].flatMap((name) => {
  const text = readFileSync(new URL(`../../../../fixtures/${name}`, import.meta.url), 'utf8');
  const { connections } = JSON.parse(text) as { connections: Connection[] };
  return connections.flatMap((connection, index) =>
    (['initiator>acceptor', 'acceptor>initiator'] as const).map((dir) => {
      const messages = connection.messages.filter((message) => message.dir === dir).sort((a, b) => a.offset - b.offset);
      const bytes = Buffer.from(messages.map(({ hex }) => hex).join(''), 'hex');
      return { title: `${name} ${index} ${dir}`, connection, dir, messages, bytes };
    }),
  );
});

describe('recorded streams', () => {
  const played = streams.filter(({ messages }) => messages.length > 0);

  for (const { title, connection, dir, messages, bytes } of played.filter((stream) => stream.connection.port === 'election')) {
    test(`are received unchanged by the election port, in pieces of any size: ${title}`, async () => {
      const notifications = messages.filter(({ notification }) => notification !== undefined);
      for (const pieceBytes of [Infinity, 1, 13]) {
        const rig = new Rig();
        rig.wire.conditionsOf = () => ({ pieceBytes });
        const fromInitiator = dir === 'initiator>acceptor';
        const from = fromInitiator ? connection.initiator : connection.acceptor;
        // Smaller than all that dial, larger than all that are dialled, so that the connection is
        // kept.
        const node = await new RigNode(rig, fromInitiator ? 0 : 100, [serverOf(from)]).listen();
        const host = new RawHost(rig, addressOf(from));
        if (fromInitiator) {
          host.dial(node.network.address, electionPort).send(bytes);
        } else {
          await host.listen(electionPort);
          node.runTurn(() => node.election.notify(from, node.notes[0] ?? { ...emptyNote }));
          await rig.run(100);
          host.accepted[0]!.send(bytes);
        }
        await rig.run(20);
        expect(node.notes.map((note) => frameOf(note).toString('hex'))).toEqual(notifications.map(({ hex }) => hex));
        expect(node.events[0]).toBe(`reachable ${from}`);
        expect(node.lines).toEqual([]);
      }
    });
  }

  for (const { title, connection, dir, messages, bytes } of played.filter((stream) => stream.connection.port === 'learner')) {
    test(`are received unchanged by the learner port, in pieces of any size: ${title}`, async () => {
      const rawLengths = messages.filter(({ snapshotBody }) => snapshotBody !== undefined).map(({ hex }) => hex.length / 2);
      for (const pieceBytes of [Infinity, 1, 13]) {
        const rig = new Rig();
        const node = await new RigNode(rig, 100, [serverOf(connection.acceptor)]).listen();
        node.snapshots.push(...rawLengths);
        const taken: string[] = [];
        node.onPacket = (_channel, packet) => {
          taken.push(packet.bytes.toString('hex', packet.start, packet.end));
          if (packet.type === PacketType.SNAP) expect(node.snapshotLeft).toBeGreaterThan(0);
        };
        rig.wire.conditionsOf = () => ({ pieceBytes });
        const host = new RawHost(rig, addressOf(dir === 'initiator>acceptor' ? connection.initiator : connection.acceptor));
        if (dir === 'initiator>acceptor') {
          host.dial(node.network.address, quorumPort).send(bytes);
        } else {
          await host.listen(quorumPort);
          node.dialLeader(connection.acceptor);
          await rig.settle();
          host.accepted[0]!.send(bytes);
        }
        await rig.run(20);
        expect(taken).toEqual(messages.filter(({ packet }) => packet !== undefined).map(({ hex }) => hex));
        const bodies = messages.filter(({ snapshotBody }) => snapshotBody !== undefined).map(({ hex }) => hex);
        expect(Buffer.concat(node.snapshot).toString('hex')).toBe(bodies.join(''));
        expect(node.lines).toEqual([]);
      }
    });
  }

  test('exist for both ports', () => {
    for (const port of ['election', 'learner'])
      expect(played.filter(({ connection }) => connection.port === port).length).toBeGreaterThan(5);
  });
});

const emptyNote = { state: 'looking', leader: 1, zxid: 0, peerEpoch: 0, electionEpoch: 0, version: 2, config: '' } as const;
