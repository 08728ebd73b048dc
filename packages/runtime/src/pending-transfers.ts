/**
 * Operators that wait until another server leads. The request begins at this server, which leads
 * then; its outcome shows in what this server knows of its ensemble afterwards. It may learn nothing
 * more, for example when it has given the lead away and is cut off, so the wait has a limit.
 */
import type { Now, TransferRefusal, ZabOptions } from '@tskeeper/core';
import type { Millis, Sid } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from './clock.ts';
import type { ServerParts } from './server-parts.ts';

interface PendingTransfer {
  readonly target: Sid;
  readonly timer: TimerHandle;
  readonly resolve: (leader: Sid) => void;
  readonly reject: (error: Error) => void;
}

export class PendingTransfers {
  readonly #parts: ServerParts;
  readonly #clock: Clock;
  /** A transfer takes half of syncLimit at most, and an epoch begins within initLimit. */
  readonly #limitMs: Millis;
  readonly #pending = new Set<PendingTransfer>();

  /** @param zab undefined for a standalone server. */
  constructor(parts: ServerParts, clock: Clock, zab: ZabOptions | undefined) {
    this.#parts = parts;
    this.#clock = clock;
    this.#limitMs = zab === undefined ? 0 : (zab.initLimitTicks + zab.syncLimitTicks) * zab.tickTimeMs;
  }

  /** As `Runtime.transferLeadership`, in a turn. */
  transfer(target: Sid | undefined, now: Now, resolve: (leader: Sid) => void, reject: (error: Error) => void): void {
    const peer = this.#parts.ensemble?.peer;
    if (peer === undefined) {
      reject(new Error('cannot give the lead to another server: this server is standalone'));
      return;
    }
    const outcome = peer.transferLeadership(target, now);
    if (typeof outcome === 'number') {
      const timer = this.#clock.after(this.#limitMs, () => this.#timedOut(transfer));
      const transfer: PendingTransfer = { target: outcome, timer, resolve, reject };
      this.#pending.add(transfer);
    } else reject(new Error(`cannot give the lead to ${nameOf(target)}: ${sentenceOf(outcome, peer.status().leader)}`));
  }

  /**
   * At the end of a turn: settles what has been decided, once this server serves in an epoch. Does
   * nothing while it looks for a leader.
   */
  settle(): void {
    if (this.#pending.size === 0) return;
    const { sid, phase, leader, leading } = this.#parts.ensemble!.peer.status();
    if (phase !== 'broadcast' || leader === undefined) return;
    for (const transfer of this.#pending) {
      const { target, resolve } = transfer;
      if (leading?.transferTarget === target) continue;
      if (leader === sid) this.#reject(transfer, `server ${target} has not taken the lead in time, and server ${sid} goes on leading`);
      else if (leader !== target) this.#reject(transfer, `server ${target} has not taken the lead: server ${leader} was elected instead`);
      else {
        this.#forget(transfer);
        resolve(target);
      }
    }
  }

  rejectAll(): void {
    for (const transfer of this.#pending) this.#reject(transfer, `this server closed before server ${transfer.target} led`);
  }

  #timedOut(transfer: PendingTransfer): void {
    const seconds = this.#limitMs / 1000;
    this.#reject(transfer, `server ${transfer.target} has not taken the lead: this server has found no leader for ${seconds} s`);
  }

  #reject(transfer: PendingTransfer, sentence: string): void {
    this.#forget(transfer);
    transfer.reject(new Error(sentence));
  }

  #forget(transfer: PendingTransfer): void {
    this.#pending.delete(transfer);
    this.#clock.cancel(transfer.timer);
  }
}

function nameOf(target: Sid | undefined): string {
  return target === undefined ? 'another server' : `server ${target}`;
}

function sentenceOf(refusal: TransferRefusal, leader: Sid | undefined): string {
  switch (refusal) {
    case 'not leading':
      return leader === undefined ? 'no server leads now; try again' : `server ${leader} leads, so ask that one`;
    case 'leads already':
      return 'it leads already';
    case 'not a voter':
      return 'it has no vote, or a vote of weight 0';
    case 'not in step':
      return 'it is not in step with the leader; wait until it follows';
    case 'follower without support':
      return 'a follower runs ZooKeeper or an earlier version, and would not know whom to follow; use reconfig, or stop this server';
    case 'reconfiguration pending':
      return 'a reconfiguration is pending; try again when it is complete';
    case 'transfer under way':
      return 'the lead is being given to a server already';
    default:
      refusal satisfies never;
      return refusal;
  }
}
