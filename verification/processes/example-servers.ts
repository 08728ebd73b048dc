/**
 * The servers of the examples of recipes, for the duration of a `describe`: this server, three of
 * them, and Apache ZooKeeper.
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { afterAll, beforeAll } from 'vitest';
import { ensureForeignPrograms } from '../../scripts/foreign-programs.js';
import { Program } from './program.ts';
import { inFolder, start, startEnsemble } from './servers.ts';

const java = (await ensureForeignPrograms(['zookeeper-3.9.5']))['zookeeper-3.9.5'];
export const kinds = ['ours', 'three of ours', ...(java.installed ? (['java-3.9.5'] as const) : [])] as const;
/**
 * The longest time in ms of a timer, of which a random part is unlikely to be short. For programs
 * that work until they are killed.
 */
export const forEver = '2147483647';
/**
 * Time limit of a test. Many times what a test takes, most of which is waiting for the end of a
 * session.
 */
export const timeout = 120_000;
type Kind = (typeof kinds)[number];

/** Connect string, and the function that ends the servers. */
async function serve(kind: Kind, folder: string): Promise<{ hosts: string; end: () => Promise<unknown> }> {
  if (kind !== 'three of ours') {
    const server = await start(folder, kind, {}, { tickTime: 500 });
    return { hosts: server.connectString, end: () => server.stop() };
  }
  const ensemble = await startEnsemble(folder, { voters: 3 });
  return { hosts: ensemble.connectString, end: () => ensemble[Symbol.asyncDispose]() };
}

/**
 * Servers of one kind, started before the tests of the `describe` that creates this, and ended
 * after them.
 */
export class ExampleServers {
  #hosts!: string;
  readonly #programs: Program[] = [];
  /** A client of these servers. */
  zk!: Client;

  constructor(kind: Kind) {
    let finish!: () => void;
    let served: Promise<void>;
    beforeAll(async () => {
      await new Promise<void>((started, failed) => {
        served = inFolder(async (folder) => {
          const ending = new Promise<void>((resolve) => (finish = resolve));
          const { hosts, end } = await serve(kind, folder);
          this.#hosts = hosts;
          this.zk = await connect(hosts);
          started();
          await ending;
          await this.zk.close();
          await end();
        });
        served.catch(failed);
      });
    });
    afterAll(async () => {
      // Programs that a failed test has left running.
      for (const each of this.#programs) each.kill('SIGKILL');
      finish();
      await served;
    });
  }

  /** Starts an example. */
  run(example: string, ...args: string[]): Program {
    const program = new Program(example, [this.#hosts, ...args]);
    this.#programs.push(program);
    return program;
  }
}

/** The data of a znode, at least as new as what any process has printed. */
export async function textAt(zk: Client, path: string): Promise<string> {
  return new TextDecoder().decode((await zk.getData(path, { linearizable: true })).data ?? undefined);
}

/**
 * The sorted names below a znode, at least as new as what any process has printed. Empty below a
 * deleted container.
 */
export async function namesBelow(zk: Client, path: string): Promise<string[]> {
  try {
    return (await zk.getChildren(path, { linearizable: true })).children.toSorted();
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}

/** Resolves when the znode does not exist. */
export async function gone(zk: Client, path: string): Promise<void> {
  for await (const event of zk.watch(path)) {
    if (event.type === 'NodeDeleted' || (await zk.exists(path)) === null) return;
  }
}

/** Resolves when the znode has children. */
export async function filled(zk: Client, path: string): Promise<void> {
  for await (const _ of zk.watch(path)) if ((await namesBelow(zk, path)).length > 0) return;
}

/**
 * Resolves when the znode has no children: the znodes of a killed process are deleted with its
 * session.
 */
export async function emptied(zk: Client, path: string): Promise<void> {
  for await (const _ of zk.watch(path)) if ((await namesBelow(zk, path)).length === 0) return;
}
