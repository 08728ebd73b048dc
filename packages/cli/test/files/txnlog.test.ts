import { readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@tskeeper/client';
import { coreDefaults } from '@tskeeper/core';
import { Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import { makeZxid } from '@tskeeper/protocol';
import { Recovery, SeededRandom, silentLogger, type SnapshotSink, StorageRefused } from '@tskeeper/runtime';
import { FsDisk, snappy, SystemClock } from '@tskeeper/server/internal';
import { TestEnsemble, TestServer } from '@tskeeper/testing';
import { describe, expect, it } from 'vitest';
import { exitCodes, defineTxnlog, run } from '../../src/index.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { logOf, setDataEntry, withTxnChanged, writeMarkedLog } from '../support/log-bytes.ts';
import { fixtures, jsonLines, temporaryFolder, tool } from '../support/tool.ts';

interface Listing {
  readonly files: {
    readonly 'log.1': {
      readonly entries: readonly {
        readonly offset: number;
        readonly TxnHeader: { clientId: string; cxid: number; zxid: string; time: number; type: number };
        readonly TxnDigest?: { treeDigest: string };
      }[];
    };
  };
}

describe.each(['3.9.5', '3.8.0'])('the log of a ZooKeeper %s', (version) => {
  const folder = join(fixtures, `disk-${version}`);
  const listing = JSON.parse(readFileSync(join(folder, 'listing.json'), 'utf8')) as Listing;

  it('A72: is dumped txn by txn, with every field of the header', async () => {
    const { code, out } = await tool('txnlog', 'dump', '-o', 'json', folder);
    expect(code).toBe(exitCodes.done);
    const expected = listing.files['log.1'].entries.map(({ offset, TxnHeader, TxnDigest }) => ({
      offset,
      session: TxnHeader.clientId,
      cxid: TxnHeader.cxid,
      zxid: TxnHeader.zxid,
      time: new Date(TxnHeader.time).toISOString(),
      digest: TxnDigest?.treeDigest,
    }));
    const shown = jsonLines(out).map(({ offset, session, cxid, zxid, time, digest }) => {
      return { offset, session, cxid, zxid, time, digest: (digest as { value?: string } | undefined)?.value };
    });
    expect(shown).toEqual(expected);
  });

  it('is sound, and a replay from the snapshot beside it matches every digest in it', async () => {
    const { code, out } = await tool('txnlog', 'verify', '-o', 'json', folder);
    expect(code).toBe(exitCodes.done);
    const withDigest = listing.files['log.1'].entries.filter(({ TxnDigest }) => TxnDigest !== undefined).length;
    expect(jsonLines(out)).toEqual([
      {
        verdict: 'sound',
        remedies: null,
        logs: [
          {
            file: 'log.1',
            txns: listing.files['log.1'].entries.length,
            firstZxid: '0x1',
            lastZxid: '0x22',
            endOffset: 3670,
            end: 'preallocated space',
            verdict: 'whole',
            damage: [],
            notes: [],
          },
        ],
        digests: { from: 'snapshot.0', compared: withDigest, firstMismatch: null },
      },
    ]);
  });
});

describe('txnlog dump', () => {
  const recorded = join(fixtures, 'disk-3.9.5');

  it('prints time, session, cxid, zxid and type in the order of zkTxnLogToolkit.sh', async () => {
    const { out } = await tool('txnlog', 'dump', '--from', '0xc', '--to', '13', recorded);
    expect(out).toBe(
      '2026-11-20T09:17:27.432Z session 0x100000cebc40000 cxid 0xb zxid 0xc createContainer /app/container 0 bytes, acl world:anyone:cdrwa, parent cversion 8\n' +
        '2026-11-20T09:17:27.435Z session 0x100000cebc40000 cxid 0xc zxid 0xd createTTL /app/ttl 1 byte, acl world:anyone:cdrwa, ttl 3600000 ms, parent cversion 9\n',
    );
  });

  it('with --data prints data as text or as base64', async () => {
    const { out } = await tool('txnlog', 'dump', '--data', '--to', '2', recorded);
    expect(out.split('\n')[1]).toContain('create /app data "hello", acl');
    const json = jsonLines((await tool('txnlog', 'dump', '-o', 'json', '--data', '--to', '2', recorded)).out);
    expect(json[1]).toMatchObject({ path: '/app', dataLength: 5, data: 'hello', encoding: 'utf8' });
  });

  it('with --path or --session prints the txns of one subtree or one session, including those inside a multi', async () => {
    const zxids = (text: string) => jsonLines(text).map(({ zxid }) => zxid);
    expect(zxids((await tool('txnlog', 'dump', '-o', 'json', '--path', '/app/m1/', recorded)).out)).toEqual(['0x19', '0x1b']);
    expect(zxids((await tool('txnlog', 'dump', '-o', 'json', '--path', '/app/m', recorded)).out)).toEqual([]);
    expect(zxids((await tool('txnlog', 'dump', '-o', 'json', '--session', '0x100000cebc40001', recorded)).out)).toEqual([
      '0x20',
      '0x21',
      '0x22',
    ]);
  });

  it('marks a damaged txn, and prints the txns after it', async () => {
    const bytes = logOf([1, 2, 3]);
    bytes[bytes.indexOf('data of 2')]! ^= 1;
    using folder = temporaryFolder({ 'log.1': bytes });
    const { code, out, err } = await tool('txnlog', 'dump', folder.path);
    expect(code).toBe(exitCodes.failed);
    expect(out.split('\n').map((line) => line.replace(/^.*zxid/, line.startsWith('DAMAGED (checksum) ') ? 'DAMAGED' : ''))).toEqual([
      ' 0x1 setData /x 9 bytes, version 1',
      'DAMAGED 0x2 setData /x 9 bytes, version 1',
      ' 0x3 setData /x 9 bytes, version 1',
      '',
    ]);
    expect(err).toContain('2 txns, 1 damaged, 3 shown');
  });

  it('reads only logs that can contain the requested txns', async () => {
    using folder = temporaryFolder({ 'log.1': logOf([1, 2]), 'log.3': logOf([3, 4]), 'log.5': logOf([5]) });
    const { out, err } = await tool('txnlog', 'dump', '-o', 'json', '--from', '3', '--to', '4', folder.path);
    expect(jsonLines(out).map(({ zxid }) => zxid)).toEqual(['0x3', '0x4']);
    expect(err.match(/log\.\d/g)).toEqual(['log.3']);
  });

  it('finds the logs of a data folder in its version-2, and fails with a message when there are none', async () => {
    using folder = temporaryFolder();
    const { code, err } = await tool('txnlog', 'dump', folder.path);
    expect(code).toBe(exitCodes.refused);
    expect(err).toBe(`tskeeper: there is no log.<zxid> in ${folder.path}, nor in a folder version-2 below it\n`);
    expect((await tool('txnlog', 'dump', join(folder.path, 'log.7'))).err).toBe(
      `tskeeper: cannot read ${folder.path}/log.7: there is no such file or folder\n`,
    );
  });

  it('ends without an error when the reader closes the pipe', async () => {
    const terminal = new FakeTerminal();
    terminal.reads = false;
    expect(await run(['txnlog', 'dump', recorded], terminal, [defineTxnlog])).toBe(exitCodes.done);
    expect(terminal.errors).toBe('');
  });
});

interface Verified {
  readonly verdict: string;
  readonly logs: readonly { readonly verdict: string; readonly damage: readonly string[]; readonly notes: readonly string[] }[];
  readonly digests: { readonly from: string | null; readonly compared: number; readonly firstMismatch: string | null } | null;
}

async function verified(files: Readonly<Record<string, Uint8Array>>, ...options: readonly string[]): Promise<Verified & { code: number }> {
  using folder = temporaryFolder(files);
  const { code, out } = await tool('txnlog', 'verify', '-o', 'json', ...options, folder.path);
  return { code, ...(jsonLines(out)[0] as unknown as Verified) };
}

describe('txnlog verify', () => {
  it('prints a remedy for damage by the role of the server, and none without damage', async () => {
    using folder = temporaryFolder({ 'log.1': logOf([1, 4]) });
    const { out } = await tool('txnlog', 'verify', folder.path);
    expect(out).toMatch(
      /\ndamaged\n {2}a server of an ensemble with another voter: stop it, move its version-2 folders .* aside, keep myid, and start it again: it fetches everything from its leader/,
    );
    expect(out).toMatch(
      /\n {2}a server that stands alone, or is the only voter of its ensemble: do not move its data aside, because no other server is guaranteed to have it; restore the file from a backup\. .*\n$/,
    );
    using sound = temporaryFolder({ 'log.1': logOf([1, 2]) });
    expect((await tool('txnlog', 'verify', sound.path)).out).toMatch(/\nsound\n$/);
  });

  it('reports txns that are missing between logs and within one', async () => {
    const between = await verified({ 'log.1': logOf([1, 2]), 'log.5': logOf([5, 6]) });
    expect([between.code, between.verdict]).toEqual([exitCodes.failed, 'damaged']);
    expect(between.logs[1]!.damage).toEqual(['txns are missing: 0x5 at offset 16 follows 0x2, the last of log.1']);
    const within = await verified({ 'log.1': logOf([1, 4]) });
    expect(within.logs[0]!.damage).toEqual([expect.stringMatching(/^txns are missing: 0x4 at offset \d+ follows 0x1$/)]);
  });

  it('accepts a new epoch, and a repeated zxid', async () => {
    const result = await verified({ 'log.1': logOf([1, 2, 2]), 'log.100000001': logOf([makeZxid(1, 1), makeZxid(1, 2)]) });
    expect([result.code, result.verdict]).toEqual([exitCodes.done, 'sound']);
    expect(result.logs[0]!.notes).toEqual([expect.stringMatching(/^0x2 at offset \d+ follows 0x2$/)]);
    const skipped = await verified({ 'log.1': logOf([1, makeZxid(1, 2)]) });
    expect(skipped.verdict).toBe('damaged');
  });

  it('distinguishes a tail that was never acknowledged from damage by the exit code', async () => {
    const cut = setDataEntry(3).subarray(0, 40);
    const torn = await verified({ 'log.1': Buffer.concat([logOf([1, 2], 0), cut]) });
    expect([torn.code, torn.verdict, torn.logs[0]!.verdict]).toEqual([exitCodes.tornTail, 'torn tail', 'unwritten']);
    // A crash of ZooKeeper leaves an older log cut off where the next one continues; it stays like
    // that.
    const older = await verified({ 'log.1': Buffer.concat([logOf([1, 2], 0), cut]), 'log.3': logOf([3]) });
    expect([older.code, older.verdict]).toEqual([exitCodes.done, 'sound']);
    const empty = await verified({ 'log.1': logOf([1]), 'log.2': Buffer.alloc(0) });
    expect([empty.code, empty.logs[1]!.verdict]).toEqual([exitCodes.tornTail, 'nothing']);
    const emptyBefore = await verified({ 'log.1': Buffer.alloc(0), 'log.2': logOf([2]) });
    expect(emptyBefore.code).toBe(exitCodes.failed);
  });

  it('counts the txns after the damage, and does not report them missing from the next log', async () => {
    const bytes = logOf([1, 2, 3, 4]);
    bytes[bytes.indexOf('data of 2')]! ^= 1;
    const { code, logs } = await verified({ 'log.1': bytes, 'log.5': logOf([5]) });
    expect(code).toBe(exitCodes.failed);
    expect(logs.map(({ damage }) => damage)).toEqual([
      [expect.stringMatching(/^at offset \d+, after 0x1: a checksum that does not match its txn; 2 whole txns up to 0x4 after it$/)],
      [],
    ]);
  });

  it('reports a broken end as damage when the mark of a tskeeper server says that it was safe, and as a torn tail otherwise', async () => {
    using folder = temporaryFolder();
    await writeMarkedLog(folder.path, [1, 2, 3]);
    const path = join(folder.path, 'version-2', 'log.1');
    const whole = readFileSync(path);
    const verify = async (bytes: Uint8Array) => {
      writeFileSync(path, bytes);
      const { code, out } = await tool('txnlog', 'verify', '-o', 'json', folder.path);
      return { code, ...(jsonLines(out)[0] as unknown as Verified).logs[0]! };
    };
    expect(await verify(whole)).toMatchObject({ code: exitCodes.done, verdict: 'whole' });
    const rotten = Buffer.from(whole);
    rotten[whole.indexOf('data of 3')]! ^= 1;
    const lost = await verify(rotten);
    expect(lost).toMatchObject({ code: exitCodes.failed, verdict: 'lost' });
    expect(lost.damage[0]).toMatch(/although txns up to 0x3 at offset \d+ were safe on disk$/);
    // An entry that the disk wrote to the place of another one is readable, and damage all the
    // same.
    const misplaced = Buffer.from(whole);
    const { length } = setDataEntry(1);
    whole.copy(misplaced, 16 + 2 * length, 16, 16 + length);
    expect((await verify(misplaced)).damage).toContainEqual(
      expect.stringMatching(/^at offset \d+, after 0x2: txn 0x1 is in the place of a later one, although txns up to 0x3/),
    );
    const behindMark = Buffer.concat([whole, setDataEntry(4)]);
    behindMark[behindMark.indexOf('data of 4')]! ^= 1;
    expect(await verify(behindMark)).toMatchObject({ code: exitCodes.tornTail, verdict: 'torn' });
    // Without the mark the cases are indistinguishable, and a server refuses to start.
    unlinkSync(join(folder.path, 'version-2', 'synced.1'));
    expect(await verify(behindMark)).toMatchObject({ code: exitCodes.failed, verdict: 'damaged' });
  });

  it('names the txn from which on the tree differs', async () => {
    const log = readFileSync(join(fixtures, 'disk-3.9.5/log.1'));
    // The digest is the last field of a txn.
    const changed = withTxnChanged(log, 4, (txn) => txn.writeInt8(txn.readInt8(txn.length - 1) ^ 1, txn.length - 1));
    const { code, verdict, digests } = await verified({ 'log.1': changed });
    expect([code, verdict]).toEqual([exitCodes.failed, 'damaged']);
    expect(digests).toMatchObject({ from: 'the empty tree', firstMismatch: '0x5' });
  });

  it('names a txn that cannot be decoded although its checksum is right', async () => {
    const log = withTxnChanged(logOf([1, 2]), 1, (txn) => txn.writeInt32BE(77, 28));
    const { code, logs } = await verified({ 'log.1': log });
    expect(code).toBe(exitCodes.failed);
    expect(logs[0]!.damage).toEqual([
      expect.stringMatching(/^cannot read the txn 0x2 at offset \d+ \(expected a txn of a known type, not 77/),
    ]);
    using folder = temporaryFolder({ 'log.1': log });
    const dumped = await tool('txnlog', 'dump', folder.path);
    expect(dumped.code).toBe(exitCodes.failed);
    expect(dumped.out).toContain('DAMAGED (expected a txn of a known type, not 77');
  });

  it('starts from an empty tree when the logs start there, and compares nothing when no snapshot leads to the logs', async () => {
    const log = readFileSync(join(fixtures, 'disk-3.9.5/log.1'));
    const fresh = await verified({ 'log.1': log });
    expect(fresh.digests).toEqual({ from: 'the empty tree', compared: 27, firstMismatch: null });
    const late = await verified({ 'log.5': logOf([5, 6]), 'snapshot.2': readFileSync(join(fixtures, 'disk-3.9.5/snapshot.0')) });
    expect([late.verdict, late.digests]).toEqual(['sound', { from: null, compared: 0, firstMismatch: null }]);
    expect((await verified({ 'log.1': log }, '--no-digests')).digests).toBe(null);
  });

  it('replays the logs of a fresh ensemble, which begin with an epoch, from the empty snapshot beside them', async () => {
    using folder = temporaryFolder();
    await using ensemble = await TestEnsemble.start({ storage: { dataDir: folder.path } });
    {
      await using client = await connect(ensemble.connectString);
      await client.create('/x', 'one');
    }
    // A quorum has the txns; the third server may not have a log yet.
    await ensemble.synced();
    await ensemble.close();
    for (const server of ['server-1', 'server-2', 'server-3']) {
      const { code, out } = await tool('txnlog', 'verify', '-o', 'json', join(folder.path, server));
      const { verdict, digests } = jsonLines(out)[0] as unknown as Verified;
      expect([server, code, verdict]).toEqual([server, exitCodes.done, 'sound']);
      expect(digests).toMatchObject({ from: 'snapshot.0', firstMismatch: null });
      expect(digests!.compared).toBeGreaterThan(0);
    }
  });

  it('starts a replay across epochs from the newest snapshot before the logs, and only if no log is omitted', async () => {
    const snapshot = readFileSync(join(fixtures, 'disk-3.9.5/snapshot.0'));
    const epoch = makeZxid(1, 1);
    const later = { 'snapshot.0': snapshot, 'snapshot.5': snapshot, 'log.100000001': logOf([epoch]) };
    expect((await verified(later)).digests).toMatchObject({ from: 'snapshot.5' });
    using folder = temporaryFolder({ ...later, 'log.1': logOf([1, 2]) });
    const { out } = await tool('txnlog', 'verify', '-o', 'json', join(folder.path, 'log.100000001'));
    expect((jsonLines(out)[0] as unknown as Verified).digests).toMatchObject({ from: null });
  });

  it('accepts a data folder with a snapshot and no log, as a server leaves it that has logged no txn', async () => {
    const snapshot = readFileSync(join(fixtures, 'disk-3.9.5/snapshot.0'));
    expect(await verified({ 'snapshot.0': snapshot })).toEqual({ code: exitCodes.done, verdict: 'sound', logs: [], digests: null });
    using folder = temporaryFolder({ 'snapshot.0': snapshot });
    expect((await tool('txnlog', 'verify', folder.path)).out).toBe(
      'no log: a server that has logged nothing since snapshot.0 has none\ndigests: not compared\nsound\n',
    );
    // The mark of a missing log shows that the log existed.
    writeFileSync(join(folder.path, 'synced.1'), '');
    const lost = await tool('txnlog', 'verify', folder.path);
    expect([lost.code, lost.err]).toEqual([
      exitCodes.refused,
      `tskeeper: there is no log.<zxid> in ${folder.path}, but synced.1 there is the mark of one: the log has been removed\n`,
    ]);
  });

  it('reports a missing newest log when its mark exists and no snapshot has its txns, as a starting server does', async () => {
    using folder = temporaryFolder();
    for (let life = 0; life < 2; life++) {
      await using server = await TestServer.start({ storage: { dataDir: folder.path } });
      await using client = await connect(server.connectString);
      await client.create(`/life-${life}`, 'one');
    }
    const files = join(folder.path, 'version-2');
    const newest = readdirSync(files)
      .filter((name) => name.startsWith('log.'))
      .toSorted((a, b) => Number.parseInt(a.slice(4), 16) - Number.parseInt(b.slice(4), 16))
      .at(-1)!;
    rmSync(join(files, newest));
    const { code, out } = await tool('txnlog', 'verify', folder.path);
    expect(code).toBe(exitCodes.failed);
    expect(out).toMatch(
      new RegExp(`DAMAGE: txns are missing after it: ${newest} is gone, and ${newest.replace('log', 'synced')} says that`),
    );
    expect(await isRefused(files)).toBe(true);
  });

  it('A72: reaches the same result as a server that starts from the same folder, for every flipped bit', async () => {
    const log = readFileSync(join(fixtures, 'disk-3.9.5/log.1')).subarray(0, 3800);
    const snapshot = readFileSync(join(fixtures, 'disk-3.9.5/snapshot.0'));
    const seen = new Set<string>();
    for (let at = 0; at < log.length; at += 67) {
      const bytes = Buffer.from(log);
      bytes[at]! ^= 1 << (at % 8);
      using folder = temporaryFolder({ 'log.1': bytes, 'snapshot.0': snapshot });
      const { code } = await tool('txnlog', 'verify', '--no-digests', folder.path);
      const refused = await isRefused(folder.path);
      seen.add(`${code} ${refused}`);
      expect([at, code === exitCodes.failed]).toEqual([at, refused]);
    }
    expect([...seen].toSorted()).toEqual([`${exitCodes.done} false`, `${exitCodes.failed} true`, `${exitCodes.tornTail} false`].toSorted());
  });
});

/** Whether a tskeeper server refuses to start from a folder. */
async function isRefused(folder: string): Promise<boolean> {
  const options = replicaOptions({ ...coreDefaults, extendedTypesEnabled: true }, new SeededRandom(1));
  let replica = new Replica(options);
  const target = {
    beginSnapshot(zxid: number): SnapshotSink {
      const loader = new SnapshotLoader(options);
      return {
        feed: (piece) => loader.feed(piece),
        finish: () => {
          replica = new Replica(options, { snapshot: loader.finish(), zxid });
        },
      };
    },
    apply: (...txn: Parameters<Replica['apply']>) => {
      replica.apply(...txn)?.next();
    },
  };
  const recovery = new Recovery(new FsDisk(), new SystemClock(), silentLogger, {
    canRefetch: false,
    snapshotFolder: folder,
    logFolder: folder,
    snapshotTrustEmpty: false,
    dbAutocreate: true,
    initializeMarked: false,
    snappy,
    txnBytesMax: 2 * 0xfffff,
  });
  try {
    await recovery.run(target);
    return false;
  } catch (error) {
    if (error instanceof StorageRefused) return true;
    throw error;
  }
}
