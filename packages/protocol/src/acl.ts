/**
 * Access control lists: who may do what to one znode. ZooKeeper's records Id and ACL.
 *
 * The rules for what a client may ask for are in acl-rules.ts.
 */
import { Perms } from './constants.ts';
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

/** An identity under an authentication scheme: `ip` and `10.0.0.1`, `digest` and `user:hash`. Null texts can travel, but are never granted anything. */
export interface Id {
  /** `world`, `auth`, `digest`, `ip`, `sasl`, `x509`, or one that a provider of the servers knows. */
  readonly scheme: string | null;
  /** What the scheme makes of it: `user:hash` for `digest`; see `digestId`. */
  readonly id: string | null;
}

/** One entry of an access control list: what is granted to whom (ZooKeeper Programmer's Guide, "ZooKeeper access control using ACLs"). */
export interface Acl {
  /** A sum of `Perms`. ZooKeeper keeps the number as given, also when it has bits that mean nothing. */
  readonly perms: number;
  /** To whom. */
  readonly id: Id;
}

const idBytesMin = 8;
const aclBytesMin = 4 + idBytesMin;

/** Everyone, whoever they are. */
export const anyone: Id = Object.freeze({ scheme: 'world', id: 'anyone' });
/** In requests only: the server puts the identities of the connection in its place. */
export const authenticated: Id = Object.freeze({ scheme: 'auth', id: '' });

/** Everyone may do everything (ZooDefs.Ids.OPEN_ACL_UNSAFE). */
export const openAcl: readonly Acl[] = Object.freeze([Object.freeze({ perms: Perms.all, id: anyone })]);
/** Everyone may read (READ_ACL_UNSAFE). */
export const readOnlyAcl: readonly Acl[] = Object.freeze([Object.freeze({ perms: Perms.read, id: anyone })]);
/** The creator, as authenticated, may do everything (CREATOR_ALL_ACL). */
export const creatorAcl: readonly Acl[] = Object.freeze([Object.freeze({ perms: Perms.all, id: authenticated })]);

export function readId(reader: Reader): Id {
  return { scheme: reader.ustring(), id: reader.ustring() };
}

export function writeId(writer: Writer, id: Id): void {
  writer.ustring(id.scheme);
  writer.ustring(id.id);
}

export function readAcl(reader: Reader): Acl {
  return { perms: reader.int32(), id: readId(reader) };
}

export function writeAcl(writer: Writer, acl: Acl): void {
  writer.int32(acl.perms);
  writeId(writer, acl.id);
}

/** vector<ACL>, where null and empty are the same: what servers store and answer. */
export function readAclList(reader: Reader): Acl[] {
  return readRequestedAcl(reader) ?? [];
}

/** vector<ACL> as a client asks for it. Null is told from empty: alone both are refused alike, in a multi only null spoils the request. */
export function readRequestedAcl(reader: Reader): Acl[] | null {
  return reader.vector(aclBytesMin, readAcl);
}

export function writeAclList(writer: Writer, list: readonly Acl[] | null): void {
  writer.vector(list, writeAcl);
}
