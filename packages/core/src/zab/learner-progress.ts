/**
 * What a leader knows of one of its learners: how far it has joined, what it has acknowledged, and
 * when it last gave a sign of life.
 *
 *     silent -> known -> accepted -> synchronising -> synchronised -> active
 *
 * A learner whose sid another stream already has waits in `claiming` instead of `known`. The object
 * lives as long as the stream: a learner that reconnects starts again as another one.
 */
import type { Millis, Sid, Writer, Zxid } from '@tskeeper/protocol';
import type { SessionOwner } from '../client-output.ts';
import { Fifo } from '../fifo.ts';
import { age, type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { ChannelId } from './quorum-links.ts';

type ProgressStage =
  /** It has connected. */
  | 'silent'
  /**
   * It has given the id of a learner that already has a stream, which is asked whether it is alive.
   */
  | 'claiming'
  /** FOLLOWERINFO or OBSERVERINFO has arrived. */
  | 'known'
  /** ACKEPOCH has arrived. */
  | 'accepted'
  /** It is being sent the history that it lacks. */
  | 'synchronising'
  /** NEWLEADER has been acknowledged. */
  | 'synchronised'
  /** UPTODATE has been sent. */
  | 'active';

/** Another stream claims the id of a connected learner. */
export interface SidConflict {
  claimant: LearnerProgress;
  /**
   * The PING sent to the learner because of the claim; undefined while the learner answers none,
   * since it is being synchronised.
   */
  ping: number | undefined;
  challengedMs: Millis;
}

export class LearnerProgress {
  readonly channel: ChannelId;
  /**
   * The owner number of its requests, once it forwards one. Channel numbers are reused, and waiting
   * requests of an older channel must not be taken for this learner's.
   */
  owner: SessionOwner | undefined;
  /** The same for requests that it passes on for observers, by their sids. */
  observerOwners: Map<Sid, SessionOwner> | undefined;
  stage: ProgressStage = 'silent';
  sid: Sid = 0;
  /** Of its process; 0 if unknown. */
  incarnation = 0;
  /** See `LearnerInfo`. */
  leaderPriority: number | undefined;
  introducedMs: Millis = 0;
  sidConflict: SidConflict | undefined;
  /** When bytes last moved over its stream. */
  lastProgressMs: Millis;
  isObserver = false;
  acceptedEpoch = 0;
  lastZxid: Zxid = 0;
  /** The last txn of the history sent at its start. */
  historyEndZxid: Zxid = 0;
  lastReceivedMs: Millis;
  /** All txns up to here are in its log. */
  ackedZxid: Zxid = 0;
  /** It receives every txn from here on. */
  isReplicating = false;
  /** Packets that must follow the history being sent wait here; undefined if none must wait. */
  backlog: Writer | undefined;
  /**
   * When UPTODATE was sent. Earlier proposals may have waited for the history, which the learner
   * could not influence.
   */
  activeSinceMs: Millis = 0;
  /** Proposals that it has not acknowledged: the age of the oldest is its lag. */
  readonly unackedProposals = new Fifo<{ readonly zxid: Zxid; readonly sentMs: Millis }>();
  /** Numbers of the PINGs that it has not answered, and when they were sent. */
  readonly pings = new Fifo<number>();
  readonly pingTimes = new Fifo<Millis>();
  answeredPing = 0;
  /**
   * When the last answered PING was sent: the learner has reported all sessions with signs of life
   * before that time. No client is connected to it before it is active.
   */
  touchesWatermarkMs: Millis = 0;

  /** For operators: since when it is connected, and what it has sent. */
  readonly connectedMs: Millis;
  packetsReceived = 0;
  requestsReceived = 0;

  constructor(channel: ChannelId, now: Now) {
    this.channel = channel;
    this.connectedMs = this.lastReceivedMs = this.lastProgressMs = now.elapsedMs;
  }

  /** Whether it has introduced itself, and no other stream has its id. */
  get isIdentified(): boolean {
    return this.stage !== 'silent' && this.stage !== 'claiming';
  }

  /** Whether it has acknowledged NEWLEADER. */
  get isSynced(): boolean {
    return this.stage === 'synchronised' || this.stage === 'active';
  }

  /** A txn has been sent to it, and must be acknowledged. */
  proposed(zxid: Zxid, sentMs: Millis): void {
    this.unackedProposals.push({ zxid, sentMs });
  }

  /** It has all txns up to `zxid` in its log. */
  acknowledged(zxid: Zxid): void {
    this.ackedZxid = Math.max(this.ackedZxid, zxid);
    for (let next = this.unackedProposals.peek(); next !== undefined && next.zxid <= zxid; next = this.unackedProposals.peek())
      this.unackedProposals.shift();
  }

  /**
   * It has answered the oldest PING: every sign of life before that PING has been reported, and of
   * clients of its observers those before `lagMs` earlier.
   */
  reportedTouches(lagMs: Millis): void {
    const sentMs = this.pingTimes.shift();
    if (sentMs !== undefined) this.touchesWatermarkMs = Math.max(this.touchesWatermarkMs, sentMs - lagMs);
  }

  /**
   * Everything that can influence behaviour, for an explorer. PINGs are counted back from the last
   * one.
   */
  fingerprint(to: Fingerprint, nowMs: Millis, limitMs: Millis, lastPing: number): void {
    to.text(this.stage);
    to.number(this.isObserver ? 1 : 0);
    to.number(this.isReplicating ? 1 : 0);
    const { channel, owner = 0, sid, acceptedEpoch, lastZxid, historyEndZxid, ackedZxid } = this;
    for (const number of [channel, owner, sid, acceptedEpoch, lastZxid, historyEndZxid, ackedZxid]) to.number(number);
    for (const [observer, its] of [...(this.observerOwners ?? [])].sort(([a], [b]) => a - b)) {
      to.number(observer);
      to.number(its);
    }
    to.number(age(this.lastReceivedMs, nowMs, limitMs));
    to.number(lastPing - this.answeredPing);
    to.number(this.pings.length);
    for (const ping of this.pings.values()) to.number(lastPing - ping);
    for (const sentMs of this.pingTimes.values()) to.number(age(sentMs, nowMs, limitMs));
    to.number(age(this.touchesWatermarkMs, nowMs, limitMs));
    to.number(this.unackedProposals.length);
    for (const { zxid, sentMs } of this.unackedProposals.values()) {
      to.number(zxid);
      to.number(age(Math.max(sentMs, this.activeSinceMs), nowMs, limitMs));
    }
    to.number(this.incarnation);
    to.number(this.leaderPriority ?? -1);
    to.number(this.sidConflict?.claimant.channel ?? -1);
    if (this.sidConflict !== undefined) {
      to.number(lastPing - (this.sidConflict.ping ?? -1));
      for (const ms of [this.sidConflict.challengedMs, this.lastProgressMs, this.introducedMs]) to.number(age(ms, nowMs, limitMs));
    }
    to.number(this.backlog?.offset ?? -1);
    if (this.backlog !== undefined) fingerprintBytes(to, this.backlog.bytes, 0, this.backlog.offset);
  }
}
