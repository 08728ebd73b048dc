/**
 * An ensemble whose servers keep their names and their disks, and lose their addresses, as the pods of
 * a stateful set: scaled down and up again, and restarted elsewhere.
 */
import {
  CreateMode,
  openAcl,
  OpCode,
  operations,
  type QuorumServer,
  readReplyHeader,
  Reader,
  type Sid,
  writeConnectRequest,
  Writer,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { clientPort, type EnsembleRuntimeNode, EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';
import { electionPort, quorumPort, type RawEnd } from './ports/peer-rig.ts';

const nameOf = (sid: Sid) => `zk-${sid}.zk`;
const line = (sid: Sid) => `server.${sid}=${nameOf(sid)}:${quorumPort}:${electionPort}:participant;0.0.0.0:${clientPort}`;
const handshakeBytes = 41;

/** A client of one server. Requests are answered one after the other. */
class Client {
  readonly #rig: EnsembleRuntimeRig;
  readonly #end: RawEnd;
  #xid = 0;
  #answeredBytes = handshakeBytes;

  constructor(rig: EnsembleRuntimeRig, node: EnsembleRuntimeNode) {
    this.#rig = rig;
    this.#end = rig.dial(node, clientPort);
    const passwd = Buffer.alloc(16);
    this.#send((writer) => {
      writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 20_000, sessionId: 0n, passwd, readOnly: false });
    });
  }

  #send(write: (writer: Writer) => void): void {
    const writer = new Writer();
    const start = writer.beginFrame();
    write(writer);
    writer.endFrame(start);
    this.#end.send(Buffer.from(writer.written()));
  }

  /** The error code of the reply; undefined if the connection was lost first. */
  async ask(opCode: number, write: (writer: Writer) => void): Promise<number | undefined> {
    this.#send((writer) => {
      writer.int32(++this.#xid);
      writer.int32(opCode);
      write(writer);
    });
    await this.#rig.until(() => this.#end.received.length >= this.#answeredBytes + 4 || this.#end.closed !== undefined, 20_000);
    const { received } = this.#end;
    const at = this.#answeredBytes;
    if (received.length < at + 4) return undefined;
    this.#answeredBytes = at + 4 + received.readInt32BE(at);
    return readReplyHeader(new Reader(received.subarray(at + 4))).err;
  }

  create(path: string): Promise<number | undefined> {
    const record = { path, data: Buffer.from(path), acl: openAcl, flags: CreateMode.persistent };
    return this.ask(OpCode.create, (writer) => operations.create.request.write(writer, record));
  }

  reconfigure(sids: readonly Sid[]): Promise<number | undefined> {
    const record = { joiningServers: null, leavingServers: null, newMembers: sids.map(line).join(','), curConfigId: -1 };
    return this.ask(OpCode.reconfig, (writer) => operations.reconfig.request.write(writer, record));
  }
}

class NamedEnsemble {
  readonly rig: EnsembleRuntimeRig;
  readonly acknowledged: string[] = [];
  #moves = 0;

  constructor() {
    const servers = [1, 2, 3].map((sid): [Sid, QuorumServer] => [
      sid,
      {
        sid,
        addresses: [{ host: nameOf(sid), quorumPort, electionPort }],
        role: 'participant',
        clientAddress: { host: '0.0.0.0', port: clientPort },
      },
    ]);
    const quorum = { version: 0, servers: new Map(servers), groups: new Map(), weights: new Map() };
    this.rig = new EnsembleRuntimeRig({ options: { quorum, standaloneEnabled: false }, core: { reconfigEnabled: true, skipAcl: true } });
  }

  /** Starts these servers, each at an address that no server has had. Their names resolve later. */
  async boot(...nodes: readonly EnsembleRuntimeNode[]): Promise<void> {
    const addresses = nodes.map(() => `10.1.0.${++this.#moves}`);
    for (const { sid } of nodes) this.rig.rig.wire.name(nameOf(sid), []);
    const booting = Promise.all(nodes.map((node, at) => this.rig.boot(node, addresses[at])));
    await this.rig.rig.run(3000, 10);
    for (const { failure, lines } of nodes) {
      expect(failure).toBeUndefined();
      expect(lines.some((each) => /^warn The election port waits for its address, zk-\d\.zk:3888/.test(each))).toBe(true);
    }
    for (const [at, { sid }] of nodes.entries()) this.rig.rig.wire.name(nameOf(sid), [addresses[at]!]);
    await Promise.all([booting, this.rig.rig.run(1500, 10)]);
  }

  async close(...nodes: readonly EnsembleRuntimeNode[]): Promise<void> {
    for (const node of nodes) {
      await this.rig.close(node);
      this.rig.rig.wire.name(nameOf(node.sid), []);
    }
  }

  async write(through: EnsembleRuntimeNode, count: number): Promise<void> {
    const client = new Client(this.rig, through);
    for (let left = count; left > 0; left--) {
      const path = `/z${this.acknowledged.length}`;
      expect(await client.create(path)).toBe(0);
      this.acknowledged.push(path);
    }
  }

  reconfigure(...sids: readonly Sid[]): Promise<number | undefined> {
    return new Client(this.rig, this.rig.leader).reconfigure(sids);
  }

  async whole(...nodes: readonly EnsembleRuntimeNode[]): Promise<void> {
    const serves = ({ role }: EnsembleRuntimeNode) => role === 'leader' || role === 'follower';
    await this.rig.until(() => nodes.every(serves) && nodes.some(({ role }) => role === 'leader'), 60_000);
  }

  /** Every server has every acknowledged znode. */
  async compare(): Promise<void> {
    const { nodes } = this.rig;
    const last = () => new Set(nodes.map(({ runtime }) => runtime!.inspect.lastZxid()));
    await this.rig.until(() => last().size === 1, 10_000);
    // The root and /zookeeper with config, quota and others.
    const own = 5;
    for (const { runtime } of nodes) expect(runtime!.inspect.nodeCount()).toBe(this.acknowledged.length + own);
    for (const node of nodes) {
      const client = new Client(this.rig, node);
      for (const path of this.acknowledged) {
        const err = await client.ask(OpCode.exists, (writer) => operations.exists.request.write(writer, { path, watch: false }));
        expect([node.sid, path, err]).toEqual([node.sid, path, 0]);
      }
    }
  }
}

describe('servers that keep their names and disks, and lose their addresses', () => {
  it('D15, A58: are scaled down to one and up to three by reconfiguration, and no acknowledged write is lost', async () => {
    const ensemble = new NamedEnsemble();
    const { rig } = ensemble;
    const [first, second, third] = rig.nodes as [EnsembleRuntimeNode, EnsembleRuntimeNode, EnsembleRuntimeNode];
    await ensemble.boot(first, second, third);
    await ensemble.whole(first, second, third);
    await ensemble.write(second, 10);
    for (const left of [[1, 2], [1]]) {
      expect(await ensemble.reconfigure(...left)).toBe(0);
      await rig.until(() => rig.leader !== undefined && left.includes(rig.leader.sid), 30_000);
      await ensemble.whole(first, second, third);
    }
    await ensemble.close(third, second);
    await ensemble.write(first, 10);
    await ensemble.boot(second, third);
    await ensemble.whole(first, second, third);
    for (const now of [
      [1, 2],
      [1, 2, 3],
    ]) {
      expect(await ensemble.reconfigure(...now)).toBe(0);
      await ensemble.write(second, 5);
    }
    await ensemble.compare();
    // They count again: without the one that was left, the others elect.
    await ensemble.close(first);
    await ensemble.whole(second, third);
    await ensemble.write(third, 5);
    await ensemble.boot(first);
    await ensemble.whole(first, second, third);
    await ensemble.compare();
  });

  it('D15: are stopped, two of three and then all, and started elsewhere, and no acknowledged write is lost', async () => {
    const ensemble = new NamedEnsemble();
    const { rig } = ensemble;
    const [first, second, third] = rig.nodes as [EnsembleRuntimeNode, EnsembleRuntimeNode, EnsembleRuntimeNode];
    await ensemble.boot(first, second, third);
    await ensemble.whole(first, second, third);
    for (const stopped of [
      [third, second],
      [first, second],
      [first, second, third],
    ]) {
      await ensemble.write(stopped[0]!, 5);
      await ensemble.close(...stopped);
      await ensemble.boot(...stopped);
      await ensemble.whole(first, second, third);
      await ensemble.write(first, 5);
    }
    await ensemble.compare();
    expect(ensemble.acknowledged).toHaveLength(30);
  });
});
