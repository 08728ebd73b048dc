import type { AclEntry, Data, Stat } from '../model/operation-types.ts';
import { textOf } from '../record/request-text.ts';

/** Everything that is stored for a znode, as one line: equal for equal znodes. */
export function znodeText({ stat, data, acl }: { readonly stat: Stat; readonly data: Data; readonly acl: readonly AclEntry[] }): string {
  return textOf({ stat, data, acl });
}
