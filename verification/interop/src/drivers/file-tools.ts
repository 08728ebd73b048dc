/**
 * Compares our file tools with those of ZooKeeper (zkTxnLogToolkit.sh, zkSnapShotToolkit.sh): ours
 * must show every txn and every znode that theirs show.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';

import { repositoryFolder } from '../../../../scripts/foreign-programs.js';
import type { ServerProcess } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { ownCliPath, runProgram } from './zkcli.ts';

const fixtures = path.join(repositoryFolder, 'fixtures');

/** `session cxid zxid type` of each txn. */
function javaTxns(text: string): string[] {
  return [...text.matchAll(/session (0x\w+) cxid (0x\w+) zxid (0x\w+) (\w+)/g)].map((match) => match.slice(1, 5).join(' '));
}

interface TxnLine {
  readonly session: string;
  readonly cxid: number;
  readonly zxid: string;
  readonly type: string;
}

interface ZnodeLine {
  readonly kind: string;
  readonly path: string;
  readonly czxid: string;
  readonly mzxid: string;
  readonly pzxid: string;
  readonly cversion: number;
  readonly version: number;
  readonly aversion: number;
  readonly ephemeralOwner: string;
  readonly data: string | null;
  readonly encoding?: 'utf8' | 'base64';
}

function ownLines<T>(text: string): T[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

/** One line per znode, sorted, from a dump of ZooKeeper's. */
function javaZnodes(text: string): string[] {
  const found: string[] = [];
  for (const block of text.split(/^----\n/m)) {
    if (!block.startsWith('/')) continue;
    const [name = '', ...lines] = block.split('\n');
    const fields = new Map(lines.map((line) => line.trim().split(' = ', 2) as [string, string]));
    const zxid = (field: string) => BigInt(fields.get(field) ?? '0');
    found.push(
      [
        name,
        ...['cZxid', 'mZxid', 'pZxid'].map(zxid),
        ...['cversion', 'dataVersion', 'aclVersion'].map((field) => fields.get(field)),
        zxid('ephemeralOwner'),
        fields.get('data') ?? '',
      ].join(' '),
    );
  }
  return found.toSorted();
}

function ownZnodes(text: string): string[] {
  return ownLines<ZnodeLine>(text)
    .filter(({ kind }) => kind === 'znode')
    .map((znode) =>
      [
        znode.path,
        ...[znode.czxid, znode.mzxid, znode.pzxid].map(BigInt),
        znode.cversion,
        znode.version,
        znode.aversion,
        BigInt(znode.ephemeralOwner),
        Buffer.from(znode.data ?? '', znode.encoding ?? 'utf8').toString('base64'),
      ].join(' '),
    )
    .toSorted();
}

export async function compareFileTools(classpath: string, server: ServerProcess, report: Report): Promise<void> {
  const java = async (className: string, args: readonly string[]): Promise<string> => {
    const options = ['-Xmx256m', '-Dlog.level=OFF', '-cp', classpath, `org.apache.zookeeper.server.${className}`];
    return (await runProgram('java', [...options, ...args], [], server)).raw;
  };
  const own = async (...args: readonly string[]): Promise<string> =>
    (await runProgram('node', [ownCliPath, '-o', 'json', ...args], [], server)).raw;

  // Sessions that expire in the meantime would add txns.
  await server.stop();
  const data = path.join(server.dataDir, 'version-2');
  const logs = (await readdir(data)).filter((name) => name.startsWith('log.')).map((name) => path.join(data, name));
  for (const file of [path.join(fixtures, 'disk-3.9.5', 'log.1'), path.join(fixtures, 'disk-3.8.0', 'log.1'), ...logs]) {
    const txns = ownLines<TxnLine>(await own('txnlog', 'dump', file)).map(
      ({ session, cxid, zxid, type }) => `${session} 0x${cxid.toString(16)} ${zxid} ${type}`,
    );
    compare(`txns of ${path.relative(repositoryFolder, file)}`, txns, javaTxns(await java('persistence.TxnLogToolkit', [file])), report);
  }
  const snapshots = [
    'disk-3.9.5/snapshot.22',
    'disk-3.8.0/snapshot.22',
    'disk-compressed/snapshot.6.gz',
    'disk-compressed/snapshot.6.snappy',
  ];
  for (const name of snapshots) {
    const file = path.join(fixtures, name);
    const znodes = ownZnodes(await own('snapshot', 'dump', '--data', file));
    compare(`znodes of ${name}`, znodes, javaZnodes(await java('SnapshotFormatter', ['-d', file])), report);
  }
}

function compare(name: string, ours: readonly string[], theirs: readonly string[], report: Report): void {
  const at = Array.from({ length: Math.max(ours.length, theirs.length) }, (_, index) => index).find(
    (index) => ours[index] !== theirs[index],
  );
  if (theirs.length === 0) report.fail(name, "ZooKeeper's tool printed none");
  else if (at === undefined) report.pass(`${name}: ${ours.length}`);
  else report.fail(name, `number ${at} is\n${ours[at]}\n    and in ZooKeeper's output\n${theirs[at]}`);
}
