/**
 * Leader election:
 *
 *   main.js <connect string> <path> <name>     is a candidate until it is ended, and prints when it leads
 *   main.js <connect string> <path>            observes, and prints each new leader
 */
import { connect } from '@tskeeper/client';
import { Election } from '@tskeeper/recipes';

const [hosts, path, name] = process.argv.slice(2);
if (hosts === undefined || path === undefined) {
  console.error('usage: main.js <connect string> <path> [name]');
  process.exit(2);
}

const ended = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.abort());

await using zk = await connect(hosts, { sessionTimeoutMs: 3000 });
const election = new Election(zk, path, { data: name });
try {
  if (name === undefined) await lookOn();
  else await stand();
} catch (error) {
  if (!ended.signal.aborted) throw error;
}

async function stand(): Promise<void> {
  while (!ended.signal.aborted) {
    await election.run(
      async (leadership) => {
        console.log(`${name} leads`);
        await leadership.acknowledge();
        await first([leadership.signal, ended.signal]);
        console.log(`${name} ${ended.signal.aborted ? 'resigns' : 'has lost the lead'}`);
      },
      { signal: ended.signal },
    );
  }
}

async function lookOn(): Promise<void> {
  for await (const leader of election.observe({ signal: ended.signal })) {
    // A new leader may need time for its first steps: it acknowledges when it is ready.
    if (leader?.acknowledged !== false)
      console.log(`leader: ${leader === undefined ? 'none' : new TextDecoder().decode(leader.data ?? undefined)}`);
  }
}

/** Resolves when one of them is aborted. */
function first(signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  return new Promise((resolve) => (any.aborted ? resolve() : any.addEventListener('abort', () => resolve(), { once: true })));
}
