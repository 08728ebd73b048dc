/**
 * What becomes of the ACL that a create or setACL asks for, before it is stored; and permissions as text.
 */
import type { Acl, Id } from './acl.ts';
import { juteMaxBufferDefault, Perms } from './constants.ts';

/** What must be known of the authentication providers of a server. */
export interface AclSchemes {
  /** Whether a provider is registered for the scheme and would accept this id in an ACL. `world` is not asked for. */
  accepts(scheme: string, id: string): boolean;
  /**
   * Whether an identity of this scheme shows that the client has authenticated: so for digest, sasl and x509, but not for ip, which
   * every connection has.
   */
  isAuthenticated(scheme: string): boolean;
}

function sameAcl(a: Acl, b: Acl): boolean {
  return a.perms === b.perms && a.id.scheme === b.id.scheme && a.id.id === b.id.id;
}

function isDuplicate(list: readonly Acl[], index: number): boolean {
  for (let i = 0; i < index; i++) if (sameAcl(list[i]!, list[index]!)) return true;
  return false;
}

/**
 * Longest list that `auth` may grow into: more would not fit into a frame of the default size, whatever the texts. Without a limit a
 * request full of `auth` entries, on a connection full of identities, would grow into gigabytes.
 */
const entriesMax = Math.floor(juteMaxBufferDefault / 12);

/** Above this an index is worth its memory: a list fills a whole request, and comparing all pairs of it would take seconds. */
const pairwiseMax = 16;

/** The list without repetitions; the first of equals stays. */
function withoutDuplicates(list: readonly Acl[]): readonly Acl[] {
  if (list.length <= pairwiseMax) {
    return list.some((_, index) => isDuplicate(list, index)) ? list.filter((_, index) => !isDuplicate(list, index)) : list;
  }
  const seen = new Set<string>();
  return list.filter(({ perms, id }) => {
    const key = JSON.stringify([perms, id.scheme, id.id]);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/**
 * The list to be stored, or undefined when the answer is InvalidACL. In this order: a null or empty list is refused; repetitions are dropped;
 * then each entry is kept, replaced or refused.
 *
 * | scheme | outcome |
 * | --- | --- |
 * | null | refused |
 * | world | kept when the id is `anyone`, else refused |
 * | auth | one entry for each identity that shows an authentication, whatever the id; refused when there is none, or the list too long |
 * | other | kept when its provider accepts the id, else refused |
 */
export function fixupAcl(requested: readonly Acl[] | null, identities: readonly Id[], schemes: AclSchemes): readonly Acl[] | undefined {
  if (requested === null || requested.length === 0) return undefined;
  const fixed: Acl[] = [];
  for (const entry of withoutDuplicates(requested)) {
    const { scheme, id } = entry.id;
    if (scheme === null) return undefined;
    if (scheme === 'auth') {
      const granted = identities.filter((identity) => identity.scheme !== null && schemes.isAuthenticated(identity.scheme));
      if (granted.length === 0 || fixed.length + granted.length > entriesMax) return undefined;
      for (const identity of granted) fixed.push({ perms: entry.perms, id: identity });
    } else {
      if (id === null) return undefined;
      if (scheme === 'world' ? id !== 'anyone' : !schemes.accepts(scheme, id)) return undefined;
      fixed.push(entry);
    }
  }
  return fixed;
}

/** In the order in which ZooKeeper's tools print them. */
const letters: readonly (readonly [letter: string, bit: number])[] = [
  ['c', Perms.create],
  ['d', Perms.delete],
  ['r', Perms.read],
  ['w', Perms.write],
  ['a', Perms.admin],
];

/** `cdrwa` for all of them. Bits without a letter leave no trace. */
export function permsText(perms: number): string {
  let text = '';
  for (const [letter, bit] of letters) if ((perms & bit) !== 0) text += letter;
  return text;
}

/** The permissions a text names, in any order; undefined when one of its letters names none. */
export function parsePerms(text: string): number | undefined {
  let perms = 0;
  for (const letter of text) {
    const found = letters.find(([known]) => known === letter);
    if (found === undefined) return undefined;
    perms |= found[1];
  }
  return perms;
}
