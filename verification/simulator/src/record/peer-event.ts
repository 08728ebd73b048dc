/**
 * What the servers of an ensemble do among themselves: elections, epochs, durable and applied txns.
 * It is recorded in one list, in the order in which it happened, and checked afterwards.
 */
import type { RoleEndReason } from '@tskeeper/core';
import type { Millis, SessionId, Sid, Zxid } from '@tskeeper/protocol';
import type { PeerClaim } from './peer-claims.ts';

export type PeerEvent = { readonly atMs: Millis; readonly server: string } &
  /** The server looks for a leader. */
  (
    | { readonly kind: 'looking' }
    /** An election has ended. */
    | { readonly kind: 'elected'; readonly leader: Sid; readonly lookedMs: Millis }
    /** The server serves, with a history that ended with `historyEnd` when it began to. */
    | { readonly kind: 'serves'; readonly role: 'leader' | 'follower' | 'observer'; readonly epoch: number; readonly historyEnd: Zxid }
    /** The server serves read-only clients, without a leader; and does so no more. */
    | { readonly kind: 'readOnly' }
    | { readonly kind: 'readOnlyEnded' }
    /** The server leads or learns no more. */
    | { readonly kind: 'roleEnded'; readonly reason: RoleEndReason; readonly text: string }
    /** The log is durable up to here. */
    | { readonly kind: 'logged'; readonly zxid: Zxid }
    /** The server has applied a txn while serving: clients can see it from now on. */
    | { readonly kind: 'applied'; readonly zxid: Zxid }
    /** A session that only this server knows, or knew until now. */
    | {
        readonly kind: 'localSession';
        readonly what: 'opened' | 'upgraded' | 'refused' | 'expired' | 'closed';
        readonly session: SessionId;
      }
    | { readonly kind: 'replaced'; readonly by: 'trunc' | 'snap'; readonly zxid: Zxid }
    /** As a leader the server synchronises a learner. */
    | {
        readonly kind: 'syncsLearner';
        readonly by: 'diff' | 'trunc' | 'snap';
        readonly from: 'memory' | 'log' | 'tree';
        readonly snapshots: number;
        readonly isBehind: boolean;
      }
    /** A process of the server starts that keeps no log: it is an observer, with syncEnabled=false. */
    | { readonly kind: 'keepsNoLog' }
    /** The process is gone. */
    | { readonly kind: 'processGone' }
    /**
     * The epoch files when the process ended, what they would hold after a power loss at that
     * moment, and the last txn that the disk guarantees; undefined for missing files.
     */
    | {
        readonly kind: 'epochFiles';
        readonly accepted: number | undefined;
        readonly current: number | undefined;
        readonly durable: { readonly accepted: number | undefined; readonly current: number | undefined };
        readonly reached: Zxid | undefined;
      }
    /** The start is complete, and this is the last txn it found, which is durable. */
    | { readonly kind: 'started'; readonly zxid: Zxid }
    /** The server renames its new currentEpoch into place; `reached` as in `epochFiles`. */
    | { readonly kind: 'savesEpoch'; readonly current: number; readonly reached: Zxid | undefined }
    /**
     * The server states to others how far it is; with what its epoch files would hold after a power
     * loss at that moment.
     */
    | (PeerClaim & {
        readonly kind: 'claims';
        readonly durable: { readonly accepted: number | undefined; readonly current: number | undefined };
      })
    /**
     * The server uses another configuration than before: its active one. Recorded where it may change
     * while the server runs.
     */
    | { readonly kind: 'config'; readonly text: string }
    /** The disk was replaced by an empty one. */
    | { readonly kind: 'wiped' }
  );
