import { describe, expect, test } from 'vitest';
import type { Endpoint, NetworkSink, StreamId } from '../../src/index.ts';
import { type VirtualNetwork, type PipeConditions, VirtualWire } from '../../src/internal.ts';
import { ManualClock } from '../../src/virtual/manual-clock.ts';

/** Records the calls of a stack. */
class Notes implements NetworkSink {
  readonly lines: string[] = [];
  readonly network: VirtualNetwork;
  readonly bytes = new Map<StreamId, string>();
  batches: number[] = [];

  constructor(network: VirtualNetwork) {
    this.network = network;
    network.start(this);
  }

  accepted(stream: StreamId, _listener: unknown, remote: Endpoint): void {
    this.lines.push(`accepted ${stream} from ${remote.address}:${remote.port}`);
  }

  connected(stream: StreamId): void {
    this.lines.push(`connected ${stream}`);
  }

  received(batch: { count: number; streams: ArrayLike<number>; buffers: ArrayLike<Buffer> }): void {
    this.batches.push(batch.count);
    for (let index = 0; index < batch.count; index++) {
      const stream = batch.streams[index]!;
      this.bytes.set(stream, (this.bytes.get(stream) ?? '') + batch.buffers[index]!.toString('latin1'));
    }
  }

  drained(stream: StreamId): void {
    this.lines.push(`drained ${stream}`);
  }

  ended(stream: StreamId): void {
    this.lines.push(`ended ${stream}`);
  }

  closed(stream: StreamId, error: string | undefined): void {
    this.lines.push(`closed ${stream} ${error ?? 'well'}`);
  }

  /** Returns whether the network kept the buffer. */
  send(stream: StreamId, bytes: Buffer | string): boolean {
    const buffer = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
    const batch = { count: 1, streams: [stream], buffers: [buffer], starts: [0], ends: [buffer.length], kept: [false] };
    this.network.send(batch);
    return batch.kept[0]!;
  }
}

interface Pair {
  readonly clock: ManualClock;
  readonly wire: VirtualWire;
  readonly here: Notes;
  readonly there: Notes;
}

async function pair(conditions: Partial<PipeConditions> = {}): Promise<Pair> {
  const clock = new ManualClock();
  const wire = new VirtualWire(clock);
  wire.conditionsOf = () => conditions;
  const here = new Notes(wire.stack('10.0.0.1'));
  const there = new Notes(wire.stack('10.0.0.2'));
  await there.network.listen({ address: undefined, port: 2181, backlog: undefined });
  return { clock, wire, here, there };
}

const target: Endpoint = { address: '10.0.0.2', port: 2181 };

describe('connections', () => {
  test('a dialled connection is accepted, carries bytes both ways and ends on both sides', async () => {
    const { clock, here, there, wire } = await pair();
    const stream = here.network.connect(target);
    clock.advance(0);
    here.send(stream, 'question');
    there.send(0, 'answer');
    clock.advance(0);
    expect([there.bytes.get(0), here.bytes.get(stream)]).toEqual(['question', 'answer']);
    here.network.end(stream);
    clock.advance(0);
    there.send(0, ', late');
    there.network.end(0);
    clock.advance(0);
    expect(here.bytes.get(stream)).toBe('answer, late');
    expect(here.lines).toEqual(['connected 0', 'ended 0', 'closed 0 well']);
    expect(there.lines).toEqual(['accepted 0 from 10.0.0.1:32768', 'ended 0', 'closed 0 well']);
    expect([wire.cnxns.size, here.network.streamCount, there.network.streamCount]).toEqual([0, 0, 0]);
    expect([here.network.sentBytes, there.network.receivedBytes]).toEqual([8, 8]);
  });

  test('a dial to a closed port is refused, to an unknown address fails, and across a cut is not answered', async () => {
    const { clock, here, wire } = await pair();
    here.network.connect({ address: '10.0.0.2', port: 1 });
    here.network.connect({ address: '10.0.0.3', port: 1 });
    clock.advance(0);
    wire.cut('10.0.0.2', '10.0.0.1');
    here.network.connect(target);
    clock.advance(100_000);
    expect(here.lines).toEqual(['closed 0 ECONNREFUSED', 'closed 1 EHOSTUNREACH']);
  });

  test('a dial that is reset before it is reported as connected is closed on the other side', async () => {
    const { clock, here, there, wire } = await pair({ delayMs: 10 });
    const stream = here.network.connect(target);
    clock.advance(15);
    here.network.reset(stream);
    clock.advance(100);
    expect(here.lines).toEqual([`closed ${stream} well`]);
    expect(there.lines).toEqual(['accepted 0 from 10.0.0.1:32768', 'closed 0 ECONNRESET']);
    expect([wire.cnxns.size, there.network.streamCount]).toEqual([0, 0]);
  });

  test('a stream number is used again only after closed has been called for it', async () => {
    const { clock, here } = await pair();
    const first = here.network.connect(target);
    clock.advance(0);
    here.network.reset(first);
    expect(here.network.connect(target)).not.toBe(first);
    clock.advance(0);
    expect(here.network.connect(target)).toBe(first);
  });

  test('a reset drops bytes in transit and is reported on the other side', async () => {
    const { clock, here, there } = await pair({ delayMs: 10 });
    const stream = here.network.connect(target);
    clock.advance(20);
    here.send(stream, 'never read');
    clock.advance(9);
    here.network.reset(stream);
    clock.advance(20);
    expect(here.lines.at(-1)).toBe('closed 0 well');
    expect(there.lines.at(-1)).toBe('closed 0 ECONNRESET');
  });

  test('a port is bound once, and names resolve to their addresses', async () => {
    const { there, wire } = await pair();
    await expect(there.network.listen({ address: undefined, port: 2181, backlog: undefined })).rejects.toThrow(
      'port 2181 is already in use',
    );
    wire.name('zoo1', ['10.0.0.2']);
    expect(await there.network.resolve('zoo1')).toEqual(['10.0.0.2']);
    expect(await there.network.resolve('10.0.0.1')).toEqual(['10.0.0.1']);
    await expect(there.network.resolve('zoo2')).rejects.toThrow('zoo2');
  });
});

describe('pipes', () => {
  test('bytes arrive in order, however the delay changes', async () => {
    const { clock, wire, here, there } = await pair({ delayMs: 50 });
    const stream = here.network.connect(target);
    clock.advance(100);
    here.send(stream, 'slow ');
    const [cnxn] = [...wire.cnxns];
    cnxn!.forward.conditions.delayMs = 0;
    here.send(stream, 'fast');
    clock.advance(49);
    expect(there.bytes.size).toBe(0);
    clock.advance(1);
    expect(there.bytes.get(0)).toBe('slow fast');
  });

  test('bytes that arrive at one instant are delivered in one batch', async () => {
    const { clock, here, there } = await pair();
    const streams = [1, 2, 3].map(() => here.network.connect(target));
    clock.advance(0);
    for (const stream of streams) here.send(stream, 'x');
    clock.advance(0);
    expect(there.batches).toEqual([3]);
  });

  test('a narrow window keeps bytes in the memory of the sender until the reader reads', async () => {
    const { clock, here, there } = await pair({ windowBytes: 4 });
    const stream = here.network.connect(target);
    clock.advance(0);
    there.network.pause(0);
    const bytes = Buffer.from('0123456789');
    expect(here.send(stream, bytes)).toBe(true);
    clock.advance(0);
    // A change of a buffer that the network kept changes what is sent.
    bytes.write('x', 9);
    there.network.resume(0);
    clock.advance(0);
    expect(there.bytes.get(0)).toBe('012345678x');
    expect(here.lines).toEqual(['connected 0', 'drained 0']);
    expect(here.send(stream, 'abc')).toBe(false);
  });

  test('a window of 0 lets nothing pass until it opens', async () => {
    const { clock, wire, here, there } = await pair({ windowBytes: 0 });
    const stream = here.network.connect(target);
    clock.advance(0);
    expect(here.send(stream, 'x')).toBe(true);
    clock.advance(1000);
    expect(there.bytes.size).toBe(0);
    const [cnxn] = [...wire.cnxns];
    cnxn!.forward.conditions.windowBytes = 10;
    cnxn!.forward.conditionsChanged();
    clock.advance(0);
    expect(there.bytes.get(0)).toBe('x');
  });

  test('a pipe with pieces of one byte delivers byte by byte, at its interval', async () => {
    const { clock, here, there } = await pair({ pieceBytes: 1, pieceIntervalMs: 10 });
    const stream = here.network.connect(target);
    clock.advance(0);
    here.send(stream, 'abc');
    clock.advance(0);
    expect(there.bytes.get(0)).toBe('a');
    clock.advance(10);
    expect(there.bytes.get(0)).toBe('ab');
    clock.advance(10);
    expect(there.bytes.get(0)).toBe('abc');
    expect(there.batches).toEqual([1, 1, 1]);
  });

  test.each([0, 1, 5, 10])('a connection is reset after byte %d', async (count) => {
    const { clock, wire, here, there } = await pair();
    const stream = here.network.connect(target);
    clock.advance(0);
    [...wire.cnxns][0]!.forward.resetAfter(count);
    here.send(stream, '0123456789');
    clock.advance(0);
    expect(there.bytes.get(0) ?? '').toBe('0123456789'.slice(0, count));
    expect(here.lines.at(-1)).toBe('closed 0 ECONNRESET');
    expect(there.lines.at(-1)).toBe('closed 0 ECONNRESET');
  });

  test('a cut holds everything back without an event, and healing delivers it', async () => {
    const { clock, wire, here, there } = await pair();
    const stream = here.network.connect(target);
    clock.advance(0);
    wire.cut('10.0.0.1', '10.0.0.2');
    here.send(stream, 'patience');
    here.network.end(stream);
    clock.advance(100_000);
    expect([there.bytes.size, there.lines.length]).toEqual([0, 1]);
    wire.heal('10.0.0.1', '10.0.0.2');
    clock.advance(0);
    expect(there.bytes.get(0)).toBe('patience');
    expect(there.lines.at(-1)).toBe('ended 0');
  });

  test('a cut in one direction holds back bytes and resets in that direction, and dials fail', async () => {
    const { clock, wire, here, there } = await pair();
    const stream = here.network.connect(target);
    clock.advance(0);
    wire.cutOneWay('10.0.0.1', '10.0.0.2');
    here.send(stream, 'lost?');
    there.send(0, 'received');
    const second = here.network.connect(target);
    clock.advance(100_000);
    expect([there.bytes.get(0), here.bytes.get(stream)]).toEqual([undefined, 'received']);
    expect(here.lines).not.toContain(`connected ${second}`);
    here.network.reset(stream);
    clock.advance(100_000);
    expect(there.lines.at(-1)).toBe('accepted 0 from 10.0.0.1:32768');
    wire.healOneWay('10.0.0.1', '10.0.0.2');
    clock.advance(0);
    expect(there.lines.at(-1)).toBe('closed 0 ECONNRESET');
  });

  test('a machine that is off does not answer dials', async () => {
    const { clock, here, there } = await pair();
    there.network.isPoweredOff = true;
    const stream = here.network.connect(target);
    clock.advance(100_000);
    expect([here.lines, there.lines]).toEqual([[], []]);
    there.network.isPoweredOff = false;
    here.network.reset(stream);
    const second = here.network.connect(target);
    clock.advance(0);
    expect(here.lines).toContain(`connected ${second}`);
  });

  test('the same script gives the same events', async () => {
    const tell = async (): Promise<string[]> => {
      const { clock, here, there } = await pair({ delayMs: 3, windowBytes: 7, pieceBytes: 2, pieceIntervalMs: 1 });
      const streams = [1, 2, 3].map(() => here.network.connect(target));
      clock.advance(6);
      for (const stream of streams) here.send(stream, `message of ${stream}`);
      here.network.reset(streams[1]!);
      clock.advance(100);
      return [...here.lines, ...there.lines, ...[...there.bytes].map(String), String(there.batches)];
    };
    expect(await tell()).toEqual(await tell());
  });
});
