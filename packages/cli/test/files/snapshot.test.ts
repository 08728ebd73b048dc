import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { adler32 } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { fixtures, jsonLines, temporaryFolder, tool } from '../support/tool.ts';

const snapshot = readFileSync(join(fixtures, 'disk-3.9.5/snapshot.22'));
const log = readFileSync(join(fixtures, 'disk-3.9.5/log.1'));

interface ListedSnapshot {
  readonly sessions: readonly { readonly id: string; readonly timeout: number }[];
  readonly nodes: readonly { readonly path: string; readonly stat: Record<string, unknown> }[];
}

function byPath<T extends { readonly path: string }>(list: readonly T[]): T[] {
  return list.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

describe('snapshot dump', () => {
  it.each(['3.9.5', '3.8.0'])('A72: shows every znode of a snapshot of ZooKeeper %s as ZooKeeper lists it', async (version) => {
    const listing = JSON.parse(readFileSync(join(fixtures, `disk-${version}/listing.json`), 'utf8')) as {
      files: Record<string, ListedSnapshot>;
    };
    const listed = listing.files['snapshot.22']!;
    const { code, out } = await tool('snapshot', 'dump', '-o', 'json', join(fixtures, `disk-${version}`));
    expect(code).toBe(exitCodes.done);
    const lines = jsonLines(out);
    expect(lines[0]).toMatchObject({ kind: 'snapshot', file: 'snapshot.22', zxid: '0x22', znodes: listed.nodes.length });
    const znodes = lines.filter(({ kind }) => kind === 'znode') as { path: string; mzxid: string; version: number; cversion: number }[];
    const shown = znodes.map(({ path, mzxid, version: dataVersion, cversion }) => ({ path, mzxid, dataVersion, cversion }));
    const expected = listed.nodes.map(({ path, stat }) => {
      return { path: path === '' ? '/' : path, mzxid: stat['mzxid'], dataVersion: stat['version'], cversion: stat['cversion'] };
    });
    expect(byPath(shown)).toEqual(byPath(expected as typeof shown));
  });

  it('shows types, ACLs, sessions and data', async () => {
    const { out } = await tool('snapshot', 'dump', '-o', 'json', '--data', join(fixtures, 'disk-3.9.5/snapshot.22'));
    const lines = jsonLines(out);
    const at = (path: string) => lines.find((line) => line['path'] === path);
    expect(lines[1]).toEqual({ kind: 'session', session: '0x100000cebc40000', timeout: 30_000, ephemerals: 3 });
    expect(at('/app/ttl')).toMatchObject({ type: 'ttl', ttl: 3_600_000 });
    expect(at('/app/container')).toMatchObject({ type: 'container' });
    expect(at('/app/eph')).toMatchObject({ type: 'ephemeral', ephemeralOwner: '0x100000cebc40000', data: 'e', encoding: 'utf8' });
    expect(at('/app/nodata')).toMatchObject({ dataLength: 0, data: null });
    expect(at('/app/private')).toMatchObject({ acl: [{ scheme: 'digest', id: 'alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=', perms: 'cdrwa' }] });
  });

  it('prints only a subtree with --path, in the format of zkCli', async () => {
    const { out } = await tool('snapshot', 'dump', '--data', '--path', '/app/m1', join(fixtures, 'disk-3.9.5'));
    expect(out).toBe(`snapshot.22: zxid 0x22, 24 znodes, 1 session
digest 0xa91e73969 at 0x22
session 0x100000cebc40000 timeout 30000 ms, 3 ephemerals

/app/m1
  type = persistent
  cZxid = 0x19
  ctime = 2026-11-20T09:17:27.477Z
  mZxid = 0x1b
  mtime = 2026-11-20T09:17:27.484Z
  pZxid = 0x19
  cversion = 1
  dataVersion = 2
  aclVersion = 0
  ephemeralOwner = 0x0
  acl = world:anyone:cdrwa
  dataLength = 1
  numChildren = 1
  data = "1"

/app/m1/s-0000000000
  type = persistent
  cZxid = 0x19
  ctime = 2026-11-20T09:17:27.477Z
  mZxid = 0x19
  mtime = 2026-11-20T09:17:27.477Z
  pZxid = 0x19
  cversion = 0
  dataVersion = 0
  aclVersion = 0
  ephemeralOwner = 0x0
  acl = world:anyone:cdrwa
  dataLength = 1
  numChildren = 0
  data = "m"
`);
  });

  it('reads compressed snapshots, and rejects a file that is not a snapshot with the reason', async () => {
    for (const name of ['snapshot.6.gz', 'snapshot.6.snappy']) {
      const { out } = await tool('snapshot', 'dump', '-o', 'json', join(fixtures, 'disk-compressed', name));
      expect(jsonLines(out)[0]).toMatchObject({ zxid: '0x6', znodes: 9 });
    }
    const { code, err } = await tool('snapshot', 'dump', join(fixtures, 'disk-3.9.5/log.1'));
    expect(code).toBe(exitCodes.refused);
    expect(err).toMatch(/^tskeeper: cannot read .*log\.1 as a snapshot: expected a snapshot, which begins with "ZKSN" at byte 0\n$/);
  });
});

async function verify(files: Readonly<Record<string, Uint8Array>>, ...options: readonly string[]) {
  using folder = temporaryFolder(files);
  const { code, out } = await tool('snapshot', 'verify', '-o', 'json', ...options, folder.path);
  return { code, reports: jsonLines(out) };
}

/** A copy with a changed digest section and a new seal. */
function withDigest(bytes: Buffer, change: (section: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes);
  // digest 20 bytes, seal 13, last zxid 8, seal 13.
  const digestAt = copy.length - 54;
  change(copy.subarray(digestAt, digestAt + 20));
  copy.writeUInt32BE(adler32(copy, 0, digestAt + 20), digestAt + 24);
  copy.writeUInt32BE(adler32(copy, 0, digestAt + 41), digestAt + 45);
  return copy;
}

describe('snapshot verify', () => {
  it('accepts snapshots of ZooKeeper and of tskeeper with correct digests', async () => {
    const { code, out } = await tool(
      'snapshot',
      'verify',
      ...['disk-3.9.5', 'disk-3.8.0', 'disk-compressed'].map((name) => join(fixtures, name)),
    );
    expect(code).toBe(exitCodes.done);
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/: .*; /, ' ... ')),
    ).toEqual([
      'snapshot.0 ... sound',
      'snapshot.22 ... sound',
      'snapshot.0 ... sound',
      'snapshot.22 ... sound',
      'snapshot.6.gz ... sound',
      'snapshot.6.snappy ... sound',
    ]);
    expect(out.match(/the tree has the digest of/g)).toHaveLength(4);
  });

  it('A72: detects every flipped bit', async () => {
    for (let at = 0; at < snapshot.length; at += 53) {
      // No reader uses the version and the id in the header, but the seal covers them.
      const bytes = Buffer.from(snapshot);
      bytes[at]! ^= 4;
      const { code, reports } = await verify({ 'snapshot.22': bytes });
      expect([at, code, reports[0]!['verdict']]).toEqual([at, exitCodes.failed, 'damaged']);
    }
    const cut = await verify({ 'snapshot.22.gz': gzipSync(snapshot).subarray(0, 400) });
    expect([cut.code, cut.reports[0]!['damage']]).toEqual([exitCodes.failed, 'unexpected end of file']);
  });

  it('detects a tree whose digest differs from the one recorded in the snapshot', async () => {
    const bytes = withDigest(snapshot, (section) => section.writeUInt8(section[19]! ^ 1, 19));
    const { code, reports } = await verify({ 'snapshot.22': bytes });
    expect([code, reports[0]!['digest']]).toEqual([exitCodes.failed, { verdict: 'differs', zxid: '0x22', value: '0xa91e73968' }]);
  });

  it('replays the log up to the txn of the digest when the snapshot was written while txns were applied', async () => {
    const empty = readFileSync(join(fixtures, 'disk-3.9.5/snapshot.0'));
    // As if the last digest had been recorded while the empty tree was written.
    const fuzzy = withDigest(empty, (section) => snapshot.copy(section, 0, snapshot.length - 54, snapshot.length - 34));
    const with22 = await verify({ 'snapshot.0': fuzzy, 'log.1': log });
    expect([with22.code, with22.reports[0]!['digest']]).toEqual([
      exitCodes.done,
      { verdict: 'agrees after replay', zxid: '0x22', value: '0xa91e73969' },
    ]);
    const alone = await verify({ 'snapshot.0': fuzzy });
    expect([alone.code, alone.reports[0]!['digest']]).toMatchObject([exitCodes.done, { verdict: 'not comparable' }]);
    using logs = temporaryFolder({ 'log.1': log });
    const elsewhere = await verify({ 'snapshot.0': fuzzy }, '--logs', logs.path);
    expect(elsewhere.reports[0]!['digest']).toMatchObject({ verdict: 'agrees after replay' });
  });
});

describe('snapshot diff', () => {
  const first = join(fixtures, 'disk-3.9.5/snapshot.0');
  const second = join(fixtures, 'disk-3.9.5/snapshot.22');

  it('prints nothing and ends with 0 for two equal snapshots, compressed or not', async () => {
    using folder = temporaryFolder({ 'snapshot.22.gz': gzipSync(snapshot) });
    expect(await tool('snapshot', 'diff', second, folder.path)).toMatchObject({ code: exitCodes.done, out: '' });
  });

  it('A72: lists added, removed and changed znodes', async () => {
    const there = await tool('snapshot', 'diff', first, second);
    expect(there.code).toBe(exitCodes.failed);
    expect(there.out.split('\n').slice(0, 2)).toEqual([
      '~ /  cversion 0 -> 2, pzxid 0x0 -> 0x14',
      '+ /app  persistent, 5 bytes, mZxid 0x11',
    ]);
    expect(there.err).toBe('20 znodes added, 0 removed, 2 changed; 1 session added or removed\n');
    const back = await tool('snapshot', 'diff', '-o', 'json', second, first);
    expect(jsonLines(back.out)[1]).toEqual({ change: 'removed', path: '/app', type: 'persistent', dataLength: 5, mzxid: '0x11' });
    expect(jsonLines(back.out).at(-1)).toEqual({ change: 'removed', session: '0x100000cebc40000' });
  });

  it('ignores stats with --content', async () => {
    const other = join(fixtures, 'disk-3.8.0/snapshot.22');
    const everything = await tool('snapshot', 'diff', '-o', 'json', other, second);
    const app = jsonLines(everything.out).find(({ path }) => path === '/app')!;
    expect(Object.keys(app['fields'] as object)).toEqual(['ctime', 'mtime']);
    const content = await tool('snapshot', 'diff', '--content', '-o', 'json', other, second);
    expect(jsonLines(content.out).filter(({ path }) => path === '/app')).toEqual([]);
  });

  it('sums up the growth of each subtree beyond a threshold', async () => {
    const { code, out } = await tool('snapshot', 'diff', '--nodes', '3', first, second);
    expect([code, out]).toEqual([exitCodes.failed, '/  +99 bytes, +20 znodes\n/app  +21 bytes, +17 znodes\n']);
    expect(await tool('snapshot', 'diff', '--bytes', '99', '--nodes', '20', first, second)).toMatchObject({
      code: exitCodes.done,
      out: '',
    });
    expect((await tool('snapshot', 'diff', '--content', '--nodes', '1', first, second)).code).toBe(exitCodes.refused);
  });
});
