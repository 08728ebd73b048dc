/**
 * A network that can be made to misbehave: a stretch of silence in which no byte gets through in either direction while nobody is told,
 * as when a cable is pulled or a machine stands still; and connections that are cut off.
 *
 * It stands between a server and its real network. What happens during a silence is kept, and takes place in order when it is over.
 */
import type { Endpoint, Listener, ListenOptions, Network, NetworkSink, ReceivedBatch, SendBatch, StreamId } from '@tskeeper/runtime';

export class TroubledNetwork implements Network, NetworkSink {
  readonly #real: Network;
  #sink: NetworkSink | undefined;
  /** How many silences there are at once. */
  #silences = 0;
  /** What has happened meanwhile, on either side. */
  #kept: (() => void)[] = [];
  /**
   * Each open stream with a number of its own: the stream's may belong to another by the time a silence is over, and what was meant for one
   * client must not reach the next.
   */
  readonly #streams = new Map<StreamId, number>();
  #opened = 0;

  constructor(real: Network) {
    this.#real = real;
  }

  // --- Trouble

  /** No byte gets through until the function that is returned has been called. */
  silence(): () => void {
    this.#silences++;
    let isOver = false;
    return () => {
      if (isOver || this.#silences === 0) return;
      isOver = true;
      if (--this.#silences === 0) this.#catchUp();
    };
  }

  /** Ends every silence. */
  heal(): void {
    this.#silences = 0;
    this.#catchUp();
  }

  /** Resets these connections, or all there are; returns how many. During a silence the server hears of it afterwards, clients at once. */
  cut(streams: Iterable<StreamId> = this.#streams.keys()): number {
    const there = Array.from(streams).filter((stream) => this.#streams.has(stream));
    for (const stream of there) this.#real.reset(stream);
    return there.length;
  }

  #catchUp(): void {
    const kept = this.#kept;
    this.#kept = [];
    for (const happens of kept) happens();
  }

  #open(stream: StreamId): void {
    this.#streams.set(stream, ++this.#opened);
  }

  /** To be done now, or when the silence is over if the stream is still the same. */
  #whenReachable(stream: StreamId, happens: () => void): void {
    const opened = this.#streams.get(stream);
    this.#whenHeard(() => {
      if (this.#streams.get(stream) === opened) happens();
    });
  }

  #whenHeard(happens: () => void): void {
    if (this.#silences > 0) this.#kept.push(happens);
    else happens();
  }

  // --- What the server asks of its network

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
    if (this.#silences === 0) {
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
      this.#whenReachable(stream, () => this.#real.send({ ...one, kept: [] }));
    }
  }

  end(stream: StreamId): void {
    this.#whenReachable(stream, () => this.#real.end(stream));
  }

  reset(stream: StreamId): void {
    this.#whenReachable(stream, () => this.#real.reset(stream));
  }

  pause(stream: StreamId): void {
    this.#real.pause(stream);
  }

  resume(stream: StreamId): void {
    this.#real.resume(stream);
  }

  // --- What the network tells the server

  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void {
    this.#open(stream);
    this.#whenHeard(() => this.#sink!.accepted(stream, listener, remote));
  }

  connected(stream: StreamId): void {
    this.#open(stream);
    this.#whenHeard(() => this.#sink!.connected(stream));
  }

  received(batch: ReceivedBatch): void {
    if (this.#silences === 0) {
      this.#sink!.received(batch);
      return;
    }
    const copy = copyOf(batch);
    this.#kept.push(() => this.#sink!.received(copy));
  }

  drained(stream: StreamId): void {
    this.#whenHeard(() => this.#sink!.drained(stream));
  }

  ended(stream: StreamId): void {
    this.#whenHeard(() => this.#sink!.ended(stream));
  }

  closed(stream: StreamId, error: string | undefined): void {
    this.#streams.delete(stream);
    this.#whenHeard(() => this.#sink!.closed(stream, error));
  }
}

/** A batch is valid during the call only; its buffers are not copied, since they go with it. */
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
