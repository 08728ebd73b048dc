/**
 * Compares the state of all servers: every znode with every field of its stat, the zxid, the recent
 * tree digests; and, txn by txn, the bytes in their logs.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';

import { counterOf, epochOf, formatZxid, OpCode } from '@tskeeper/protocol';
import { numberedFiles, readLog } from '@tskeeper/runtime';
import { FsDisk } from '@tskeeper/server/internal';

import { type Dump, differencesBetween, dumpTree } from '../exchange/dump.ts';
import { type EnsemblePeer, type ProcessEnsemble, RawClient } from '@tskeeper/harness';

const configPath = '/zookeeper/config';

/** Time limit for all servers to apply what the leader has committed. */
const convergeMs = 30_000;

/**
 * Opens a session at a server and closes it: two txns, so that every server has applied something
 * of this epoch.
 */
async function commitTxn(port: number): Promise<void> {
  const client = await RawClient.connectOrThrow(port, 30_000);
  await client.close();
}

/**
 * Waits until all running servers have applied the same, including something of this epoch; returns
 * the zxid.
 */
export async function untilConverged(ensemble: ProcessEnsemble): Promise<string> {
  const leader = await ensemble.leader();
  await commitTxn(leader.port);
  return ensemble.untilConverged(convergeMs);
}

async function dumpOf(member: EnsemblePeer): Promise<Dump> {
  const hash = await member.ask('hash');
  const mntr = await member.ask('mntr');
  const znodes = await dumpTree(member.port);
  // Each server writes it itself, when it begins to lead or to learn.
  const config = znodes.get(configPath);
  if (config !== undefined) znodes.set(configPath, config.replace(/ mtime=\d+/, ''));
  return {
    znodes,
    zxid: 'not compared',
    // `dump` lists different sessions at leaders and learners.
    sessions: new Set(),
    digests: new Map([...hash.matchAll(/^([0-9a-f]+): (.*)$/gm)].map((match) => [match[1]!, match[2]!])),
    digestMismatches: /^zk_digest_mismatches_count\t(.*)$/m.exec(mntr)?.[1] ?? 'not reported',
  };
}

async function dumpWithoutDigests(member: EnsemblePeer): Promise<Dump> {
  return { ...(await dumpOf(member)), digests: new Map(), digestMismatches: '0' };
}

export interface Agreement {
  readonly differences: readonly string[];
  readonly znodes: number;
  readonly zxid: string;
}

/**
 * Compares all running servers with the leader. No other client may be writing. `hasDigest`: whether
 * a server's digests are compared, and not only its znodes.
 */
export async function compareServers(
  ensemble: ProcessEnsemble,
  hasDigest: (member: EnsemblePeer) => boolean = () => true,
): Promise<Agreement> {
  const zxid = await untilConverged(ensemble);
  const leader = await ensemble.leader();
  const members = [leader, ...ensemble.running.filter((member) => member !== leader)];
  const dumps = members.map(async (member) =>
    (hasDigest(member) && hasDigest(leader) ? dumpOf(member) : dumpWithoutDigests(member)).catch(async (error: unknown) => {
      throw new Error(`${member.name} does not report its state: ${String(error)}\n${await ensemble.evidence()}`, { cause: error });
    }),
  );
  const [first, ...others] = await Promise.all(dumps);
  const differences: string[] = [];
  for (const [index, dump] of [first!, ...others].entries()) {
    const { name } = members[index]!;
    if (dump.digestMismatches !== '0') differences.push(`${name}: zk_digest_mismatches_count is ${dump.digestMismatches}`);
    for (const difference of differencesBetween(first!, dump)) differences.push(`from ${leader.name} to ${name}: ${difference}`);
  }
  return { differences, znodes: first!.znodes.size, zxid };
}

export interface LogAgreement {
  readonly differences: readonly string[];
  /** Txns that are in more than one server's log. */
  readonly compared: number;
}

/** The last txn in a server's log; 0 for none. */
export async function lastLogged(member: EnsemblePeer): Promise<number> {
  let last = 0;
  await readTxns(member, (zxid) => (last = zxid));
  return last;
}

/** `onTxn` may keep nothing of the bytes. */
async function readTxns(member: EnsemblePeer, onTxn: (zxid: number, bytes: Buffer, start: number, end: number) => void): Promise<void> {
  const folder = path.join(member.dataDir, 'version-2');
  const disk = new FsDisk();
  const names = await readdir(folder).catch(() => []);
  for (const { name } of numberedFiles(names, 'log')) {
    const file = await disk.open(path.join(folder, name), 'existing');
    try {
      await readLog(file, 8_000_000, (zxid, bytes, start, end) => onTxn(zxid, bytes, start, end));
    } finally {
      await file.close();
    }
  }
}

const txnTypeAt = 28;
const errorType = -1;

/**
 * When ZooKeeper applies a failed multi, it changes the object that is being logged: the types of
 * its parts become those of errors, their records stay. An observer logs a txn and applies it at
 * once, so its log has either form. Here all such parts are errors.
 */
export function normalizeLogged(txn: Buffer): Buffer {
  if (txn.readInt32BE(txnTypeAt) !== OpCode.multi) return txn;
  const types: number[] = [];
  let at = txnTypeAt + 8;
  for (let left = txn.readInt32BE(txnTypeAt + 4); left > 0; left--) {
    types.push(at);
    at += 8 + Math.max(0, txn.readInt32BE(at + 4));
  }
  if (!types.some((type) => txn.readInt32BE(type) === errorType)) return txn;
  const same = Buffer.from(txn);
  for (const type of types) same.writeInt32BE(errorType, type);
  return same;
}

/**
 * Compares the logs of all servers, running or not: a zxid in several logs must be the same txn in
 * each.
 */
export async function compareLogs(ensemble: ProcessEnsemble): Promise<LogAgreement> {
  const known = new Map<number, { readonly name: string; readonly bytes: Buffer }>();
  const shared = new Set<number>();
  const differences: string[] = [];
  for (const member of ensemble.peers) {
    let last = 0;
    await readTxns(member, (zxid, bytes, start, end) => {
      // ZooKeeper logs an undecodable request with the zxid of the txn before it; the first one
      // counts.
      if (zxid === last) return;
      if (zxid < last) differences.push(`in the log of ${member.name} ${formatZxid(zxid)} follows ${formatZxid(last)}`);
      last = zxid;
      const other = known.get(zxid);
      if (other === undefined) {
        known.set(zxid, { name: member.name, bytes: Buffer.from(bytes.subarray(start, end)) });
        return;
      }
      shared.add(zxid);
      const own = Buffer.from(bytes.subarray(start, end));
      if (other.bytes.equals(own) || normalizeLogged(other.bytes).equals(normalizeLogged(own))) return;
      const [ours, theirs] = [own.toString('hex', 0, 200), other.bytes.toString('hex', 0, 200)];
      differences.push(
        `epoch ${epochOf(zxid)}, txn ${counterOf(zxid)} is ${theirs} in the log of ${other.name} and ${ours} in that of ${member.name}`,
      );
    });
  }
  return { differences: differences.slice(0, 20), compared: shared.size };
}
