/** Parses ACLs as zkCli does: `scheme:id:perms,scheme:id:perms`. The id may contain colons. */
import type { Acl } from '@tskeeper/client';
import { Perms } from '@tskeeper/protocol';

const permsByLetter: Readonly<Record<string, number>> = {
  r: Perms.read,
  w: Perms.write,
  c: Perms.create,
  d: Perms.delete,
  a: Perms.admin,
};

/**
 * Omits invalid entries and letters, as zkCli does, and complains about each. Servers reject an
 * empty ACL.
 */
export function parseAcl(text: string, warn: (sentence: string) => void): Acl[] {
  const acl: Acl[] = [];
  for (const entry of text.split(',')) {
    const first = entry.indexOf(':');
    const last = entry.lastIndexOf(':');
    if (first === -1 || first === last) {
      warn(`${entry} does not have the form scheme:id:perm`);
      continue;
    }
    let perms = 0;
    for (const letter of entry.slice(last + 1)) {
      const perm = permsByLetter[letter];
      if (perm === undefined) warn(`Unknown perm type: ${letter}`);
      else perms |= perm;
    }
    acl.push({ perms, id: { scheme: entry.slice(0, first), id: entry.slice(first + 1, last) } });
  }
  return acl;
}
