/**
 * Listens at one address in place of others, while the server runs.
 *
 * The new address is bound before the old ones are given up. Where both are of one port and one of
 * them is that of all interfaces, most systems refuse that (Linux: EADDRINUSE), and only then the
 * old ones are closed first, and bound again if the new one cannot be bound after all. Connections
 * that were accepted stay; between the two calls the system refuses new ones.
 */
import { isWildcardHost } from '@tskeeper/protocol';
import { type Endpoint, type Listener, ListenError, type ListenOptions } from '../network.ts';

/** The port, which accepts what connects to its listeners. */
export interface ListenerOwner {
  listen(options: ListenOptions): Promise<Listener>;
  stopListeningAt(listener: Listener): Promise<void>;
}

export type Replacement =
  | { readonly kind: 'replaced'; readonly listener: Listener }
  /**
   * Why the new address cannot be bound, and the listeners of the old ones, in their order. One that
   * could not be bound again is closed.
   */
  | { readonly kind: 'kept'; readonly error: unknown; readonly listeners: readonly Listener[] };

export async function replaceListeners(owner: ListenerOwner, old: readonly Listener[], wanted: ListenOptions): Promise<Replacement> {
  try {
    const listener = await owner.listen(wanted);
    for (const each of old) await owner.stopListeningAt(each);
    return { kind: 'replaced', listener };
  } catch (error) {
    if (!(error instanceof ListenError) || error.code !== 'EADDRINUSE' || !old.some(({ endpoint }) => overlap(endpoint, wanted))) {
      return { kind: 'kept', error, listeners: old };
    }
  }
  for (const each of old) await owner.stopListeningAt(each);
  try {
    return { kind: 'replaced', listener: await owner.listen(wanted) };
  } catch (error) {
    const listeners: Listener[] = [];
    for (const each of old) {
      const { address, port } = each.endpoint;
      const before = { ...wanted, address: isWildcardHost(address) ? undefined : address, port };
      listeners.push(await owner.listen(before).catch(() => each));
    }
    return { kind: 'kept', error, listeners };
  }
}

/** Whether an address and that of a listener exclude each other, although they are not the same. */
export function overlap(endpoint: Endpoint, { address, port }: Pick<ListenOptions, 'address' | 'port'>): boolean {
  return endpoint.port === port && (address === undefined || isWildcardHost(endpoint.address));
}
