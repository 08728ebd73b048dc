/**
 * Folders changed as a leader changes them: cut after an earlier txn, or replaced by a snapshot. A
 * server that starts from one must hold what the server held at that txn, and nothing later.
 */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { Writer, Zxid } from '@tskeeper/protocol';
import { type AsyncSnapshotSource, type RecoveryTarget, runtimeDefaults, silentLogger, Storage } from '@tskeeper/runtime';
import { FsDisk, snappy, SystemClock, SystemRandom } from '@tskeeper/server/internal';

import { type ServerKind, type ServerProcess, startServer } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { noContainerChecks, superDigestProperty } from '../settings.ts';
import { differencesBetween, dump, type Dump } from './dump.ts';
import { randomRequests, resumeSessions } from './exchange.ts';
import { fixedWorkload, randomWorkload } from './workload.ts';

export interface RewritingScenario {
  /** The kind of server that writes the folder, and starts from it again. */
  readonly kind: ServerKind;
  readonly method: 'truncate' | 'replace by a snapshot';
  /** Small, so that snapshots exist after the txn that is restored; or the default. */
  readonly snapCount: number;
  readonly seed: number;
}

export function rewritingsFor(kind: ServerKind, seed: number): RewritingScenario[] {
  return [
    { kind, method: 'truncate', snapCount: 300, seed },
    { kind, method: 'truncate', snapCount: 100_000, seed: seed + 1 },
    { kind, method: 'replace by a snapshot', snapCount: 300, seed: seed + 2 },
  ];
}

/** Storage needs a recovery target; the servers validate the result. */
const ignoredRecovery: RecoveryTarget = {
  beginSnapshot: () => ({ feed: () => undefined, finish: () => undefined }),
  apply: () => undefined,
};

function sourceOf(bytes: Buffer): AsyncSnapshotSource {
  let at = 0;
  return {
    next: (writer: Writer, bytesTarget: number) => {
      const end = Math.min(bytes.length, at + bytesTarget);
      writer.raw(bytes, at, end);
      at = end;
      return at === bytes.length;
    },
  };
}

async function rewrite(dataDir: string, way: RewritingScenario['method'], zxid: Zxid): Promise<void> {
  const storage = new Storage(
    { disk: new FsDisk(), clock: new SystemClock(), random: new SystemRandom() },
    { ...runtimeDefaults, dataDir, dataLogDir: dataDir, purgeIntervalMs: 0, txnBytesMax: 4 * 1024 * 1024 },
    { logger: silentLogger, snappy },
    {
      appended: () => undefined,
      failed: () => undefined,
      snapshotDue: () => undefined,
      synced: () => undefined,
      flushed: () => undefined,
    },
  );
  const { lastZxid } = await storage.openForEnsemble(ignoredRecovery, { recent: { count: 500, bytes: 1024 * 1024 }, canRefetch: true });
  try {
    if (lastZxid <= zxid) throw new Error(`nothing was written after 0x${zxid.toString(16)}`);
    if (way === 'truncate') {
      await storage.truncate(zxid, ignoredRecovery);
    } else {
      // The server wrote it when it started again: what a leader at this txn would send.
      const bytes = await readFile(path.join(storage.snapshotFolder, `snapshot.${zxid.toString(16)}`));
      await storage.installSnapshot(zxid, sourceOf(bytes));
    }
  } finally {
    await storage.close();
  }
}

export async function runRewriting({ kind, method, snapCount, seed }: RewritingScenario, report: Report): Promise<void> {
  const name = `${kind}, ${method}, snapCount ${snapCount}`;
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-rewriting-'));
  const dataDir = path.join(folder, 'data');
  let server: ServerProcess | undefined;
  let turn = 0;
  const start = async (each: ServerKind): Promise<ServerProcess> => {
    const turnFolder = path.join(folder, `turn-${turn++}`);
    await mkdir(turnFolder);
    server = await startServer({
      kind: each,
      folder: turnFolder,
      dataDir,
      config: { extendedTypesEnabled: true, enforceQuota: true, maxSessionTimeout: 1_200_000, snapCount },
      properties: { ...superDigestProperty, ...noContainerChecks, 'log.level': 'ERROR' },
    });
    return server;
  };
  const compare = async (each: ServerProcess, before: Dump): Promise<string> => {
    const step = `${name}: ${each.kind} starts from it`;
    const after = await dump(each, { treeFirst: false });
    const differences = differencesBetween(before, after);
    if (differences.length > 0) report.fail(step, `\n    ${differences.join('\n    ')}`);
    else if (after.digestMismatches !== '0') report.fail(step, `zk_digest_mismatches_count is ${after.digestMismatches}`);
    else report.pass(`${step} (${before.znodes.size} znodes, ${before.sessions.size} sessions)`);
    return step;
  };
  try {
    const first = await start(kind);
    const sessions = await fixedWorkload(first.port, 'kept');
    await randomWorkload(first.port, seed * 10, randomRequests, { exactDigests: true, readableBy38: kind === 'java-3.8.0' });
    const before = await dump(first, { treeFirst: true });
    await first.stop();
    const second = await start(kind);
    await fixedWorkload(second.port, 'gone');
    await randomWorkload(second.port, seed * 10 + 1, randomRequests, { exactDigests: true, readableBy38: kind === 'java-3.8.0' });
    await second.stop();
    await rewrite(dataDir, method, Number.parseInt(before.zxid, 16));
    const third = await start(kind);
    const step = await compare(third, before);
    await resumeSessions(third.port, sessions, step, report);
    const later = await dump(third, { treeFirst: true });
    await third.stop();
    await compare(await start(kind === 'ours' ? 'java-3.9.5' : 'ours'), later);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    if (server?.alive === true) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
