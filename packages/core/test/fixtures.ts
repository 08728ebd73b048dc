/**
 * Files recorded from Apache ZooKeeper, and their content (fixtures/README.md).
 */
import { readFileSync } from 'node:fs';

const folder = new URL('../../../fixtures/', import.meta.url);

export function fixtureBytes(name: string): Buffer {
  return readFileSync(new URL(name, folder));
}

export interface ListedNode {
  readonly path: string;
  readonly data: { readonly hex: string } | null;
  /** Key of the ACL table. */
  readonly acl: number;
  readonly stat: {
    readonly czxid: string;
    readonly mzxid: string;
    readonly pzxid: string;
    readonly ctime: number;
    readonly mtime: number;
    readonly version: number;
    readonly cversion: number;
    readonly aversion: number;
    readonly ephemeralOwner: string;
  };
}

export interface ListedSnapshot {
  readonly sessions: readonly { readonly id: string; readonly timeout: number }[];
  readonly aclCache: readonly {
    readonly key: number;
    readonly acl: readonly { readonly perms: number; readonly id: { readonly scheme: string; readonly id: string } }[];
  }[];
  readonly nodes: readonly ListedNode[];
  readonly digest?: { readonly zxid: string; readonly digestVersion: number; readonly digest: number };
  readonly lastProcessedZxid?: { readonly zxid: string };
}

/** The entry of a snapshot in listing.json. */
export function listedSnapshot(listing: string, file: string): ListedSnapshot {
  const parsed = JSON.parse(fixtureBytes(listing).toString('utf8')) as Record<string, unknown>;
  const files = (parsed['files'] ?? parsed) as Record<string, ListedSnapshot>;
  return files[file]!;
}
