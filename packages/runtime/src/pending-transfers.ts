/**
 * Operators that wait until another server leads. The request begins at this server, which leads
 * then; its outcome shows in what this server knows of its ensemble afterwards.
 */
import type { Now, TransferRefusal } from '@tskeeper/core';
import type { Sid } from '@tskeeper/protocol';
import type { ServerParts } from './server-parts.ts';

interface PendingTransfer {
  readonly target: Sid;
  readonly resolve: (leader: Sid) => void;
  readonly reject: (error: Error) => void;
}

export class PendingTransfers {
  readonly #parts: ServerParts;
  #pending: PendingTransfer[] = [];

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** As `Runtime.transferLeadership`, in a turn. */
  transfer(target: Sid | undefined, now: Now, resolve: (leader: Sid) => void, reject: (error: Error) => void): void {
    const peer = this.#parts.ensemble?.peer;
    if (peer === undefined) {
      reject(new Error('cannot give the lead to another server: this server is standalone'));
      return;
    }
    const outcome = peer.transferLeadership(target, now);
    if (typeof outcome === 'number') this.#pending.push({ target: outcome, resolve, reject });
    else reject(new Error(`cannot give the lead to ${nameOf(target)}: ${sentenceOf(outcome, peer.status().leader)}`));
  }

  /** At the end of a turn: settles what has been decided. */
  settle(): void {
    if (this.#pending.length === 0) return;
    const { sid, phase, leader, leading } = this.#parts.ensemble!.peer.status();
    if (phase !== 'broadcast' || leader === undefined) return;
    this.#pending = this.#pending.filter(({ target, resolve, reject }) => {
      if (leader === target) resolve(target);
      else if (leading?.transferTarget === target) return true;
      else if (leader === sid) reject(new Error(`server ${target} has not taken the lead in time, and server ${sid} goes on leading`));
      else reject(new Error(`server ${target} has not taken the lead: server ${leader} was elected instead`));
      return false;
    });
  }

  rejectAll(): void {
    for (const { target, reject } of this.#pending) reject(new Error(`this server closed before server ${target} led`));
    this.#pending = [];
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
