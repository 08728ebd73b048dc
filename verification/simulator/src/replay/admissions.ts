/**
 * Every request of a recording as the model admits it: with the number of its connection, and with
 * the identities that its client had added before. A digest counts even if the server refused it,
 * since then the connection ends.
 */
import type { AuthRequest } from '@tskeeper/protocol';
import { digestId, type Id } from '../model/access-rules.ts';
import type { Admitted } from '../model/admitted-request.ts';
import { operationFrom } from '../model/from-wire.ts';
import type { CnxnRecord, Request } from '../record/recording.ts';

export class Admissions {
  readonly #admitted = new Map<Request, Admitted>();

  /** The number of a connection is its place in the list. */
  constructor(cnxns: readonly CnxnRecord[], superDigest?: string) {
    for (const [number, cnxn] of cnxns.entries()) {
      let identities = initialIdentities(cnxn);
      for (const request of cnxn.requests) {
        const { session, xid, name, opCode, record } = request;
        const operation = operationFrom(name, opCode, record);
        this.#admitted.set(request, { cnxn: number, session, xid, operation, identities, wallMs: 0 });
        if (name === 'auth') identities = identitiesAfter(identities, record as AuthRequest, superDigest);
      }
    }
  }

  of(request: Request): Admitted {
    return this.#admitted.get(request)!;
  }
}

export function initialIdentities({ address }: CnxnRecord): readonly Id[] {
  return [{ scheme: 'ip', id: address }];
}

export function identitiesAfter(before: readonly Id[], { scheme, auth }: AuthRequest, superDigest?: string): readonly Id[] {
  if (scheme !== 'digest' || auth === null) return before;
  const id = digestId(Buffer.from(auth).toString('utf8'));
  if (before.some((own) => own.scheme === 'digest' && own.id === id)) return before;
  const added: Id[] = id === superDigest ? [{ scheme: 'super', id: '' }] : [];
  return [...before, ...added, { scheme: 'digest', id }];
}
