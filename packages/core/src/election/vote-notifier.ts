/**
 * Sends this server's notifications: to every voter, again after ever longer intervals, and to
 * single servers as replies.
 *
 * Two servers that answer each other could continue forever, as fast as the network allows: for
 * example an observer, and a voter whose round is earlier than the observer's. So this class
 * remembers the last notification sent to each server, for as long as it matters.
 */
import type { Millis, Notification, Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { ElectionLinks } from './election-links.ts';
import type { ElectionOptions } from './election-options.ts';
import type { Eligibility } from './eligibility.ts';
import { sameVote } from './vote.ts';
import { fingerprintVote } from './vote-set.ts';

/**
 * The longest interval of a server without a vote. Voters notify each other when they start, and no
 * voter notifies this one, so it has to ask. In ZooKeeper it may ask once a minute only.
 */
const nonVoterIntervalMsMax: Millis = 5000;

/** The last notification sent to a server. */
interface SentNotification {
  readonly notification: Notification;
  /** The notification it answered; undefined for one sent to all servers. */
  readonly inReplyTo: Notification | undefined;
  readonly sentMs: Millis;
}

export class VoteNotifier {
  readonly #sid: Sid;
  readonly #minIntervalMs: Millis;
  readonly #maxIntervalMs: Millis;
  readonly #links: Pick<ElectionLinks, 'notify'>;
  readonly #eligibility: Eligibility;
  readonly #lastSent = new Map<Sid, SentNotification>();
  #intervalMs: Millis;
  #repeatAtMs: Millis | undefined;

  constructor(options: ElectionOptions, links: Pick<ElectionLinks, 'notify'>, eligibility: Eligibility) {
    this.#sid = options.sid;
    this.#minIntervalMs = options.minNotificationIntervalMs ?? 200;
    this.#maxIntervalMs = options.maxNotificationIntervalMs ?? 60_000;
    this.#intervalMs = this.#minIntervalMs;
    this.#links = links;
    this.#eligibility = eligibility;
  }

  /** When all voters are to be notified again; undefined unless looking. */
  get repeatAtMs(): Millis | undefined {
    return this.#repeatAtMs;
  }

  get intervalMs(): Millis {
    return this.#intervalMs;
  }

  /** An election starts: the first interval is the shortest. */
  resetInterval(): void {
    this.#intervalMs = this.#minIntervalMs;
  }

  lengthenInterval(isVoter: boolean): void {
    const maxMs = isVoter ? this.#maxIntervalMs : Math.min(this.#maxIntervalMs, nonVoterIntervalMsMax);
    this.#intervalMs = Math.min(this.#intervalMs * 2, maxMs);
  }

  /** All voters are notified again after the shortest interval, at the latest. */
  repeatSoon(now: Now): void {
    this.#intervalMs = this.#minIntervalMs;
    this.#repeatAtMs = Math.min(this.#repeatAtMs ?? Infinity, now.elapsedMs + this.#minIntervalMs);
  }

  stopRepeating(): void {
    this.#repeatAtMs = undefined;
  }

  /** That server may no longer know what was sent to it, so it may be sent again at once. */
  forget(sid: Sid): void {
    this.#lastSent.delete(sid);
  }

  notifyAll(voters: readonly Sid[], notification: Notification, now: Now): void {
    for (const sid of voters) if (sid !== this.#sid) this.send(sid, notification, undefined, now);
    this.#repeatAtMs = now.elapsedMs + this.#intervalMs;
  }

  /**
   * Answers a notification. The same answer to the same question is not repeated within half the
   * interval after which a server would ask again.
   */
  reply(to: Sid, request: Notification, reply: Notification, now: Now): void {
    const last = this.#recentlySent(to, now);
    if (last?.inReplyTo !== undefined && sameNotification(last.inReplyTo, request) && sameNotification(last.notification, reply)) return;
    this.send(to, reply, request, now);
  }

  /** Whether a notification to this server may still be in flight. */
  hasSentRecently(to: Sid, now: Now): boolean {
    return this.#recentlySent(to, now) !== undefined;
  }

  /** `inReplyTo` is the notification that this one answers; undefined if it answers none. */
  send(to: Sid, notification: Notification, inReplyTo: Notification | undefined, now: Now): void {
    if (notification.state === 'looking' && notification.leader === this.#sid && !this.#eligibility.isEligible(this.#sid, now)) return;
    // Old entries have no effect. They are dropped here, since observers without a sid get another
    // number with each connection.
    if (!this.#lastSent.has(to))
      for (const sid of this.#lastSent.keys()) if (this.#recentlySent(sid, now) === undefined) this.#lastSent.delete(sid);
    this.#lastSent.set(to, { notification, inReplyTo, sentMs: now.elapsedMs });
    this.#links.notify(to, notification);
  }

  #recentlySent(to: Sid, now: Now): SentNotification | undefined {
    const last = this.#lastSent.get(to);
    return last === undefined || now.elapsedMs - last.sentMs >= this.#minIntervalMs / 2 ? undefined : last;
  }

  /** The notifications sent recently; the times of the next ones are written by the election. */
  fingerprint(to: Fingerprint, now: Now): void {
    for (const sid of [...this.#lastSent.keys()].sort((a, b) => a - b)) {
      const last = this.#recentlySent(sid, now);
      if (last === undefined) continue;
      to.number(sid);
      to.number(now.elapsedMs - last.sentMs);
      fingerprintNotification(to, last.notification);
      if (last.inReplyTo !== undefined) fingerprintNotification(to, last.inReplyTo);
    }
  }
}

function sameNotification(a: Notification, b: Notification): boolean {
  return a.state === b.state && a.version === b.version && a.config === b.config && a.pendingConfig === b.pendingConfig && sameVote(a, b);
}

function fingerprintNotification(to: Fingerprint, notification: Notification): void {
  fingerprintVote(to, notification);
  to.text(notification.state);
  to.number(notification.version);
  to.text(notification.config ?? '');
  to.text(notification.pendingConfig ?? '');
}
