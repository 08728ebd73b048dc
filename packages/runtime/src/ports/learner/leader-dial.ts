/**
 * The dial of a learner to its leader, or of an observer to a follower that accepts it. There is one
 * at a time: the core dials again when it has found another leader, and a dial that it has cancelled
 * completes as nothing.
 */
import type { LeaderPort } from '@tskeeper/core';
import type { HostPort, Sid } from '@tskeeper/protocol';
import type { Logger } from '../../logger.ts';
import type { Dial, Dialler, DialLimits } from '../dialler.ts';
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
  readonly #limits: DialLimits;
  readonly #logger: Logger;
  readonly #log: RateLimitedLog;
  readonly #turn: LearnerTurn;
  readonly #dialler: Dialler;
  #servers = new Map<Sid, PeerServer>();
  /** The server to dial at the end of the turn. */
  #requested: { readonly sid: Sid; readonly port: LeaderPort } | undefined;
  #dial: Dial | undefined;
  #isShutDown = false;

  constructor({ options, logger, log, turn, dialler }: LeaderDialDependencies) {
    this.#limits = { attemptMs: options.cnxTimeoutMs, totalMs: options.dialTimeoutMs, staggerMs: options.reachabilityCheckTimeoutMs };
    this.#logger = logger;
    this.#log = log;
    this.#turn = turn;
    this.#dialler = dialler;
  }

  setServers(servers: readonly PeerServer[]): void {
    this.#servers = new Map(servers.map((server) => [server.sid, server]));
  }

  request(sid: Sid, port: LeaderPort): void {
    this.#requested = { sid, port };
  }

  #addressesOf(sid: Sid, port: LeaderPort): readonly HostPort[] {
    const server = this.#servers.get(sid);
    return (port === 'quorum' ? server?.quorumAddresses : server?.observerMasterAddresses) ?? [];
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
    const requested = this.#requested;
    this.#requested = undefined;
    if (requested === undefined || this.#isShutDown) return;
    this.cancel();
    const { sid, port } = requested;
    const hosts = this.#addressesOf(sid, port);
    if (hosts.length === 0) {
      const isKnown = this.#servers.has(sid);
      this.#failed(sid, port, isKnown ? 'observerMasterPort is not set here' : 'it is not in the configuration', false);
      return;
    }
    this.#dial = this.#dialler.dial(hosts, this.#limits, this.#turn.now, (outcome, now) => {
      this.#turn.now = now;
      this.#dial = undefined;
      if (outcome.kind === 'failed') {
        this.#failed(sid, port, outcome.reason, outcome.refused);
        return;
      }
      channels.markOpen(channels.add(outcome.stream, outcome.remote, now));
      this.#turn.core.dialled(outcome.stream, now);
    });
  }

  #failed(sid: Sid, port: LeaderPort, reason: string, refused: boolean): void {
    const whom = port === 'quorum' ? `The leader, server ${sid},` : `Server ${sid}, at its port for observers,`;
    const sentence = `${whom} cannot be reached: ${reason}.`;
    // After every election, a leader that does not know yet that it leads refuses at first; and a
    // leader always refuses observers that look for a follower.
    if (refused) this.#logger.debug(sentence, { event: 'leader.refused', peer: sid, reason });
    else this.#log.warn(this.#turn.now.elapsedMs, sentence, { event: 'leader.unreachable', peer: sid, reason });
    this.#turn.core.dialFailed(refused ? 'refused' : 'unanswered', this.#turn.now);
    // What the core does about it belongs to another turn.
    this.#turn.needsAnother = true;
  }
}
