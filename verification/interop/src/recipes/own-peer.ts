/**
 * The peer of our own client; see recipe-client.ts. `own-peer.js <connect string> <session timeout in ms>`.
 * A handle executes its requests in order, as with the others.
 */
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { connect } from '@tskeeper/client';

import { handleFactories } from './own-verbs.ts';
import type { Verbs } from './verbs.ts';

const [hosts, sessionTimeoutMs] = process.argv.slice(2);
if (hosts === undefined) throw new Error('usage: own-peer.js <connect string> <session timeout in ms>');
const zk = await connect(hosts, { sessionTimeoutMs: Number(sessionTimeoutMs) });
const kinds = handleFactories(zk);

function answer(number: string, kind: 'ok' | 'error', text: string): void {
  process.stdout.write(`${number}\t${kind}\t${text.replaceAll(/[\n\t]/g, ' ')}\n`);
}

interface HandleState {
  verbs: Verbs;
  last: Promise<void>;
}
const handles = new Map<string, HandleState>();

async function execute(handle: HandleState, number: string, verb: string, args: string[]): Promise<void> {
  try {
    if (verb === 'open') {
      const [kind, ...rest] = args;
      const open = kinds[kind!];
      assert(open !== undefined, `unknown recipe ${kind}`);
      handle.verbs = open(...rest);
      answer(number, 'ok', '');
    } else {
      const call = handle.verbs[verb];
      assert(call !== undefined, `unknown verb ${verb}`);
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
  handle.last = handle.last.then(() => execute(handle, number!, verb!, args));
}
await zk.close();
