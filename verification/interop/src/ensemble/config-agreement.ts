/**
 * What servers hold of the configuration of their ensemble: the znode /zookeeper/config, and the
 * file that zoo.cfg names. All servers must hold the same, of whatever kind they are.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { OpCode, type Sid } from '@tskeeper/protocol';
import { type EnsemblePeer, type ProcessEnsemble, RawClient, record, until } from '@tskeeper/harness';

const timeOut = 30_000;
/** A server writes its files after it has applied the txn. */
const filesMs = 20_000;

/** By sid what follows `server.N=`. */
export type Members = ReadonlyMap<Sid, string>;

/** The text of /zookeeper/config at a server. Throws if it does not serve. */
export async function configText(port: number): Promise<string> {
  const client = await RawClient.connectOrThrow(port, timeOut);
  try {
    const { value } = await client.call(OpCode.getData, record.pathAndWatch('/zookeeper/config', false));
    return value.data!.toString();
  } finally {
    await client.close().catch(() => client.abandon());
  }
}

export function membersOf(text: string): Members {
  return new Map([...text.matchAll(/^server\.(\d+)=(.*)$/gm)].map((line) => [Number(line[1]), line[2]!]));
}

export function membersText(members: Members): string {
  return [...members]
    .sort(([a], [b]) => a - b)
    .map(([sid, line]) => `server.${sid}=${line}`)
    .join('\n');
}

export function isVoter(line: string): boolean {
  return line.includes(':participant');
}

/** The name of the file that zoo.cfg names, from `.dynamic` on, and its bytes. */
async function dynamicFile(peer: EnsemblePeer): Promise<string> {
  const config = await readFile(path.join(peer.folder, 'zoo.cfg'), 'utf8');
  const file = /^dynamicConfigFile=(.*)$/m.exec(config)?.[1];
  if (file === undefined) return 'zoo.cfg names no file';
  const bytes = await readFile(path.resolve(peer.folder, file), 'latin1').catch(() => 'which does not exist');
  return `${path.basename(file)}\n${bytes}`;
}

/** Waits until zoo.cfg of each running server names the same file, with the same bytes, as `text` requires. */
export async function untilFilesAgree(ensemble: ProcessEnsemble, text: string): Promise<void> {
  const version = /^version=(.*)$/m.exec(text)?.[1];
  const lines = text.split('\n').filter((line) => !line.startsWith('version='));
  const expected = `zoo.cfg.dynamic.${version}\n${lines.toSorted().join('\n')}`;
  let found: string[] = [];
  await until(
    'all servers have the same dynamic file',
    async () => {
      found = await Promise.all(ensemble.running.map((peer) => dynamicFile(peer)));
      return found.every((each) => each === expected) || undefined;
    },
    filesMs,
    async () => `${expected}\n${ensemble.running.map(({ name }, index) => `${name}: ${found[index]}`).join('\n')}`,
  );
}
