/**
 * The stages of a leader's epoch, and the voters that have reached the current one.
 *
 *     discovery        a quorum has sent its accepted epochs      -> the epoch is one more than all
 *     acknowledgement  a quorum has accepted it                   -> it is this server's own epoch
 *     synchronisation  a quorum has all of the history on disk    -> broadcast
 *
 * Between the first three the epoch is saved, and nothing is sent before it is durable: a server
 * that forgets an epoch it has promised could follow two leaders of it. Each stage counts its
 * voters anew. No stage is entered twice; a leader that fails is over, and an election follows.
 */
import { epochMax, epochOf, type Millis, type Sid } from '@tskeeper/protocol';
import { age, type Fingerprint, fingerprintSet } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import type { LeaderStart } from './leader-host.ts';
import type { DurableState, EpochName } from './peer-storage.ts';
import type { RoleEndReason } from '../role-end.ts';
import type { ZabOptions } from './zab-options.ts';

export type LeaderStage =
  | 'discovery'
  | 'saving acceptedEpoch'
  | 'acknowledgement'
  | 'saving currentEpoch'
  | 'synchronisation'
  | 'broadcast'
  | 'over';

/**
 * How far the accepted epoch of a voter may be beyond any epoch that this server knows: one for
 * each attempt to lead that has failed meanwhile, at most one in some seconds while a quorum was
 * connected. This many take about a day. A later epoch comes from a damaged file, or is a lie; a
 * leader that accepted it could soon use up all epochs (`epochMax`).
 */
const acceptedEpochLeadMax = 10_000;

export class EpochStages {
  readonly start: LeaderStart;
  readonly #options: ZabOptions;
  readonly #quorum: QuorumVerifier;
  readonly #storage: DurableState;
  readonly #isVoter: boolean;
  #stage: LeaderStage = 'discovery';
  #epoch = 0;
  /** Voters that have reached the current stage, including this server. */
  #joinedVoters = new Set<Sid>();
  #acceptedEpochMax: number;
  /** When the current stage began. */
  #stageStartMs: Millis;
  #endReason: RoleEndReason | undefined;
  #endText = '';

  constructor(options: ZabOptions, quorum: QuorumVerifier, start: LeaderStart, storage: DurableState, now: Now) {
    this.start = start;
    this.#options = options;
    this.#quorum = quorum;
    this.#storage = storage;
    this.#isVoter = quorum.isVoter(options.sid);
    this.#acceptedEpochMax = start.acceptedEpoch;
    this.#stageStartMs = now.elapsedMs;
    if (this.#isVoter) this.#joinedVoters.add(options.sid);
    this.maybeChooseEpoch();
  }

  get stage(): LeaderStage {
    return this.#stage;
  }

  /** 0 until it is chosen. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Why the leader is over; undefined while it is not. */
  get endReason(): RoleEndReason | undefined {
    return this.#endReason;
  }

  /** The same, for the operator. */
  get endText(): string {
    return this.#endText;
  }

  end(reason: RoleEndReason, text: string): void {
    this.#stage = 'over';
    this.#endReason = reason;
    this.#endText = text;
  }

  /** The latest epoch that this server knows. */
  get knownEpoch(): number {
    const { acceptedEpoch, currentEpoch, lastZxid } = this.start;
    return Math.max(acceptedEpoch, currentEpoch, epochOf(lastZxid), this.#epoch);
  }

  /** An impossible epoch comes from a damaged file or from an intruder. */
  isPlausibleEpoch(acceptedEpoch: number): boolean {
    return acceptedEpoch <= Math.min(this.knownEpoch + acceptedEpochLeadMax, epochMax - 1);
  }

  /** A voter has reached the current stage. */
  voterJoined(sid: Sid): void {
    this.#joinedVoters.add(sid);
  }

  /** A voter has disconnected. In broadcast the tick counts the voters that are present. */
  voterLeft(sid: Sid): void {
    if (this.#stage !== 'broadcast' && this.#stage !== 'over') this.#joinedVoters.delete(sid);
  }

  /** In discovery: a voter has sent the last epoch that it has accepted. */
  voterDiscovered(sid: Sid, acceptedEpoch: number): void {
    this.#acceptedEpochMax = Math.max(this.#acceptedEpochMax, acceptedEpoch);
    this.#joinedVoters.add(sid);
    this.maybeChooseEpoch();
  }

  maybeChooseEpoch(): void {
    if (this.#stage !== 'discovery' || !this.#quorum.containsQuorum(this.#joinedVoters)) return;
    if (this.#acceptedEpochMax >= epochMax) {
      this.end('last epoch reached', `epoch ${this.#acceptedEpochMax} is the last possible epoch`);
      return;
    }
    this.#stage = 'saving acceptedEpoch';
    this.#epoch = this.#acceptedEpochMax + 1;
    this.#storage.saveEpoch('acceptedEpoch', this.#epoch);
  }

  maybeSetEpoch(): void {
    if (this.#stage !== 'acknowledgement' || !this.#quorum.containsQuorum(this.#joinedVoters)) return;
    this.#stage = 'saving currentEpoch';
    this.#storage.saveEpoch('currentEpoch', this.#epoch);
  }

  /** An epoch file is durable. Returns the stage that begins thereby, if one does. */
  epochSaved(name: EpochName, now: Now): 'acknowledgement' | 'synchronisation' | undefined {
    this.#stageStartMs = now.elapsedMs;
    if (name === 'acceptedEpoch' && this.#stage === 'saving acceptedEpoch') {
      this.#stage = 'acknowledgement';
      this.#joinedVoters = new Set(this.#isVoter ? [this.#options.sid] : []);
      return this.#stage;
    } else if (name === 'currentEpoch' && this.#stage === 'saving currentEpoch') {
      this.#stage = 'synchronisation';
      this.#joinedVoters = new Set(this.#isVoter ? [this.#options.sid] : []);
      return this.#stage;
    }
    return undefined;
  }

  /** Enters broadcast if a quorum has the history. Returns whether it has done so. */
  maybeBeginBroadcast(): boolean {
    if (this.#stage !== 'synchronisation' || !this.#quorum.containsQuorum(this.#joinedVoters)) return false;
    this.#stage = 'broadcast';
    return true;
  }

  /** A quorum that is being synchronised will complete, so another election would not help. */
  voterProgressed(now: Now): void {
    if (this.#stage === 'synchronisation') this.#stageStartMs = now.elapsedMs;
  }

  /** A voter is looking for a leader, this one or another. */
  voterLooking(sid: Sid, now: Now): void {
    if (this.#stage !== 'discovery' || !this.#quorum.isVoter(sid)) return;
    const { tickTimeMs, syncLimitTicks, maxTimeToWaitForEpochMs = syncLimitTicks * tickTimeMs } = this.#options;
    if (now.elapsedMs - this.#stageStartMs > maxTimeToWaitForEpochMs) this.end('disloyal voter', 'a voter looks for another leader');
  }

  /** Before broadcast: ends the leader if the current stage has lasted longer than initLimit. */
  checkInitLimit(now: Now): void {
    const { tickTimeMs, initLimitTicks } = this.#options;
    if (now.elapsedMs - this.#stageStartMs > initLimitTicks * tickTimeMs)
      this.end('no quorum in time', `no quorum within initLimit (stage: ${this.#stage})`);
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, nowMs: Millis, limitMs: Millis): void {
    const { acceptedEpoch, currentEpoch, lastZxid } = this.start;
    to.text(this.#stage);
    for (const number of [acceptedEpoch, currentEpoch, lastZxid, this.#epoch, this.#acceptedEpochMax]) to.number(number);
    fingerprintSet(to, this.#joinedVoters);
    to.number(age(this.#stageStartMs, nowMs, limitMs));
  }
}
