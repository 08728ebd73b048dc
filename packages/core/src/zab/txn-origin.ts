/**
 * The server whose client has asked for a txn, as a leader tells its learners.
 *
 * A learner finds the request that a txn answers by session and xid. That is not enough after a session has moved: a process that takes a session
 * over counts its xids from 1 again, and its txns would answer what the connection before it asked here. So the authinfo of each PROPOSAL and
 * INFORM names the server through which the request came. Apache ZooKeeper leaves authinfo empty there and does not read it: its leader says
 * nothing, and a learner of ours compares session and xid alone. docs/decisions/origin-of-txns.md says why.
 */
import { type Id, type PacketView, type Sid, writeId, Writer } from '@tskeeper/protocol';

const scheme = 'origin';

/** What the authinfo of a txn says that no client may be answered with: its session has gone on elsewhere. */
export const originUnknown: readonly Id[] = [{ scheme, id: '' }];

/** What the authinfo of a txn says that a client of this server has asked for. */
export function originOf(sid: Sid): readonly Id[] {
  return [{ scheme, id: String(sid) }];
}

/** Tells the txns that clients of this server may have asked for from others. */
export class OwnTxns {
  /** The authinfo of a txn that one of them has asked for, as it stands in a packet. */
  readonly #authinfo: Buffer;

  constructor(sid: Sid) {
    const writer = new Writer(32);
    writer.vector(originOf(sid), writeId);
    this.#authinfo = Buffer.from(writer.written());
  }

  /** Whether the txn in this packet may be one of those. It may if the leader does not say. */
  mayInclude(packet: PacketView): boolean {
    const { bytes, data, end } = packet;
    if (this.#authinfo.compare(bytes, data.limit, end) === 0) return true;
    return packet.authinfo()?.every((id) => id.scheme !== scheme) ?? true;
  }
}
