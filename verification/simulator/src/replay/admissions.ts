/**
 * Every request of a recording as the model admits it: with the number of its connection, and with
 * the identities that its client had added before. A digest counts even if the server refused it,
 * since then the connection ends.
 */
import type { AuthRequest, SaslRequest } from '@tskeeper/protocol';
import { digestId, type Id } from '../model/access-rules.ts';
import type { Admitted } from '../model/admitted-request.ts';
import { operationFrom } from '../model/from-wire.ts';
import { provedUser } from '../model/sasl-rules.ts';
import type { CnxnRecord, Request, RunLimits } from '../record/recording.ts';

export class Admissions {
  readonly #admitted = new Map<Request, Admitted>();

  /** The number of a connection is its place in the list. */
  constructor(cnxns: readonly CnxnRecord[], limits: IdentityLimits = {}) {
    for (const [number, cnxn] of cnxns.entries()) {
      let identities = initialIdentities(cnxn);
      for (const request of cnxn.requests) {
        const { session, xid, name, opCode, record } = request;
        const operation = operationFrom(name, opCode, record);
        this.#admitted.set(request, { cnxn: number, session, xid, operation, identities, wallMs: 0 });
        identities = identitiesAfter(identities, request, limits);
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

/** What the servers know of identities. */
type IdentityLimits = Pick<RunLimits, 'superDigest' | 'saslUsers'>;

/** The identities of a connection after a request. */
export function identitiesAfter(
  before: readonly Id[],
  { name, record }: Request,
  { superDigest, saslUsers }: IdentityLimits,
): readonly Id[] {
  if (name === 'auth') return withDigest(before, record as AuthRequest, superDigest);
  if (name !== 'sasl' || saslUsers === undefined) return before;
  const { token } = record as SaslRequest;
  const id = token === null ? undefined : provedUser(Buffer.from(token).toString('latin1'), saslUsers);
  return id === undefined ? before : [...before, { scheme: 'sasl', id }];
}

function withDigest(before: readonly Id[], { scheme, auth }: AuthRequest, superDigest?: string): readonly Id[] {
  if (scheme !== 'digest' || auth === null) return before;
  const id = digestId(Buffer.from(auth).toString('utf8'));
  if (before.some((own) => own.scheme === 'digest' && own.id === id)) return before;
  const added: Id[] = id === superDigest ? [{ scheme: 'super', id: '' }] : [];
  return [...before, ...added, { scheme: 'digest', id }];
}
