/**
 * The server whose client requested a txn, as a leader reports it to its learners.
 *
 * A learner finds the request of a txn by session and xid. That is not enough after a session has
 * moved: a process that takes over a session counts its xids from 1 again, and its txns would
 * answer requests that an earlier connection made here. So the authinfo of each PROPOSAL and INFORM
 * names the server through which the request came. Apache ZooKeeper leaves authinfo empty there and
 * does not read it: its leader reports no origin, and our learner then compares session and xid
 * alone. docs/decisions/origin-of-txns.md has the reasons.
 */
import { type Id, type PacketView, type Sid, writeId, Writer } from '@tskeeper/protocol';
import { originScheme as scheme } from '../auth/forwarded-identities.ts';

/** The authinfo of a txn that answers no request: its session has moved. */
export const unknownOrigin: readonly Id[] = [{ scheme, id: '' }];

/** The authinfo of a txn that a client of this server requested. */
export function originOf(sid: Sid): readonly Id[] {
  return [{ scheme, id: String(sid) }];
}

/** Distinguishes the txns that clients of this server may have requested. */
export class LocalTxnFilter {
  /** The encoded authinfo of a txn that one of them has requested. */
  readonly #authinfo: Buffer;

  constructor(sid: Sid) {
    const writer = new Writer(32);
    writer.vector(originOf(sid), writeId);
    this.#authinfo = Buffer.from(writer.written());
  }

  /** Whether the txn in this packet may be one of those. True if the leader reports no origin. */
  mayBeLocal(packet: PacketView): boolean {
    const { bytes, data, end } = packet;
    if (this.#authinfo.compare(bytes, data.limit, end) === 0) return true;
    return packet.authinfo()?.every((id) => id.scheme !== scheme) ?? true;
  }
}
