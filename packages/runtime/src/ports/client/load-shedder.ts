/**
 * Decides which connections to close when much is held for clients: those that hold most, of the
 * address that holds most. A client can open more connections, but not have more addresses, so a
 * limit shared by connections alone would let it take the share of all others.
 *
 * There are two steps. An address that holds more than its share is not read where output waits for
 * it; it can end that by reading what it asked for. Above the limit connections are closed until
 * the rest fits, which no client can avoid. An address that is not alone has to leave a quarter to
 * others at any time, so that a newcomer's requests find room.
 */
import type { ClientAddress } from './client-address.ts';
import type { ClientCnxn } from './client-cnxn.ts';

/**
 * Share of the limit that one address may hold before it is no longer read, whatever the others
 * hold.
 */
const readShare = 0.5;
/**
 * Share of the limit that all may hold before each address above an equal share is not read, and
 * that one may hold that is not alone.
 */
const sharedLimitShare = 0.75;

export class LoadShedder {
  readonly #bytesMax: number;
  /** Addresses for which anything is held, the one that has held something for longest first. */
  readonly #holders = new Set<ClientAddress<ClientCnxn>>();
  readonly #overShare = new Set<ClientAddress<ClientCnxn>>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes held for all. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds to the bytes held for an address, or subtracts. */
  count(address: ClientAddress<ClientCnxn>, bytes: number): void {
    if (bytes === 0) return;
    if (address.heldBytes === 0) this.#holders.add(address);
    address.heldBytes += bytes;
    this.#bytes += bytes;
    if (address.heldBytes === 0) this.#holders.delete(address);
  }

  /** Decides anew which addresses are heavy. Returns whether any has changed. */
  updateShares(): boolean {
    const isBelowReadShare = this.#bytes <= this.#bytesMax * readShare;
    if (isBelowReadShare && this.#overShare.size === 0) return false;
    const share = this.#readMax();
    let changed = false;
    for (const address of this.#overShare) {
      if (address.heldBytes > share) continue;
      address.isOverShare = false;
      this.#overShare.delete(address);
      changed = true;
    }
    if (isBelowReadShare) return changed;
    for (const address of this.#holders) {
      if (address.heldBytes <= share || address.isOverShare) continue;
      address.isOverShare = true;
      this.#overShare.add(address);
      changed = true;
    }
    return changed;
  }

  #readMax(): number {
    const { size } = this.#holders;
    const half = this.#bytesMax * readShare;
    // At least one address is above an equal share of what all hold, so this always reads less from
    // those that hold much.
    return this.#bytes > this.#bytesMax * sharedLimitShare ? Math.min(half, (this.#bytesMax * sharedLimitShare) / size) : half;
  }

  /**
   * Whether a connection must be closed. `isShared`: there are connections from more than one
   * address.
   */
  isExceeded(isShared: boolean): boolean {
    if (this.#bytes > this.#bytesMax) return true;
    if (!isShared || this.#bytes <= this.#bytesMax * sharedLimitShare) return false;
    for (const { heldBytes } of this.#holders) if (heldBytes > this.#bytesMax * sharedLimitShare) return true;
    return false;
  }

  /**
   * The connections to close, the heaviest first. Each must have been dropped, and counted, before
   * the next is requested.
   */
  *cnxnsToClose(cnxns: Iterable<ClientCnxn>, isShared: boolean): Generator<ClientCnxn, void, undefined> {
    const addressMax = isShared ? this.#bytesMax * sharedLimitShare : this.#bytesMax;
    const level = Math.min(this.#fairLevel(), addressMax);
    const byAddress = new Map<ClientAddress<ClientCnxn>, ClientCnxn[]>();
    for (const cnxn of cnxns) {
      if (cnxn.heldBytes === 0 || cnxn.address.heldBytes <= level) continue;
      const others = byAddress.get(cnxn.address);
      if (others === undefined) byAddress.set(cnxn.address, [cnxn]);
      else others.push(cnxn);
    }
    const heaviestFirst = [...byAddress].sort(([a], [b]) => b.heldBytes - a.heldBytes);
    for (const [address, holders] of heaviestFirst) {
      holders.sort((a, b) => b.heldBytes - a.heldBytes);
      for (const cnxn of holders) {
        const isAboveItsOwn = address.heldBytes > addressMax;
        const isAboveAll = this.#bytes > this.#bytesMax && address.heldBytes > level;
        if (!isAboveItsOwn && !isAboveAll) break;
        yield cnxn;
      }
    }
  }

  /**
   * The level up to which each address may hold so that all together fit, where those that need
   * less leave the rest to the others.
   */
  #fairLevel(): number {
    if (this.#bytes <= this.#bytesMax) return this.#bytesMax;
    const least = [...this.#holders].map(({ heldBytes }) => heldBytes).sort((a, b) => a - b);
    let left = this.#bytesMax;
    for (const [index, bytes] of least.entries()) {
      const share = left / (least.length - index);
      if (bytes > share) return share;
      left -= bytes;
    }
    return this.#bytesMax;
  }
}
