/**
 * Access control lists: which client may do what to one znode. ZooKeeper's records Id and ACL.
 *
 * The rules for requested ACLs are in acl-rules.ts.
 */
import { Perms } from '../constants.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/**
 * An identity under an authentication scheme: `ip` and `10.0.0.1`, `digest` and `user:hash`. Null
 * texts can be encoded, but are never granted anything.
 */
export interface Id {
  /**
   * `world`, `auth`, `digest`, `ip`, `sasl`, `x509`, or the scheme of another provider of the
   * servers.
   */
  readonly scheme: string | null;
  /** The id in the form of its scheme: `user:hash` for `digest`; see `digestId`. */
  readonly id: string | null;
}

/**
 * One entry of an access control list: permissions granted to an identity (ZooKeeper Programmer's
 * Guide, "ZooKeeper access control using ACLs").
 */
export interface Acl {
  /** A sum of `Perms`. ZooKeeper stores the number as given, including unknown bits. */
  readonly perms: number;
  /** The identity to which they are granted. */
  readonly id: Id;
}

const idBytesMin = 8;
const aclBytesMin = 4 + idBytesMin;

/** Every client. */
export const anyone: Id = Object.freeze({ scheme: 'world', id: 'anyone' });
/** In requests only: the server replaces it by the identities of the connection. */
export const authenticated: Id = Object.freeze({ scheme: 'auth', id: '' });

/** Grants all permissions to every client (ZooDefs.Ids.OPEN_ACL_UNSAFE). */
export const openAcl: readonly Acl[] = Object.freeze([Object.freeze({ perms: Perms.all, id: anyone })]);
/** Grants read permission to every client (READ_ACL_UNSAFE). */
export const readOnlyAcl: readonly Acl[] = Object.freeze([Object.freeze({ perms: Perms.read, id: anyone })]);
/** Grants all permissions to the creator's authenticated identities (CREATOR_ALL_ACL). */
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

/** vector<ACL> as stored and sent in replies, where null and empty are equal. */
export function readAclList(reader: Reader): Acl[] {
  return readRequestedAcl(reader) ?? [];
}

/**
 * vector<ACL> as requested by a client. Null differs from empty: a single request with either is
 * refused alike, but in a multi only null makes the request invalid.
 */
export function readRequestedAcl(reader: Reader): Acl[] | null {
  return reader.vector(aclBytesMin, readAcl);
}

export function writeAclList(writer: Writer, list: readonly Acl[] | null): void {
  writer.vector(list, writeAcl);
}
