/**
 * The peer of our own client; see peer.ts. `own-peer.js <connect string> <session time-out in ms>`. What a handle is told is done in order, as by the others.
 */
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { type Client, connect } from '@tskeeper/client';
import { Election, type Held, type Leadership, Lock, type LockSide, SharedLock } from '@tskeeper/recipes';

/** Above any delay of a busy machine. Nothing waits this long unless something is wrong. */
const patience = { timeoutMs: 20_000 };

type Verbs = Readonly<Record<string, (...args: string[]) => Promise<string>>>;

const [hosts, sessionTimeoutMs] = process.argv.slice(2);
if (hosts === undefined) throw new Error('usage: own-peer.js <connect string> <session time-out in ms>');
const zk: Client = await connect(hosts, { sessionTimeoutMs: Number(sessionTimeoutMs) });

const kinds: Readonly<Record<string, (...args: string[]) => Verbs>> = {
  lock: (path, name) => exclusiveVerbs(new Lock(zk, path!, { name })),
  'read-lock': (path, read, write) => lockVerbs(new SharedLock(zk, path!, { names: { read: read!, write: write! } }).reading),
  'write-lock': (path, read, write) => lockVerbs(new SharedLock(zk, path!, { names: { read: read!, write: write! } }).writing),
  election: (path, name, id) => electionVerbs(new Election(zk, path!, { name, data: id })),
};

function lockVerbs(lock: LockSide): Verbs {
  let held: Held | undefined;
  return {
    async acquire() {
      held = await lock.acquire(patience);
      return held.path;
    },
    async try_acquire() {
      held = await lock.tryAcquire(patience);
      return held === undefined ? 'no' : 'yes';
    },
    async release() {
      await held?.release();
      return '';
    },
    async state() {
      return held?.state ?? 'none';
    },
    /** A counter that is read and written without its version, by whoever has the lock; nobody else may be inside. */
    async count_up(path, rounds) {
      for (let round = 0; round < Number(rounds); round++) {
        await lock.run(async () => {
          await zk.create(`${path}/inside`, null, { mode: 'ephemeral' });
          const { data } = await zk.getData(path!);
          await zk.setData(path!, String(Number(textOf(data)) + 1));
          await zk.delete(`${path}/inside`);
        }, patience);
      }
      return rounds!;
    },
  };
}

function exclusiveVerbs(lock: Lock): Verbs {
  return {
    ...lockVerbs(lock),
    /** Asks whoever has it to give it back. */
    async revoke(deleteAfterMs) {
      const [holder] = await lock.contenders(patience);
      await lock.revoke(holder!, { ...patience, deleteAfterMs: Number(deleteAfterMs) });
      return '';
    },
  };
}

function electionVerbs(election: Election): Verbs {
  let leadership: Leadership | undefined;
  return {
    async lead() {
      leadership = await election.lead(patience);
      await leadership.acknowledge();
      return '';
    },
    async resign() {
      await leadership?.resign();
      return '';
    },
    async leader() {
      return textOf((await election.leader(patience))?.data ?? null);
    },
    async contenders() {
      const all = await election.candidates(patience);
      return (await Promise.all(all.map(async ({ path }) => textOf((await zk.getData(path)).data)))).join(',');
    },
  };
}

function textOf(data: Uint8Array | null): string {
  return new TextDecoder().decode(data ?? undefined);
}

function answer(number: string, kind: 'ok' | 'error', text: string): void {
  process.stdout.write(`${number}\t${kind}\t${text.replaceAll(/[\n\t]/g, ' ')}\n`);
}

interface HandleState {
  verbs: Verbs;
  last: Promise<void>;
}
const handles = new Map<string, HandleState>();

async function obey(handle: HandleState, number: string, verb: string, args: string[]): Promise<void> {
  try {
    if (verb === 'open') {
      const [kind, ...rest] = args;
      const open = kinds[kind!];
      assert(open !== undefined, `no recipe is called ${kind}`);
      handle.verbs = open(...rest);
      answer(number, 'ok', '');
    } else {
      const call = handle.verbs[verb];
      assert(call !== undefined, `no verb is called ${verb}`);
      answer(number, 'ok', await call(...args));
    }
  } catch (error) {
    answer(number, 'error', String(error));
  }
}

answer('0', 'ok', zk.sessionId.toString(16));
for await (const line of createInterface({ input: process.stdin })) {
  const [number, name, verb, ...args] = line.split('\t');
  const handle = handles.get(name!) ?? { verbs: {}, last: Promise.resolve() };
  handles.set(name!, handle);
  handle.last = handle.last.then(() => obey(handle, number!, verb!, args));
}
await zk.close();
