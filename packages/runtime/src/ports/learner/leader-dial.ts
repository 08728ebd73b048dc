/**
 * The dial of a learner to its leader. There is one at a time: the core dials again when it has
 * found another leader, and a dial that it has cancelled completes as nothing.
 */
import type { HostPort, Millis, Sid } from '@tskeeper/protocol';
import type { Logger } from '../../logger.ts';
import type { Dial, Dialler } from '../dialler.ts';
import type { PeerServer } from '../peer-server.ts';
import type { PeerStreams } from '../peer-streams.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { LearnerChannel } from './learner-channel.ts';
import type { LearnerPortOptions } from './learner-port-options.ts';
import type { LearnerTurn } from './learner-turn.ts';

export interface LeaderDialDependencies {
  readonly options: LearnerPortOptions;
  readonly logger: Logger;
  readonly log: RateLimitedLog;
  readonly turn: LearnerTurn;
  readonly dialler: Dialler;
}

export class LeaderDial {
  readonly #limits: { readonly attemptMs: Millis; readonly totalMs: Millis };
  readonly #logger: Logger;
  readonly #log: RateLimitedLog;
  readonly #turn: LearnerTurn;
  readonly #dialler: Dialler;
  #addresses = new Map<Sid, readonly HostPort[]>();
  /** The leader to dial at the end of the turn. */
  #requested: Sid | undefined;
  #dial: Dial | undefined;
  #isShutDown = false;

  constructor({ options, logger, log, turn, dialler }: LeaderDialDependencies) {
    this.#limits = { attemptMs: options.cnxTimeoutMs, totalMs: options.dialTimeoutMs };
    this.#logger = logger;
    this.#log = log;
    this.#turn = turn;
    this.#dialler = dialler;
  }

  setServers(servers: readonly PeerServer[]): void {
    this.#addresses = new Map(servers.map(({ sid, quorumAddresses }) => [sid, quorumAddresses]));
  }

  request(sid: Sid): void {
    this.#requested = sid;
  }

  cancel(): void {
    this.#requested = undefined;
    if (this.#dial !== undefined) this.#dialler.cancel(this.#dial);
    this.#dial = undefined;
  }

  shutDown(): void {
    this.#isShutDown = true;
    this.#dialler.cancelAll();
    this.#dial = this.#requested = undefined;
  }

  /** Starts the dial that was requested in this turn, in place of one in progress. */
  startRequested(channels: PeerStreams<LearnerChannel>): void {
    const sid = this.#requested;
    this.#requested = undefined;
    if (sid === undefined || this.#isShutDown) return;
    this.cancel();
    const hosts = this.#addresses.get(sid) ?? [];
    if (hosts.length === 0) {
      this.#failed(sid, 'it is not in the configuration', false);
      return;
    }
    this.#dial = this.#dialler.dial(hosts, this.#limits, this.#turn.now, (outcome, now) => {
      this.#turn.now = now;
      this.#dial = undefined;
      if (outcome.kind === 'failed') {
        this.#failed(sid, outcome.reason, outcome.refused);
        return;
      }
      channels.markOpen(channels.add(outcome.stream, outcome.remote, now));
      this.#turn.core.dialled(outcome.stream, now);
    });
  }

  #failed(sid: Sid, reason: string, refused: boolean): void {
    const sentence = `The leader, server ${sid}, cannot be reached: ${reason}.`;
    // After every election, a leader that does not know yet that it leads refuses at first.
    if (refused) this.#logger.debug(sentence, { event: 'leader.refused', peer: sid, reason });
    else this.#log.warn(this.#turn.now.elapsedMs, sentence, { event: 'leader.unreachable', peer: sid, reason });
    this.#turn.core.dialFailed(refused ? 'refused' : 'unanswered', this.#turn.now);
    // What the core does about it belongs to another turn.
    this.#turn.needsAnother = true;
  }
}
