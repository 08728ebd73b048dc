/**
 * Two-phase commit: several sites make a payment all together, or not at all. Each site records its
 * promises and its payments in its own file, so it can be killed at any moment and started again.
 *
 *   main.js <connect string> <folder> begin <id> <amount> <site> <site> ...
 *   main.js <connect string> <folder> site <name> <file> <most it can pay> [ms before it votes]
 *   main.js <connect string> <folder> abort <id>
 */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as pass } from 'node:timers/promises';
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { TwoPhaseCommit, type Vote } from '@tskeeper/recipes';

/** A line for each promise, and one for its outcome. Each is on disk before others learn of it. */
class Ledger {
  readonly #file: string;
  readonly #promised = new Set<string>();
  readonly #finished = new Set<string>();

  constructor(file: string) {
    this.#file = file;
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    for (const [what, id] of lines.map((line) => line.split(' '))) this.#note(what!, id!);
  }

  #note(what: string, id: string): void {
    if (what === 'promised') this.#promised.add(id);
    if (what === 'commit' || what === 'abort') this.#finished.add(id);
  }

  #write(what: string, id: string, amount: number): void {
    const file = openSync(this.#file, 'a');
    appendFileSync(file, `${what} ${id} ${amount}\n`);
    fsyncSync(file);
    closeSync(file);
    this.#note(what, id);
  }

  promise(id: string, amount: number): void {
    if (!this.#promised.has(id)) this.#write('promised', id, amount);
  }

  /** Records the outcome once, also if called again. */
  finish(id: string, outcome: Vote, amount: number): void {
    if (!this.#finished.has(id)) this.#write(outcome, id, amount);
  }
}

interface Site {
  readonly name: string;
  readonly ledger: Ledger;
  readonly most: number;
  readonly ms: number;
}

async function takePart(transaction: TwoPhaseCommit, id: string, { name, ledger, most, ms }: Site): Promise<void> {
  await using site = await transaction.join(name);
  const amount = Number(new TextDecoder().decode(site.data ?? undefined));
  console.log(`${name} is asked for ${amount} by ${id}`);
  await pass(ms);
  if (amount <= most) ledger.promise(id, amount);
  const vote = await site.vote(amount <= most ? 'commit' : 'abort');
  console.log(`${name} has voted ${vote} on ${id}`);
  const outcome = await site.outcome();
  ledger.finish(id, outcome, amount);
  console.log(`${name} ${outcome} ${id}`);
  await site.acknowledge();
}

/**
 * Takes part in each transaction of the folder that names this site, including those that it had not
 * finished when it was killed.
 */
async function beSite(zk: Client, folder: string, open: (id: string) => TwoPhaseCommit, site: Site, ended: AbortSignal): Promise<void> {
  const known = new Set<string>();
  const join = async (id: string): Promise<void> => {
    try {
      await takePart(open(id), id, site);
    } catch (error) {
      // This site has no part in the transaction, or the transaction is over. Or this process is
      // ending, and will continue when it is started again.
      if (KeeperError.is(error, 'NoNode') || ended.aborted) return;
      console.error(`${site.name}: ${String(error)}`);
      process.exit(1);
    }
  };
  for await (const event of zk.watch(folder)) {
    if (event.type === 'NodeDataChanged') continue;
    try {
      for (const id of (await zk.getChildren(folder)).children) {
        if (known.has(id)) continue;
        known.add(id);
        void join(id);
      }
    } catch (error) {
      // There is no transaction yet; or the connection is lost, and a Reread will follow; or this
      // process is ending.
      if (ended.aborted) return;
      if (!KeeperError.is(error, 'NoNode', 'ConnectionLoss')) throw error;
    }
  }
}

function usage(): never {
  console.error('usage: main.js <connect string> <folder> begin <id> <amount> <site> ... | site <name> <file> <most> [ms] | abort <id>');
  process.exit(2);
}

const [hosts, folder, command, first, second, ...rest] = process.argv.slice(2);
if (hosts === undefined || folder === undefined || first === undefined) usage();
await using zk = await connect(hosts, { sessionTimeoutMs: 3000, retry: true });
const open = (id: string): TwoPhaseCommit => new TwoPhaseCommit(zk, `${folder}/${id}`, { presence: true });

if (command === 'begin' && second !== undefined && rest.length > 0) {
  await open(first).begin(rest, { data: second });
  console.log(`${first} has begun`);
} else if (command === 'site' && second !== undefined && rest[0] !== undefined) {
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      // From here on the client rejects all calls.
      ended.abort();
      void zk.close();
    });
  }
  await beSite(
    zk,
    folder,
    open,
    { name: first, ledger: new Ledger(second), most: Number(rest[0]), ms: Number(rest[1] ?? 0) },
    ended.signal,
  );
} else if (command === 'abort') {
  console.log(`${first} ${await open(first).abort()}`);
} else usage();
