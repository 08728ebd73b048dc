/** Leases that ours and kazoo's NonBlockingLease and MultiNonBlockingLease compete for. */
import assert from 'node:assert/strict';

import { type Check, childrenOf, until } from './check-context.ts';
import type { Handle } from './recipe-client.ts';

const pairs = [
  ['ours', 'kazoo'],
  ['kazoo', 'ours'],
] as const;

/** Longer than any check. */
const longMs = '600000';
const shortMs = 3000;
/** kazoo rounds down to whole seconds. */
const roundingMs = 1000;

async function tryAcquire(handle: Handle, durationMs: string): Promise<string> {
  return await handle.call('try_acquire', durationMs);
}

const untilTheEnd: Check = {
  name: "kazoo's NonBlockingLease: the holder keeps all others out until its end, and then another acquires it",
  hasRoot: true,
  async run({ clients, root, zk }) {
    for (const [first, second] of pairs) {
      const path = `${root}/${first}`;
      await zk.create(path);
      const [one, two] = [await clients[first].open('lease', path, 'one'), await clients[second].open('lease', path, 'two')];
      assert.equal(await tryAcquire(one, longMs), 'yes');
      assert.equal(await tryAcquire(two, longMs), 'no');
      // The same holder acquires it again, until a time that comes soon, by the clock that both
      // use.
      const beganMs = Date.now();
      assert.equal(await tryAcquire(one, String(shortMs)), 'yes');
      // Ours waits in the queue, kazoo's has to retry.
      if (second === 'ours') await two.call('acquire', longMs);
      else await until('it has ended', async () => (await tryAcquire(two, longMs)) === 'yes');
      const tookMs = Date.now() - beganMs;
      assert(tookMs >= shortMs - (first === 'kazoo' ? roundingMs : 0), `it ended after ${tookMs} ms`);
      assert.equal(await tryAcquire(one, longMs), 'no');
    }
  },
};

const sameHolder: Check = {
  name: "kazoo's NonBlockingLease: the same holder acquires it again with either client, and a client that has lost it learns of that",
  hasRoot: true,
  async run({ clients, root }) {
    const [ours, theirs] = [await clients.ours.open('lease', root, 'host7'), await clients.kazoo.open('lease', root, 'host7')];
    const stranger = await clients.kazoo.open('lease', root, 'host8');
    assert.equal(await tryAcquire(theirs, longMs), 'yes');
    assert.equal(await tryAcquire(ours, longMs), 'yes');
    assert.equal(await tryAcquire(theirs, longMs), 'yes');
    assert.equal(await tryAcquire(stranger, longMs), 'no');
    await assert.rejects(ours.call('renew'), /another process has taken/);
    assert.equal(await ours.call('state'), 'lost');
    assert.equal(await tryAcquire(ours, longMs), 'yes');
    await ours.call('renew');
    await ours.call('release');
    assert.equal(await tryAcquire(stranger, longMs), 'yes');
    assert.equal(await tryAcquire(ours, longMs), 'no');
  },
};

const killed: Check = {
  name: "kazoo's NonBlockingLease: it outlives the process that has it, which acquires it again with the other client",
  async run(context) {
    for (const [first, second] of pairs) {
      const path = `${context.root}-${first}`;
      await context.zk.create(path);
      const mortal = await context.startClient(first);
      assert.equal(await tryAcquire(await mortal.open('lease', path, 'host7'), longMs), 'yes');
      const lock = `${path}-lock`;
      await (first === 'ours' ? await mortal.open('lock', lock, '__lock__') : await mortal.open('lock', lock)).call('acquire');
      await context.killClient(mortal);
      await until('its session has ended', async () => (await childrenOf(context.zk, lock)).length === 0);
      const stranger = await context.clients[second].open('lease', path, 'host8');
      assert.equal(await tryAcquire(stranger, longMs), 'no');
      assert.equal(await tryAcquire(await context.clients[second].open('lease', path, 'host7'), longMs), 'yes');
      assert.equal(await tryAcquire(stranger, longMs), 'no');
    }
  },
};

const together: Check = {
  name: "kazoo's NonBlockingLease: of two concurrent requests one succeeds",
  hasRoot: true,
  async run({ clients, root, zk }) {
    for (let round = 0; round < 15; round++) {
      const path = `${root}/${round}`;
      await zk.create(path);
      const handles = [
        await clients.ours.open('lease', path, 'one'),
        await clients.kazoo.open('lease', path, 'two'),
        await clients.ours.open('lease', path, 'three'),
      ];
      const answers = await Promise.all(handles.map((each) => tryAcquire(each, longMs)));
      assert.deepEqual(answers.toSorted(), ['no', 'no', 'yes'], `round ${round}`);
    }
  },
};

const several: Check = {
  name: "kazoo's MultiNonBlockingLease: as many clients have one as there are leases, and one more when one of ours is released",
  hasRoot: true,
  async run({ clients, root, zk }) {
    for (const each of ['0', '1', '2']) await zk.create(`${root}/${each}`);
    const open = (kind: 'ours' | 'kazoo', who: string) => clients[kind].open('multi-lease', root, who, '3');
    const [anna, bert, cleo] = [await open('ours', 'anna'), await open('kazoo', 'bert'), await open('ours', 'cleo')];
    const late = [await open('kazoo', 'dora'), await open('ours', 'emil')] as const;
    for (const each of [anna, bert, cleo]) assert.equal(await tryAcquire(each, longMs), 'yes');
    for (const each of late) assert.equal(await tryAcquire(each, longMs), 'no');
    await anna.call('release');
    assert.equal(await tryAcquire(late[0], longMs), 'yes');
    assert.equal(await tryAcquire(late[1], longMs), 'no');
    for (const each of ['0', '1', '2']) assert((await childrenOf(zk, `${root}/${each}`)).includes('lease_holder'));
  },
};

export const leaseChecks: readonly Check[] = [untilTheEnd, sameHolder, killed, together, several];
