/**
 * Delivers what a server and the session report to the listeners of the program.
 *
 * Order: answers settle promises and events call listeners, both in the order in which the server
 * sent them. An answer reaches the code after `await` two microtasks after it was read (one for the
 * client's method, one for the caller's), so events are delayed by as many.
 */
import { EventType, ProtocolError, type WatcherEvent, type Zxid } from '@tskeeper/protocol';
import type { ConnectFailure, KeeperState, NodeEventType, SessionEvent } from '../watched-event.ts';
import type { Watcher, WatchTable } from '../watches/watch-table.ts';
import type { EventOutput } from './session-output.ts';
import type { SessionTracer } from './session-tracer.ts';

/** Receives everything, with the paths of the server. */
export interface SessionObserver {
  state(event: SessionEvent): void;
  connectFailed(failure: ConnectFailure): void;
  event(type: NodeEventType, path: string, zxid: bigint | undefined): void;
}

/** Maximum length of an invalid path in an error. */
const pathShownMax = 40;

const nodeEventTypes: ReadonlyMap<number, NodeEventType> = new Map<number, NodeEventType>([
  [EventType.nodeCreated, 'NodeCreated'],
  [EventType.nodeDeleted, 'NodeDeleted'],
  [EventType.nodeDataChanged, 'NodeDataChanged'],
  [EventType.nodeChildrenChanged, 'NodeChildrenChanged'],
]);

export class EventDelivery implements EventOutput {
  readonly #watches: WatchTable;
  readonly #trace: SessionTracer;
  readonly #observers = new Set<SessionObserver>();

  constructor(watches: WatchTable, trace: SessionTracer) {
    this.#watches = watches;
    this.#trace = trace;
  }

  /** Returns a function that removes the observer. */
  observe(observer: SessionObserver): () => void {
    this.#observers.add(observer);
    return () => {
      this.#observers.delete(observer);
    };
  }

  event({ type, path }: WatcherEvent, zxid: Zxid): void {
    const name = nodeEventTypes.get(type);
    // A later release may have unknown event types; the client does not watch what they are about.
    if (name === undefined) return;
    if (!path.startsWith('/')) throw new ProtocolError(`the path of an event, not ${JSON.stringify(path.slice(0, pathShownMax))}`, 0);
    const when = zxid > 0 ? BigInt(zxid) : undefined;
    if (this.#trace.isEnabled) this.#trace.record({ kind: 'watch', type: name, path, zxid: when });
    for (const observer of this.#observers) observer.event(name, path, when);
    for (const watcher of this.#watches.take(type, path)) this.toWatcher(watcher, name, path, when);
  }

  state(state: KeeperState, reason: string | undefined): void {
    if (this.#trace.isEnabled) this.#trace.record({ kind: 'state', state, reason });
    const event: SessionEvent = { type: 'None', state, path: null, zxid: undefined, reason };
    for (const observer of this.#observers) observer.state(event);
    for (const { listener } of this.#watches.all()) this.inOrder(() => listener(event));
  }

  connectFailed(failure: ConnectFailure): void {
    const { server, reason } = failure;
    if (this.#trace.isEnabled) this.#trace.record({ kind: 'attemptFailed', reason: `${server}: ${reason}` });
    for (const observer of this.#observers) observer.connectFailed(failure);
  }

  toWatcher(watcher: Watcher, type: NodeEventType, path: string, zxid: bigint | undefined): void {
    const { listener, chroot } = watcher;
    this.inOrder(() => listener({ type, state: 'SyncConnected', path: chroot.strip(path), zxid }));
  }

  /** Runs the listener after all earlier answers; see the head of this file. */
  inOrder(listener: () => void): void {
    void Promise.resolve().then(noop).then(listener);
  }
}

function noop(): void {}
