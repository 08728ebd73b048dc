/**
 * The identities that learners forward with each request of their clients.
 *
 * Most consecutive requests have the same ones, byte by byte: the address of one machine, or those
 * of one client. They are decoded once and share a list, so that a thousand requests of a client
 * with a thousand identities do not hold a million.
 */
import type { Id, PacketView, Sid } from '@tskeeper/protocol';
import { Identities } from './identities.ts';
import type { Identity } from './identity.ts';

/**
 * The scheme of an identity that does not belong to a client: it names a server through which a
 * request came.
 * zab/txn-origin.ts has the reasons.
 */
export const originScheme = 'origin';

export class ForwardedIdentities {
  /**
   * The observer from which the request came to the learner that forwarded it; undefined if the
   * learner names none. Of the packet given to `of` last.
   */
  origin: Sid | undefined;
  /** The identities decoded last, and their bytes. */
  #identities = Identities.none;
  #bytes = Buffer.alloc(0);
  #length = 0;

  /** The identities of the request in this packet. */
  of(packet: PacketView): Identities {
    const { bytes, end } = packet;
    const start = packet.data.limit;
    const length = end - start;
    if (length === this.#length && bytes.compare(this.#bytes, 0, length, start, end) === 0) return this.#identities;
    const all = packet.authinfo() ?? [];
    const origin = all.find(({ scheme }) => scheme === originScheme);
    this.origin = origin === undefined ? undefined : sidOf(origin);
    const identities = Identities.of((origin === undefined ? all : all.filter(({ scheme }) => scheme !== originScheme)).map(identityOf));
    if (length > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(length * 2);
    bytes.copy(this.#bytes, 0, start, end);
    this.#length = length;
    this.#identities = identities;
    return identities;
  }
}

/** An id that is not a number names no server. */
function sidOf({ id }: Id): Sid | undefined {
  const sid = Number(id ?? Number.NaN);
  return Number.isSafeInteger(sid) ? sid : undefined;
}

/** Null can be encoded, and matches nothing. */
function identityOf({ scheme, id }: Id): Identity {
  return { scheme: scheme ?? '', id: id ?? '' };
}
