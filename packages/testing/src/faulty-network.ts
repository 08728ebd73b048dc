/**
 * A network with faults: a silence, in which no byte passes in either direction and no connection
 * is closed, as when a cable is pulled or a machine is paused; and closed connections.
 *
 * It sits between a server and its real network. Events during a silence are queued, and delivered
 * in order when it ends.
 */
import type { Endpoint, Listener, ListenOptions, Network, NetworkSink, ReceivedBatch, SendBatch, StreamId } from '@tskeeper/runtime';

export class FaultyNetwork implements Network, NetworkSink {
  readonly #real: Network;
  #sink: NetworkSink | undefined;
  /** Number of silences in progress. */
  #partitions = 0;
  /** Queued events and calls, of either side. */
  #delayed: (() => void)[] = [];
  /**
   * A unique number for each open stream: a stream number may belong to another client when a
   * silence ends, and bytes for one client must not reach another.
   */
  readonly #streams = new Map<StreamId, number>();
  #opened = 0;

  constructor(real: Network) {
    this.#real = real;
  }

  // --- Faults

  /** No byte passes until the returned function is called. */
  partition(): () => void {
    this.#partitions++;
    let hasHealed = false;
    return () => {
      if (hasHealed || this.#partitions === 0) return;
      hasHealed = true;
      if (--this.#partitions === 0) this.#replayDelayed();
    };
  }

  /** Ends every silence. */
  heal(): void {
    this.#partitions = 0;
    this.#replayDelayed();
  }

  /**
   * Resets these connections, or all; returns how many. During a silence the server is notified
   * afterwards, clients at once.
   */
  cut(streams: Iterable<StreamId> = this.#streams.keys()): number {
    const openStreams = Array.from(streams).filter((stream) => this.#streams.has(stream));
    for (const stream of openStreams) this.#real.reset(stream);
    return openStreams.length;
  }

  #replayDelayed(): void {
    const delayed = this.#delayed;
    this.#delayed = [];
    for (const action of delayed) action();
  }

  #open(stream: StreamId): void {
    this.#streams.set(stream, ++this.#opened);
  }

  /** Runs `action` now, or when the silence ends if the stream is still the same. */
  #runIfStreamOpen(stream: StreamId, action: () => void): void {
    const opened = this.#streams.get(stream);
    this.#runOrDelay(() => {
      if (this.#streams.get(stream) === opened) action();
    });
  }

  #runOrDelay(action: () => void): void {
    if (this.#partitions > 0) this.#delayed.push(action);
    else action();
  }

  // --- Calls of the server

  start(sink: NetworkSink): void {
    this.#sink = sink;
    this.#real.start(this);
  }

  listen(options: ListenOptions): Promise<Listener> {
    return this.#real.listen(options);
  }

  connect(endpoint: Endpoint): StreamId {
    return this.#real.connect(endpoint);
  }

  resolve(host: string): Promise<string[]> {
    return this.#real.resolve(host);
  }

  send(batch: SendBatch): void {
    if (this.#partitions === 0) {
      this.#real.send(batch);
      return;
    }
    for (let index = 0; index < batch.count; index++) {
      batch.kept[index] = true;
      const stream = batch.streams[index]!;
      const one = {
        count: 1,
        streams: [stream],
        buffers: [batch.buffers[index]!],
        starts: [batch.starts[index]!],
        ends: [batch.ends[index]!],
      };
      this.#runIfStreamOpen(stream, () => this.#real.send({ ...one, kept: [] }));
    }
  }

  end(stream: StreamId): void {
    this.#runIfStreamOpen(stream, () => this.#real.end(stream));
  }

  reset(stream: StreamId): void {
    this.#runIfStreamOpen(stream, () => this.#real.reset(stream));
  }

  pause(stream: StreamId): void {
    this.#real.pause(stream);
  }

  resume(stream: StreamId): void {
    this.#real.resume(stream);
  }

  // --- Events of the network

  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void {
    this.#open(stream);
    this.#runOrDelay(() => this.#sink!.accepted(stream, listener, remote));
  }

  connected(stream: StreamId): void {
    this.#open(stream);
    this.#runOrDelay(() => this.#sink!.connected(stream));
  }

  received(batch: ReceivedBatch): void {
    if (this.#partitions === 0) {
      this.#sink!.received(batch);
      return;
    }
    const copy = copyOf(batch);
    this.#delayed.push(() => this.#sink!.received(copy));
  }

  drained(stream: StreamId): void {
    this.#runOrDelay(() => this.#sink!.drained(stream));
  }

  ended(stream: StreamId): void {
    this.#runOrDelay(() => this.#sink!.ended(stream));
  }

  closed(stream: StreamId, error: string | undefined): void {
    this.#streams.delete(stream);
    this.#runOrDelay(() => this.#sink!.closed(stream, error));
  }
}

/**
 * A batch is valid only during the call; its buffers are not copied, since their ownership passes
 * with the batch.
 */
function copyOf(batch: ReceivedBatch): ReceivedBatch {
  const { count } = batch;
  return {
    count,
    streams: Array.from(batch.streams).slice(0, count),
    buffers: Array.from(batch.buffers).slice(0, count),
    starts: Array.from(batch.starts).slice(0, count),
    ends: Array.from(batch.ends).slice(0, count),
  };
}
