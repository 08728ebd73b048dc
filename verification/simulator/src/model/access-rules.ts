/**
 * Identities of clients, and what the ACL of a znode permits them. A connection starts with the
 * identity of its address; `auth` requests add more.
 */
import { createHash } from 'node:crypto';
import { ErrorCode, Perms } from '@tskeeper/protocol';
import { Refusal } from './refusal.ts';
import { addressRange } from './ip-range.ts';
import type { ModelOptions } from './model-options.ts';
import type { AclEntry, Data } from './operation-types.ts';
import { provedUser } from './sasl-rules.ts';

export interface Id {
  readonly scheme: string;
  readonly id: string;
}

/** An entry of an effective ACL. */
export interface Acl {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

export const openAcl: readonly Acl[] = [{ perms: Perms.all, scheme: 'world', id: 'anyone' }];

export function digestId(userAndPassword: string): string {
  const hash = createHash('sha1').update(userAndPassword, 'utf8').digest('base64');
  return `${userAndPassword.split(':')[0]}:${hash}`;
}

/** The user that whoAmI shows: of a digest only the name. */
export function userOf({ scheme, id }: Id): string {
  return scheme === 'digest' ? id.split(':')[0]! : id;
}

/** Java's split drops empty parts at the end, so `a:b:` has two parts as well. */
function isValidDigestId(id: string): boolean {
  return id.replace(/:+$/, '').split(':').length === 2 && id.replace(/:+$/, '') !== '';
}

export class AccessRules {
  readonly #options: ModelOptions;

  constructor(options: ModelOptions) {
    this.#options = options;
  }

  /** Processes an auth request: adds identities to those of the connection, or returns false. */
  authenticate(identities: Id[], scheme: string | null, auth: Data): boolean {
    if (scheme === 'ip') return true;
    if (scheme !== 'digest' || !this.#options.digestAuthEnabled || auth === null) return false;
    const id = digestId(Buffer.from(auth, 'latin1').toString('utf8'));
    const shown: Id[] = [{ scheme: 'digest', id }];
    if (id === this.#options.superDigest) shown.unshift({ scheme: 'super', id: '' });
    const added = shown.filter((one) => !identities.some((own) => own.scheme === one.scheme && own.id === one.id));
    const all = [...identities, ...added];
    const bytes = all.reduce((sum, one) => sum + 8 + Buffer.byteLength(one.scheme) + Buffer.byteLength(one.id), 0);
    const { identitiesPerCnxnMax, identityBytesPerCnxnMax } = this.#options;
    if (added.length > 0 && (all.length > identitiesPerCnxnMax || bytes > identityBytesPerCnxnMax)) return false;
    identities.push(...added);
    return true;
  }

  /** Adds the identity that a token of SASL proves, if it proves one. */
  proveByToken(identities: Id[], token: Data): void {
    const { saslUsers } = this.#options;
    const id = saslUsers === undefined ? undefined : provedUser(token, saslUsers);
    if (id !== undefined && !identities.some((own) => own.scheme === 'sasl' && own.id === id)) identities.push({ scheme: 'sasl', id });
  }

  isPermitted(acl: readonly AclEntry[], perms: number, identities: readonly Id[]): boolean {
    if (this.#options.skipAcl || acl.length === 0 || identities.some(({ scheme }) => scheme === 'super')) return true;
    return acl.some((entry) => {
      if ((entry.perms & perms) === 0) return false;
      if (entry.scheme === 'world') return entry.id === 'anyone';
      return identities.some((own) => own.scheme === entry.scheme && this.#matches(own, entry));
    });
  }

  #matches(own: Id, entry: AclEntry): boolean {
    if (entry.scheme === 'digest') return this.#options.digestAuthEnabled && own.id === entry.id;
    if (entry.scheme === 'sasl') return this.#hasSasl && own.id === entry.id;
    if (entry.scheme !== 'ip') return false;
    const range = entry.id === null ? undefined : addressRange(entry.id);
    const address = addressRange(own.id);
    if (range === undefined || address === undefined || range.bits.length !== address.bits.length) return false;
    return range.bits.slice(0, range.prefix) === address.bits.slice(0, range.prefix);
  }

  requirePermission(acl: readonly Acl[], perms: number, identities: readonly Id[]): void {
    if (!this.isPermitted(acl, perms, identities)) throw new Refusal(ErrorCode.NoAuth);
  }

  /** The effective ACL: without duplicates, and with `auth` replaced by the client's identities. */
  effectiveAcl(wanted: readonly AclEntry[] | null, identities: readonly Id[]): Acl[] {
    const same = (a: AclEntry, b: AclEntry): boolean => a.perms === b.perms && a.scheme === b.scheme && a.id === b.id;
    const unique = (wanted ?? []).filter((entry, at, all) => all.findIndex((other) => same(entry, other)) === at);
    if (unique.length === 0) throw new Refusal(ErrorCode.InvalidACL);
    return unique.flatMap(({ perms, scheme, id }): Acl[] => {
      if (scheme === 'auth') {
        const known = identities.filter((own) => this.#provesIdentity(own));
        if (known.length === 0) throw new Refusal(ErrorCode.InvalidACL);
        return known.map((own) => ({ perms, ...own }));
      }
      if (scheme === null || id === null || !this.#isValidId(scheme, id)) throw new Refusal(ErrorCode.InvalidACL);
      return [{ perms, scheme, id }];
    });
  }

  #isValidId(scheme: string, id: string): boolean {
    if (scheme === 'world') return id === 'anyone';
    if (scheme === 'ip') return addressRange(id) !== undefined;
    if (scheme === 'sasl') return this.#hasSasl && !id.includes('@');
    return scheme === 'digest' && this.#options.digestAuthEnabled && isValidDigestId(id);
  }

  #provesIdentity({ scheme }: Id): boolean {
    return (scheme === 'digest' && this.#options.digestAuthEnabled) || (scheme === 'sasl' && this.#hasSasl);
  }

  get #hasSasl(): boolean {
    return this.#options.saslUsers !== undefined;
  }
}
