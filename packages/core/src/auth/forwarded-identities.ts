/**
 * The identities that learners forward with each request of their clients.
 *
 * Most consecutive requests have the same ones, byte by byte: the address of one machine, or those
 * of one client. They are decoded once and share a list, so that a thousand requests of a client
 * with a thousand identities do not hold a million.
 */
import type { Id, PacketView } from '@tskeeper/protocol';
import { Identities } from './identities.ts';
import type { Identity } from './identity.ts';

export class ForwardedIdentities {
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
    const identities = Identities.of((packet.authinfo() ?? []).map(identityOf));
    if (length > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(length * 2);
    bytes.copy(this.#bytes, 0, start, end);
    this.#length = length;
    this.#identities = identities;
    return identities;
  }
}

/** Null can be encoded, and matches nothing. */
function identityOf({ scheme, id }: Id): Identity {
  return { scheme: scheme ?? '', id: id ?? '' };
}
