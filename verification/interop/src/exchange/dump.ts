/**
 * Everything that a client can see of a server's state, to compare two servers that should hold the
 * same.
 */
import { OpCode } from '@tskeeper/protocol';

import { RawClient, record, type ServerProcess } from '@tskeeper/harness';
import { superAuth } from '../settings.ts';

export interface Dump {
  /** One line per znode, by path: data, ACL and every field of its stat. */
  readonly znodes: ReadonlyMap<string, string>;
  /** The last zxid applied. */
  readonly zxid: string;
  /** Session ids in hex, without that of the dump itself. */
  readonly sessions: ReadonlySet<string>;
  /** Recent tree digests of the server, by zxid. */
  readonly digests: ReadonlyMap<string, string>;
  /** The metric of mntr for digests that did not match. */
  readonly digestMismatches: string;
}

/** The whole tree, read as the super user. */
export async function dumpTree(port: number): Promise<Map<string, string>> {
  const client = await RawClient.connectOrThrow(port, 60_000);
  await client.auth('digest', superAuth);
  const znodes = new Map<string, string>();
  const open = ['/'];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const data = await client.call(OpCode.getData, record.pathAndWatch(path, false));
    const acl = await client.call(OpCode.getACL, record.pathOnly(path));
    const children = await client.call(OpCode.getChildren, record.pathAndWatch(path, false));
    if (data.err !== 0 || acl.err !== 0 || children.err !== 0)
      throw new Error(`cannot read ${path}: ${data.err} ${acl.err} ${children.err}`);
    const shown = data.value.data === null ? 'null' : data.value.data!.toString('base64');
    const stat = Object.entries(data.value.stat!).map(([field, value]) => `${field}=${value}`);
    znodes.set(
      path,
      `data=${shown} acl=${acl.value.acl?.map(({ scheme, id, perms }) => `${scheme}:${id}:${perms}`).join(',')} ${stat.join(' ')}`,
    );
    for (const child of children.value.children ?? []) open.push(path === '/' ? `/${child}` : `${path}/${child}`);
  }
  await client.close();
  return znodes;
}

/** Session ids in the first part of the four letter word dump. */
function sessionsIn(text: string): Set<string> {
  const [tracker = ''] = text.split('ephemeral nodes dump:');
  return new Set([...tracker.matchAll(/^\t0x([0-9a-f]+)/gm)].map((match) => match[1]!));
}

/**
 * `treeFirst` reads the tree before the zxid and the sessions: right for a server about to end,
 * since reading opens a session, whose beginning and end are txns. A server that has just started
 * is read in the other order.
 */
export async function dump(server: ServerProcess, { treeFirst }: { treeFirst: boolean }): Promise<Dump> {
  const before = treeFirst ? await dumpTree(server.port) : undefined;
  const srvr = await server.fourLetterWord('srvr');
  const sessions = sessionsIn(await server.fourLetterWord('dump'));
  const hash = await server.fourLetterWord('hash');
  const mntr = await server.fourLetterWord('mntr');
  return {
    znodes: before ?? (await dumpTree(server.port)),
    zxid: /^Zxid: (.*)$/m.exec(srvr)?.[1] ?? 'not reported',
    sessions,
    digests: new Map([...hash.matchAll(/^([0-9a-f]+): (.*)$/gm)].map((match) => [match[1]!, match[2]!])),
    digestMismatches: /^zk_digest_mismatches_count\t(.*)$/m.exec(mntr)?.[1] ?? 'not reported',
  };
}

/**
 * What `after` lacks, has in addition, or has differently; empty if both hold the same. At most a
 * few lines of each kind.
 */
export function differencesBetween(before: Dump, after: Dump): string[] {
  const found: string[] = [];
  if (before.zxid !== after.zxid) found.push(`zxid ${before.zxid} became ${after.zxid}`);
  for (const [path, line] of before.znodes) {
    const other = after.znodes.get(path);
    if (other === undefined) found.push(`${path} is missing: ${line}`);
    else if (other !== line) found.push(`${path} was ${line} and is ${other}`);
  }
  for (const path of after.znodes.keys()) if (!before.znodes.has(path)) found.push(`${path} is new`);
  for (const session of before.sessions) if (!after.sessions.has(session)) found.push(`session 0x${session} is missing`);
  for (const session of after.sessions) if (!before.sessions.has(session)) found.push(`session 0x${session} is new`);
  for (const [zxid, digest] of after.digests) {
    const other = before.digests.get(zxid);
    if (other !== undefined && other !== digest) found.push(`the tree digest at 0x${zxid} was ${other} and is ${digest}`);
  }
  return found.slice(0, 20);
}
