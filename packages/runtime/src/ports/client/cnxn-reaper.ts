/**
 * Closes connections that have timed out: those without a handshake, those that are silent, those
 * whose client takes no output, and those that were sent the end and stay open.
 *
 * Each list has the connection that is due first at its front, or is a queue by due time, so a
 * wake-up costs no more than what it closes.
 */
import type { Millis } from '@tskeeper/protocol';
import type { PortObserver } from '../port-observer.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ClientCnxns } from './client-cnxns.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { ClientSender } from './client-sender.ts';
import type { PortTurn } from './port-turn.ts';

/** Limit of connections closed for their age in one turn. */
const closingsPerTurn = 1000;
/** How long a client may take to notice that its connection was closed here. */
const lingerMs = 2000;
/** A later wake-up means that the process was suspended, and that input may wait unread... */
const latenessMs = 500;
/** ...so clients get this long before any counts as silent. */
const latenessGraceMs = 200;

export interface CnxnReaperParts {
  readonly options: ClientPortOptions;
  readonly observer: PortObserver;
  readonly log: RateLimitedLog;
  readonly turn: PortTurn;
  readonly cnxns: ClientCnxns;
  readonly sender: ClientSender;
}

export class CnxnReaper {
  readonly #options: ClientPortOptions;
  readonly #observer: PortObserver;
  readonly #log: RateLimitedLog;
  readonly #turn: PortTurn;
  readonly #cnxns: ClientCnxns;
  readonly #sender: ClientSender;
  #graceUntilMs: Millis = 0;

  constructor(parts: CnxnReaperParts) {
    this.#options = parts.options;
    this.#observer = parts.observer;
    this.#log = parts.log;
    this.#turn = parts.turn;
    this.#cnxns = parts.cnxns;
    this.#sender = parts.sender;
  }

  /** When the next connection may be due; undefined if there is nothing to wait for. */
  deadline(): Millis | undefined {
    const due = this.#due();
    return due === undefined ? undefined : Math.max(due, this.#graceUntilMs);
  }

  closeDue(): void {
    const { elapsedMs } = this.#turn.now;
    const due = this.#due();
    if (due === undefined || due > elapsedMs) return;
    // Clients are silent only if the server has listened. After a suspension of this process (a
    // stop, a long collection) their bytes may wait in the kernel, and the loop calls timers before
    // it reads.
    if (elapsedMs - Math.max(due, this.#graceUntilMs) > latenessMs) this.#graceUntilMs = elapsedMs + latenessGraceMs;
    if (elapsedMs < this.#graceUntilMs) return;
    this.#closeHalfOpen();
    this.#closeIdle();
    this.#closeSlow();
    this.#resetLingering();
  }

  /**
   * `closeDue` must find every connection due that is due by this sum, to the last bit: it uses the
   * same sum.
   */
  #due(): Millis | undefined {
    let due = this.#cnxns.idle.deadline() ?? Infinity;
    for (const oldest of this.#cnxns.halfOpen) {
      const { halfOpenMax, halfOpenGraceMs, sessionlessTimeoutMs } = this.#options;
      due = Math.min(due, oldest.acceptedMs + (this.#cnxns.halfOpen.size > halfOpenMax ? halfOpenGraceMs : sessionlessTimeoutMs));
      break;
    }
    for (const first of this.#sender.awaitingDrain) {
      due = Math.min(due, first.progressMs + this.#options.drainTimeoutMs);
      break;
    }
    for (const first of this.#sender.lingering) {
      due = Math.min(due, first.closingMs + lingerMs);
      break;
    }
    return due === Infinity ? undefined : due;
  }

  #closeHalfOpen(): void {
    const { halfOpenMax, halfOpenGraceMs, sessionlessTimeoutMs } = this.#options;
    let left = closingsPerTurn;
    for (const cnxn of this.#cnxns.halfOpen) {
      const dueMs = cnxn.acceptedMs + (this.#cnxns.halfOpen.size > halfOpenMax ? halfOpenGraceMs : sessionlessTimeoutMs);
      if (this.#turn.now.elapsedMs < dueMs || left-- === 0) return;
      const age = this.#turn.now.elapsedMs - cnxn.acceptedMs;
      this.#observer.cnxnExpired();
      this.#log.warn(this.#turn.now.elapsedMs, `${cnxn.name} sent no complete handshake in ${age} ms and was closed.`, {
        event: 'cnxn.half-open',
        address: cnxn.name,
        durationMs: age,
      });
      // FIN, as ZooKeeper closes it: a monitor that probes the port sees an orderly end. In a flood
      // its place is needed at once.
      if (this.#cnxns.halfOpen.size > halfOpenMax) this.#cnxns.drop(cnxn);
      else this.#cnxns.close(cnxn);
    }
  }

  #closeIdle(): void {
    const { elapsedMs } = this.#turn.now;
    this.#cnxns.idle.takeDue(elapsedMs, closingsPerTurn, (stream) => {
      const cnxn = this.#cnxns.get(stream);
      if (cnxn === undefined || cnxn.stage !== 'open') return;
      const timeoutMs = this.#cnxns.timeoutOf(this.#turn.front.inspect.cnxn(stream));
      if (elapsedMs < cnxn.receivedMs + timeoutMs) {
        this.#cnxns.idle.touch(stream, cnxn.receivedMs, timeoutMs);
        return;
      }
      this.#observer.cnxnExpired();
      const durationMs = elapsedMs - cnxn.receivedMs;
      this.#log.warn(elapsedMs, `${cnxn.name} sent nothing for ${durationMs} ms, and was closed.`, {
        event: 'cnxn.idle',
        address: cnxn.name,
        durationMs,
      });
      this.#cnxns.close(cnxn);
    });
  }

  #closeSlow(): void {
    const { elapsedMs } = this.#turn.now;
    const { drainTimeoutMs, queuedOutputBytesMax } = this.#options;
    let left = closingsPerTurn;
    for (const cnxn of this.#sender.awaitingDrain) {
      if (elapsedMs < cnxn.progressMs + drainTimeoutMs || left-- === 0) return;
      if (cnxn.stage === 'open' && (cnxn.writer?.offset ?? 0) <= queuedOutputBytesMax) {
        // Slow, but within its limits. The time-out of its session decides how long to wait.
        this.#sender.renewProgress(cnxn);
        continue;
      }
      if (cnxn.stage !== 'closing') {
        this.#log.warn(
          elapsedMs,
          `${cnxn.name} has taken none of ${cnxn.waitingBytes} waiting bytes for ${drainTimeoutMs} ms and was closed.`,
          { event: 'cnxn.slow', address: cnxn.name, bytes: cnxn.waitingBytes, durationMs: drainTimeoutMs },
        );
      }
      this.#cnxns.drop(cnxn);
    }
  }

  #resetLingering(): void {
    let left = closingsPerTurn;
    for (const cnxn of this.#sender.lingering) {
      if (this.#turn.now.elapsedMs < cnxn.closingMs + lingerMs || left-- === 0) return;
      this.#cnxns.drop(cnxn);
    }
  }
}
