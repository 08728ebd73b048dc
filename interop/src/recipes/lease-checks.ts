/** Leases that ours and kazoo's NonBlockingLease and MultiNonBlockingLease compete for. */
import assert from 'node:assert/strict';

import { type Check, childrenOf, until } from './ground.ts';
import type { Handle } from './peer.ts';

const pairs = [
  ['ours', 'kazoo'],
  ['kazoo', 'ours'],
] as const;

/** Longer than any check. */
const longMs = '600000';
const shortMs = 3000;
/** kazoo rounds down to whole seconds. */
const cutOffMs = 1000;

async function answer(handle: Handle, durationMs: string): Promise<string> {
  return await handle.tell('try_acquire', durationMs);
}

const untilTheEnd: Check = {
  name: "kazoo's NonBlockingLease: the holder keeps all others out until its end, and then another acquires it",
  hasRoot: true,
  async run({ peers, root, zk }) {
    for (const [first, second] of pairs) {
      const path = `${root}/${first}`;
      await zk.create(path);
      const [one, two] = [await peers[first].open('lease', path, 'one'), await peers[second].open('lease', path, 'two')];
      assert.equal(await answer(one, longMs), 'yes');
      assert.equal(await answer(two, longMs), 'no');
      // The same holder acquires it again, until a time that comes soon, by the clock that both
      // use.
      const beganMs = Date.now();
      assert.equal(await answer(one, String(shortMs)), 'yes');
      // Ours waits in the queue, kazoo's has to retry.
      if (second === 'ours') await two.tell('acquire', longMs);
      else await until('it has ended', async () => (await answer(two, longMs)) === 'yes');
      const tookMs = Date.now() - beganMs;
      assert(tookMs >= shortMs - (first === 'kazoo' ? cutOffMs : 0), `it ended after ${tookMs} ms`);
      assert.equal(await answer(one, longMs), 'no');
    }
  },
};

const sameHolder: Check = {
  name: "kazoo's NonBlockingLease: the same holder acquires it again with either client, and a client that has lost it learns of that",
  hasRoot: true,
  async run({ peers, root }) {
    const [ours, theirs] = [await peers.ours.open('lease', root, 'host7'), await peers.kazoo.open('lease', root, 'host7')];
    const stranger = await peers.kazoo.open('lease', root, 'host8');
    assert.equal(await answer(theirs, longMs), 'yes');
    assert.equal(await answer(ours, longMs), 'yes');
    assert.equal(await answer(theirs, longMs), 'yes');
    assert.equal(await answer(stranger, longMs), 'no');
    await assert.rejects(ours.tell('renew'), /another process has taken/);
    assert.equal(await ours.tell('state'), 'lost');
    assert.equal(await answer(ours, longMs), 'yes');
    await ours.tell('renew');
    await ours.tell('release');
    assert.equal(await answer(stranger, longMs), 'yes');
    assert.equal(await answer(ours, longMs), 'no');
  },
};

const killed: Check = {
  name: "kazoo's NonBlockingLease: it outlives the process that has it, which acquires it again with the other client",
  async run(ground) {
    for (const [first, second] of pairs) {
      const path = `${ground.root}-${first}`;
      await ground.zk.create(path);
      const mortal = await ground.another(first);
      assert.equal(await answer(await mortal.open('lease', path, 'host7'), longMs), 'yes');
      const lock = `${path}-lock`;
      await (first === 'ours' ? await mortal.open('lock', lock, '__lock__') : await mortal.open('lock', lock)).tell('acquire');
      await ground.kill(mortal);
      await until('its session has ended', async () => (await childrenOf(ground.zk, lock)).length === 0);
      const stranger = await ground.peers[second].open('lease', path, 'host8');
      assert.equal(await answer(stranger, longMs), 'no');
      assert.equal(await answer(await ground.peers[second].open('lease', path, 'host7'), longMs), 'yes');
      assert.equal(await answer(stranger, longMs), 'no');
    }
  },
};

const together: Check = {
  name: "kazoo's NonBlockingLease: of two concurrent requests one succeeds",
  hasRoot: true,
  async run({ peers, root, zk }) {
    for (let round = 0; round < 15; round++) {
      const path = `${root}/${round}`;
      await zk.create(path);
      const handles = [
        await peers.ours.open('lease', path, 'one'),
        await peers.kazoo.open('lease', path, 'two'),
        await peers.ours.open('lease', path, 'three'),
      ];
      const answers = await Promise.all(handles.map((each) => answer(each, longMs)));
      assert.deepEqual(answers.toSorted(), ['no', 'no', 'yes'], `round ${round}`);
    }
  },
};

const several: Check = {
  name: "kazoo's MultiNonBlockingLease: as many clients have one as there are leases, and one more when one of ours is released",
  hasRoot: true,
  async run({ peers, root, zk }) {
    for (const each of ['0', '1', '2']) await zk.create(`${root}/${each}`);
    const open = (kind: 'ours' | 'kazoo', who: string) => peers[kind].open('multi-lease', root, who, '3');
    const [anna, bert, cleo] = [await open('ours', 'anna'), await open('kazoo', 'bert'), await open('ours', 'cleo')];
    const late = [await open('kazoo', 'dora'), await open('ours', 'emil')] as const;
    for (const each of [anna, bert, cleo]) assert.equal(await answer(each, longMs), 'yes');
    for (const each of late) assert.equal(await answer(each, longMs), 'no');
    await anna.tell('release');
    assert.equal(await answer(late[0], longMs), 'yes');
    assert.equal(await answer(late[1], longMs), 'no');
    for (const each of ['0', '1', '2']) assert((await childrenOf(zk, `${root}/${each}`)).includes('lease_holder'));
  },
};

export const leaseChecks: readonly Check[] = [untilTheEnd, sameHolder, killed, together, several];
