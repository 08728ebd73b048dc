/** The network between servers in one process: like TCP, but without ports of the machine. */
import type { NetworkSink, StreamId } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { ActivityTracker } from '../src/activity-tracker.ts';
import { addressOf, hostOf, type PeerNetwork, EnsembleNetwork } from '../src/ensemble-network.ts';

const port = 3888;

/** A process on a machine, which records its events. */
class Process {
  readonly heard: string[] = [];
  readonly network: PeerNetwork;
  accepted: StreamId | undefined;

  constructor(wire: EnsembleNetwork, machine: number) {
    this.network = wire.startProcess(machine);
    const sink: NetworkSink = {
      accepted: (stream, _listener, remote) => {
        this.accepted = stream;
        this.heard.push(`accepted ${stream} from ${remote.address}`);
      },
      connected: (stream) => void this.heard.push(`connected ${stream}`),
      received: ({ count, streams, buffers, starts, ends }) => {
        for (let index = 0; index < count; index++)
          this.heard.push(`received ${streams[index]} ${buffers[index]!.subarray(starts[index], ends[index]).toString()}`);
      },
      drained: (stream) => void this.heard.push(`drained ${stream}`),
      ended: (stream) => void this.heard.push(`ended ${stream}`),
      closed: (stream, error) => void this.heard.push(`closed ${stream} ${error ?? 'well'}`),
    };
    this.network.start(sink);
  }

  dial(machine: number): StreamId {
    return this.network.connect({ address: addressOf(machine), port });
  }

  send(stream: StreamId, text: string): void {
    const bytes = Buffer.from(text);
    this.network.send({ count: 1, streams: [stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
    // The buffer belongs to the sender again.
    bytes.fill(0);
  }

  take(): string[] {
    return this.heard.splice(0);
  }
}

async function world(): Promise<{ wire: EnsembleNetwork; one: Process; two: Process; settle: () => Promise<void> }> {
  const activity = new ActivityTracker();
  const wire = new EnsembleNetwork(activity, 2);
  const [one, two] = [new Process(wire, 1), new Process(wire, 2)];
  for (const { network } of [one, two]) {
    await network.listen({ address: undefined, port, backlog: undefined });
    network.markStarted();
  }
  return { wire, one, two, settle: () => activity.settle(false) };
}

async function connected(): Promise<Awaited<ReturnType<typeof world>> & { stream: StreamId; other: StreamId }> {
  const all = await world();
  const stream = all.one.dial(2);
  await all.settle();
  all.one.take();
  all.two.take();
  return { ...all, stream, other: all.two.accepted! };
}

describe('a stream', () => {
  it('delivers bytes in both directions, in order, in one batch per turn', async () => {
    const { one, two, settle } = await world();
    const stream = one.dial(2);
    await settle();
    expect(one.take()).toEqual([`connected ${stream}`]);
    expect(two.take()).toEqual([`accepted ${two.accepted} from ${addressOf(1)}`]);
    one.send(stream, 'a');
    one.send(stream, 'b');
    two.send(two.accepted!, 'c');
    expect(two.heard).toEqual([]);
    await settle();
    expect(two.take()).toEqual([`received ${two.accepted} a`, `received ${two.accepted} b`]);
    expect(one.take()).toEqual([`received ${stream} c`]);
  });

  it('ends after the sent bytes, and is closed when both sides have ended', async () => {
    const { one, two, stream, other, settle } = await connected();
    one.send(stream, 'last');
    one.network.end(stream);
    one.send(stream, 'too late');
    await settle();
    expect(two.take()).toEqual([`received ${other} last`, `ended ${other}`]);
    two.send(other, 'answer');
    two.network.end(other);
    await settle();
    expect(one.take()).toEqual([`received ${stream} answer`, `ended ${stream}`, `closed ${stream} well`]);
    expect(two.take()).toEqual([`closed ${other} well`]);
  });

  it('notifies the other side when one side resets it', async () => {
    const { one, two, stream, other, settle } = await connected();
    one.network.reset(stream);
    await settle();
    expect(one.take()).toEqual([`closed ${stream} well`]);
    expect(two.take()).toEqual([`closed ${other} ECONNRESET`]);
    expect(one.dial(2)).toBe(stream);
  });

  it('delivers no bytes while it is paused, and delivers a reset', async () => {
    const { one, two, stream, other, settle } = await connected();
    two.network.pause(other);
    one.send(stream, 'a');
    await settle();
    expect(two.take()).toEqual([]);
    two.network.resume(other);
    await settle();
    expect(two.take()).toEqual([`received ${other} a`]);
    two.network.pause(other);
    one.network.reset(stream);
    await settle();
    expect(two.take()).toEqual([`closed ${other} ECONNRESET`]);
  });
});

describe('a dial', () => {
  it('is refused by a machine without a process', async () => {
    const { one, two, settle } = await world();
    two.network.kill();
    const stream = one.dial(2);
    await settle();
    expect(one.take()).toEqual([`closed ${stream} ECONNREFUSED`]);
  });

  it('waits for a starting process until it listens, or has started without listening', async () => {
    const { wire, one, two, settle } = await world();
    two.network.kill();
    const again = new Process(wire, 2);
    const stream = one.dial(2);
    await settle();
    expect(one.take()).toEqual([]);
    await again.network.listen({ address: undefined, port, backlog: undefined });
    await settle();
    expect(one.take()).toEqual([`connected ${stream}`]);
    again.network.kill();
    await settle();
    expect(one.take()).toEqual([`closed ${stream} ECONNRESET`]);
    const third = new Process(wire, 2);
    const late = one.dial(2);
    third.network.markStarted();
    for (let round = 0; round < 10; round++) await settle();
    expect(one.take()).toEqual([`closed ${late} ECONNREFUSED`]);
  });

  it('opens no stream after it was cancelled', async () => {
    const { wire, one, two, settle } = await world();
    const heal = wire.cut(1, 2);
    const stream = one.dial(2);
    await settle();
    one.network.reset(stream);
    heal();
    await settle();
    expect(one.take()).toEqual([`closed ${stream} well`]);
    expect(two.take()).toEqual([]);
  });

  it('resolves the host names of the ensemble, and rejects others', async () => {
    const { one } = await world();
    expect(await one.network.resolve(hostOf(2))).toEqual([addressOf(2)]);
    await expect(one.network.resolve('elsewhere')).rejects.toThrow('the name elsewhere');
  });
});

describe('a cut', () => {
  it('holds back the bytes of one direction, and delivers them when it is healed', async () => {
    const { wire, one, two, stream, other, settle } = await connected();
    const heal = wire.cut(1, 2);
    expect(wire.isCut(1, 2)).toBe(true);
    expect(wire.isCut(2, 1)).toBe(false);
    one.send(stream, 'held');
    two.send(other, 'free');
    await settle();
    expect(one.take()).toEqual([`received ${stream} free`]);
    expect(two.take()).toEqual([]);
    one.network.end(stream);
    heal();
    await settle();
    expect(two.take()).toEqual([`received ${other} held`, `ended ${other}`]);
  });

  it('keeps a dial unanswered in either direction, and holds back a reset', async () => {
    const { wire, one, two, stream, other, settle } = await connected();
    const heal = wire.cut(2, 1);
    const dial = one.dial(2);
    two.network.reset(other);
    await settle();
    expect(one.take()).toEqual([]);
    heal();
    await settle();
    expect(one.take()).toEqual([`connected ${dial}`, `closed ${stream} ECONNRESET`]);
  });

  it('ends when all cuts of the pair are healed, one by one or all at once', async () => {
    const { wire } = await world();
    const heals = [wire.cut(1, 2), wire.cut(1, 2)];
    heals[0]!();
    heals[0]!();
    expect(wire.cuts).toEqual([[1, 2]]);
    heals[1]!();
    expect(wire.cuts).toEqual([]);
    const late = wire.cut(2, 1);
    wire.healAll();
    expect(wire.cuts).toEqual([]);
    wire.cut(2, 1);
    late();
    expect(wire.cuts).toEqual([[2, 1]]);
  });
});

describe('a machine', () => {
  it('runs one process at a time', async () => {
    const { wire } = await world();
    expect(() => wire.startProcess(1)).toThrow('machine 1 already runs a process');
  });

  it('rejects a second listener on a port', async () => {
    const { one } = await world();
    await expect(one.network.listen({ address: undefined, port, backlog: undefined })).rejects.toThrow('already in use');
  });

  it('resets the open streams of a process that ends, and delivers no more events to it', async () => {
    const { one, two, stream, other, settle } = await connected();
    one.send(stream, 'last');
    two.send(other, 'never read');
    one.network.kill();
    await settle();
    expect(one.take()).toEqual([]);
    expect(two.take()).toEqual([`received ${other} last`, `closed ${other} ECONNRESET`]);
  });
});
