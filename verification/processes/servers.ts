/** The servers of these proofs: real processes with their own folders. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { endpointOf, peersOf, ProcessEnsemble, type ServerKind, type ServerProcess, startServer } from '@tskeeper/harness';
import { superDigest } from '../model/operations.ts';
import type { RunningServer } from './kill.ts';

export type Properties = Readonly<Record<string, string | number | boolean>>;

/** The server to test: ours unless TSKEEPER_SERVER_KIND says otherwise. */
export const kind = (process.env['TSKEEPER_SERVER_KIND'] ?? 'ours') as ServerKind;

/** Settings for these streams, without deletes of containers and with room for many connections. */
const config = { tickTime: 2000, maxClientCnxns: 0, '4lw.commands.whitelist': '*', 'admin.enableServer': false, snapCount: 2000 };
const always: Properties = {
  'zookeeper.DigestAuthenticationProvider.superDigest': superDigest,
  'znode.container.checkIntervalMs': 100_000_000,
};

export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function start(
  folder: string,
  which: ServerKind = kind,
  properties: Properties = {},
  more: Properties = {},
): Promise<ServerProcess> {
  return startServer({ kind: which, folder, config: { ...config, ...more }, properties: { ...always, ...properties } });
}

/** For `runKills`: the same folder every time. */
export async function startToKill(folder: string): Promise<RunningServer> {
  const server = await start(folder);
  return {
    endpoint: endpointOf(server.connectString),
    async kill() {
      if (!server.alive) throw new Error(`the server had ended by itself:\n${(await server.log()).slice(-3000)}`);
      await server.kill();
    },
  };
}

/** An ensemble of our servers, each of which serves. */
export function startEnsemble(
  folder: string,
  {
    voters,
    observers = 0,
    hasDynamicFile = false,
  }: { readonly voters: number; readonly observers?: number; readonly hasDynamicFile?: boolean },
): Promise<ProcessEnsemble> {
  return ProcessEnsemble.start(peersOf('ours', voters, observers), {
    folder: path.join(folder, 'ensemble'),
    config: { tickTime: 500, initLimit: 20, syncLimit: 10 },
    hasDynamicFile,
  });
}

/** What each running server reports: `none` while it does not serve. */
export async function modesOf(ensemble: ProcessEnsemble): Promise<string[]> {
  const modes = await Promise.all(ensemble.running.map((peer) => peer.mode()));
  return modes.map((mode) => mode ?? 'none');
}
