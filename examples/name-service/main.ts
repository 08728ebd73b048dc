/**
 * A name service: a name is a znode, and its address is the data.
 *
 *   main.js <connect string> bind <name> <address>     fails when the name is taken
 *   main.js <connect string> lookup <name>
 *   main.js <connect string> unbind <name>
 *   main.js <connect string> list
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';

const root = '/names';

/** Returns false when the name is taken: if several clients bind it, one succeeds. */
export async function bind(zk: Client, name: string, address: string): Promise<boolean> {
  await zk.create(root).catch(ignore('NodeExists'));
  const made = await zk.create(`${root}/${name}`, address).catch(ignore('NodeExists'));
  return made !== undefined;
}

/** Returns undefined when the name is not bound. */
export async function lookup(zk: Client, name: string): Promise<string | undefined> {
  const found = await zk.getData(`${root}/${name}`).catch(ignore('NoNode'));
  return found === undefined ? undefined : Buffer.from(found.data ?? []).toString();
}

export async function unbind(zk: Client, name: string): Promise<void> {
  await zk.delete(`${root}/${name}`).catch(ignore('NoNode'));
}

export async function list(zk: Client): Promise<string[]> {
  const found = await zk.getChildren(root).catch(ignore('NoNode'));
  return (found?.children ?? []).toSorted();
}

function ignore(code: 'NodeExists' | 'NoNode'): (error: unknown) => undefined {
  return (error) => {
    if (!KeeperError.is(error, code)) throw error;
  };
}

const [hosts, command, name, address] = process.argv.slice(2);
const isComplete = command === 'list' || (name !== undefined && (command !== 'bind' || address !== undefined));
if (hosts === undefined || !isComplete) usage();
const zk = await connect(hosts);
try {
  switch (command) {
    case 'bind':
      if (!(await bind(zk, name!, address!))) fail(`${name} is taken`);
      break;
    case 'lookup': {
      const found = await lookup(zk, name!);
      if (found === undefined) fail(`no entry with the name ${name}`);
      else console.log(found);
      break;
    }
    case 'unbind':
      await unbind(zk, name!);
      break;
    case 'list':
      for (const one of await list(zk)) console.log(one);
      break;
    default:
      usage();
  }
} finally {
  await zk.close();
}

function fail(sentence: string): void {
  console.error(sentence);
  process.exitCode = 1;
}

function usage(): never {
  console.error('usage: main.js <connect string> bind <name> <address> | lookup <name> | unbind <name> | list');
  process.exit(2);
}
