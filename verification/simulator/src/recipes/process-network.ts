/**
 * The network as one process of a client's machine sees it: input is held back while the process is
 * paused, and dropped once it has ended. Its streams have ids of their own, since the stack may
 * reuse an id before the process learns that the stream was closed.
 */
import type { Network, NetworkSink, SendBatch, StreamId } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { ClientMachine } from '../clients/client-world.ts';
import type { TimerOwner, VirtualClock } from '../world/virtual-clock.ts';

export class ProcessNetwork implements Network {
  readonly #machine: ClientMachine;
  readonly #clock: VirtualClock;
  readonly #owner: TimerOwner;
  /** Ids of the stack by those of the process, and back; for open streams. */
  readonly #innerOf = new Map<StreamId, StreamId>();
  readonly #outerOf = new Map<StreamId, StreamId>();
  #streams = 0;
  #deferred: (() => void)[] = [];

  constructor(machine: ClientMachine, clock: VirtualClock, owner: TimerOwner) {
    this.#machine = machine;
    this.#clock = clock;
    this.#owner = owner;
  }

  /** The wire of a connection, for faults. */
  wireOf(stream: StreamId): VirtualCnxn | undefined {
    const inner = this.#innerOf.get(stream);
    return inner === undefined ? undefined : this.#machine.wireOf(inner);
  }

  /**
   * The process has ended, and the machine resets its connections; or the machine is gone with
   * them, silently.
   */
  shutDown(what: 'process' | 'machine'): void {
    if (what === 'process') for (const inner of this.#outerOf.keys()) this.#machine.reset(inner);
    this.#machine.unplug();
  }

  start(sink: NetworkSink): void {
    const outer = (inner: StreamId) => this.#outerOf.get(inner)!;
    this.#machine.start({
      accepted: (inner) => this.#machine.reset(inner),
      connected: (inner) => {
        const stream = outer(inner);
        this.#deliver(() => sink.connected(stream));
      },
      received: ({ count, streams, buffers, starts, ends }) => {
        const own = Array.from({ length: count }, (_, index) => outer(streams[index]!));
        // The lists are reused after this call.
        const batch = { count, streams: own, buffers: copy(buffers, count), starts: copy(starts, count), ends: copy(ends, count) };
        this.#deliver(() => sink.received(batch));
      },
      drained: (inner) => {
        const stream = outer(inner);
        this.#deliver(() => sink.drained(stream));
      },
      ended: (inner) => {
        const stream = outer(inner);
        this.#deliver(() => sink.ended(stream));
      },
      closed: (inner, error) => {
        const stream = outer(inner);
        this.#outerOf.delete(inner);
        this.#innerOf.delete(stream);
        this.#deliver(() => sink.closed(stream, error));
      },
    });
  }

  /** Delivers in the order of arrival, and not before the process continues. */
  #deliver(call: () => void): void {
    const owner = this.#owner;
    if (owner.isDead) return;
    if (owner.pausedUntilMs <= this.#clock.elapsedMs && this.#deferred.length === 0) {
      call();
      return;
    }
    this.#deferred.push(call);
    if (this.#deferred.length > 1) return;
    this.#clock.at(owner.pausedUntilMs, 'resume', owner, () => {
      for (const each of this.#deferred.splice(0)) each();
    });
  }

  connect(endpoint: Parameters<Network['connect']>[0]): StreamId {
    const inner = this.#machine.connect(endpoint);
    const stream = ++this.#streams;
    this.#innerOf.set(stream, inner);
    this.#outerOf.set(inner, stream);
    return stream;
  }

  send(batch: SendBatch): void {
    for (let index = 0; index < batch.count; index++) {
      const [buffers, starts, ends] = [[batch.buffers[index]!], [batch.starts[index]!], [batch.ends[index]!]];
      this.#forward(batch.streams[index]!, (inner) => {
        const kept = [false];
        this.#machine.send({ count: 1, streams: [inner], buffers, starts, ends, kept });
        batch.kept[index] = kept[0]!;
      });
    }
  }

  #forward(stream: StreamId, call: (inner: StreamId) => void): void {
    const inner = this.#innerOf.get(stream);
    if (inner !== undefined) call(inner);
  }

  listen: Network['listen'] = (options) => this.#machine.listen(options);
  resolve: Network['resolve'] = (host) => this.#machine.resolve(host);

  end(stream: StreamId): void {
    this.#forward(stream, (inner) => this.#machine.end(inner));
  }

  reset(stream: StreamId): void {
    this.#forward(stream, (inner) => this.#machine.reset(inner));
  }

  pause(stream: StreamId): void {
    this.#forward(stream, (inner) => this.#machine.pause(inner));
  }

  resume(stream: StreamId): void {
    this.#forward(stream, (inner) => this.#machine.resume(inner));
  }
}

function copy<T>(from: ArrayLike<T>, count: number): T[] {
  return Array.from({ length: count }, (_, index) => from[index]!);
}
