/**
 * What the servers of an ensemble do among themselves: elections, epochs, what is durable, what is applied. It is written down in one list,
 * in the order in which it happened, and judged afterwards.
 */
import type { Millis, Sid, Zxid } from '@tskeeper/protocol';
import type { PeerWord } from './peer-words.ts';

export type PeerEvent = { readonly atMs: Millis; readonly server: string } &
  /** It looks for a leader. */
  (
    | { readonly kind: 'looking' }
    /** An election has ended. */
    | { readonly kind: 'elected'; readonly leader: Sid; readonly lookedMs: Millis }
    /** It serves, with a history that ended with `historyEnd` when it began to. */
    | { readonly kind: 'serves'; readonly role: 'leader' | 'follower' | 'observer'; readonly epoch: number; readonly historyEnd: Zxid }
    /** It leads or learns no more. */
    | { readonly kind: 'ended'; readonly reason: string }
    /** Its log is durable up to here. */
    | { readonly kind: 'logged'; readonly zxid: Zxid }
    /** It has applied a txn while it served: what clients see has it from now on. */
    | { readonly kind: 'applied'; readonly zxid: Zxid }
    | { readonly kind: 'replaced'; readonly by: 'trunc' | 'snap'; readonly zxid: Zxid }
    /** As a leader it brings a learner up to date. */
    | {
        readonly kind: 'synchronises';
        readonly by: 'diff' | 'trunc' | 'snap';
        readonly from: 'memory' | 'log' | 'tree';
        readonly snapshots: number;
        readonly isBehind: boolean;
      }
    /** Its process is gone. */
    | { readonly kind: 'gone' }
    /**
     * What the files said that hold its epochs when its process was gone, what they would say if the power went then, and the last txn that its
     * disk vouches for; undefined for what is not there.
     */
    | {
        readonly kind: 'epochFiles';
        readonly accepted: number | undefined;
        readonly current: number | undefined;
        readonly durable: { readonly accepted: number | undefined; readonly current: number | undefined };
        readonly reached: Zxid | undefined;
      }
    /** Its start is done, and the last txn of what it has found is this one: that is durable. */
    | { readonly kind: 'started'; readonly zxid: Zxid }
    /** It renames its new currentEpoch into place; `reached` as in `epochFiles`. */
    | { readonly kind: 'savesEpoch'; readonly current: number; readonly reached: Zxid | undefined }
    /** It says of itself to others how far it is; and what its files said then that hold its epochs, if the power had gone. */
    | (PeerWord & {
        readonly kind: 'says';
        readonly durable: { readonly accepted: number | undefined; readonly current: number | undefined };
      })
    /** Everything on its disk is lost. */
    | { readonly kind: 'wiped' }
  );
