/**
 * The ACLs that znodes had before the last txn or during it. For znodes that it deleted, these are
 * the ACLs from before and those it had set itself: watchers may receive events if they could read
 * the znode under any of them.
 */
import { sessionIdOf, type TxnLogEntry } from '@tskeeper/protocol';
import type { AclEntry } from '../model/operation-types.ts';
import type { ReferenceModel } from '../model/reference-model.ts';

type ModelAcl = readonly AclEntry[];

export class PreviousAcls {
  readonly #model: ReferenceModel;
  #byPath = new Map<string, ModelAcl[]>();

  constructor(model: ReferenceModel) {
    this.#model = model;
  }

  of(path: string): readonly ModelAcl[] {
    return this.#byPath.get(path) ?? [];
  }

  /** Notes the ACLs before this txn is applied, and forgets those of the txn before it. */
  record({ header, txn }: TxnLogEntry): void {
    this.#byPath = new Map();
    if (txn.kind === 'delete') this.#addDeleted(txn.path);
    if (txn.kind === 'closeSession')
      for (const path of this.#model.ephemeralsOf(sessionIdOf(header.clientHigh, header.clientLow))) this.#addDeleted(path);
    if (txn.kind !== 'multi') return;
    for (const { txn: part } of txn.txns) {
      if (part.kind === 'delete') this.#addDeleted(part.path);
      if (part.kind === 'create' || part.kind === 'createContainer' || part.kind === 'createTTL') {
        this.#add(
          part.path,
          part.acl.map(({ perms, id }) => ({ perms, scheme: id.scheme ?? '', id: id.id ?? '' })),
        );
      }
    }
  }

  #addDeleted(path: string): void {
    const acl = this.#model.lookUp(path)?.acl;
    if (acl !== undefined) this.#add(path, acl);
  }

  #add(path: string, acl: ModelAcl): void {
    const known = this.#byPath.get(path);
    if (known === undefined) this.#byPath.set(path, [acl]);
    else known.push(acl);
  }
}
