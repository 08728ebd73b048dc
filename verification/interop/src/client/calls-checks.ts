/**
 * The client's calls of several steps, and its handling of lost replies, with any server of
 * ZooKeeper's protocol.
 */
import assert from 'node:assert/strict';

import { KeeperError } from '@tskeeper/client';

import type { Check } from './checks.ts';

const utf8 = new TextDecoder();
const plusOne = (data: Uint8Array | null): string => String(Number(utf8.decode(data ?? undefined)) + 1);

const fails = (code: string, outcome: string) => (error: unknown) =>
  KeeperError.is(error) && error.code === code && error.outcome === outcome;

export const callsChecks: readonly Check[] = [
  {
    name: 'parents created on the way, and subtrees deleted',
    async run({ open, root }) {
      const [zk, other] = [await open(), await open()];
      const { path } = await zk.create(`${root}/a/b/c/s-`, 'x', { mode: 'ephemeralSequential', parents: true });
      assert.match(path, /\/a\/b\/c\/s-0000000000$/);
      await zk.create(`${root}/k/x`, null, { parents: 'container' });
      await Promise.all([zk, other, zk, other].map((each) => each.ensurePath(`${root}/same/for/all`)));
      const view = zk.chroot(`${root}/view/of/it`);
      await view.create('/x', null, { parents: true });
      const walked: string[] = [];
      for await (const each of zk.walk(root, { data: true })) walked.push(each.path);
      assert.equal(walked.length, 1 + (await zk.getAllChildrenNumber(root)));
      const width = 500;
      await Promise.all(Array.from({ length: width }, (_, index) => zk.create(`${root}/many/${index}/x`, null, { parents: true })));
      const results = await Promise.all([zk, other].map((each) => each.deleteRecursive(`${root}/many`)));
      assert.equal(results[0]!.deleted + results[1]!.deleted, 1 + 2 * width);
      assert.equal(await zk.exists(`${root}/many`), null);
      assert.deepEqual(await zk.deleteRecursive(`${root}/many`), { deleted: 0, unknown: 0 });
    },
  },
  {
    name: 'protected creates whose replies are lost',
    async run({ open, openThroughProxy, proxy, root }) {
      const [zk, other] = [await openThroughProxy(), await open()];
      for (const mode of ['ephemeralSequential', 'persistentSequential', 'ephemeral', 'container'] as const) {
        await other.create(`${root}/${mode}`);
        proxy.dropNextReply();
        const { path, stat } = await zk.create(`${root}/${mode}/x-`, 'x', { mode, protection: true });
        assert.match(path, /\/_c_[0-9a-f-]{36}-x-/);
        assert.equal(stat.ephemeralOwner, mode.startsWith('ephemeral') ? zk.sessionId : 0n);
        const { children, stat: parent } = await other.getChildren(`${root}/${mode}`);
        assert.deepEqual(children, [path.slice(path.lastIndexOf('/') + 1)]);
        assert.equal(parent.cversion, 1);
      }
    },
  },
  {
    name: 'lost replies: reported if the outcome is unknown, retried if that is safe',
    async run({ openThroughProxy, proxy, root }) {
      const zk = await openThroughProxy({ retry: true });
      await zk.create(`${root}/a`, '0');
      proxy.dropNextReply();
      assert.equal((await zk.getData(`${root}/a`)).stat.version, 0);
      proxy.dropNextReply();
      await assert.rejects(zk.setData(`${root}/a`, '1'), fails('ConnectionLoss', 'unknown'));
      assert.equal((await zk.setData(`${root}/a`, '2', { version: 1 })).version, 2);
      proxy.dropNextReply();
      assert.equal((await zk.setData(`${root}/a`, '3', { version: 2, idempotent: true })).version, 3);
      proxy.dropNextReply();
      assert.equal((await zk.create(`${root}/b`, 'x', { idempotent: true, mode: 'ephemeral' })).stat.ephemeralOwner, zk.sessionId);
      proxy.dropNextReply();
      await zk.delete(`${root}/b`, { idempotent: true });
      proxy.dropNextReply();
      await assert.rejects(zk.delete(`${root}/a`, { version: 3, guaranteed: true, retry: false }), fails('ConnectionLoss', 'unknown'));
      assert.equal(await zk.exists(`${root}/a`), null);
    },
  },
  {
    name: 'update, by several clients at once and over a lost reply',
    async run({ open, openThroughProxy, proxy, root }) {
      const clients = [await open(), await open(), await openThroughProxy()];
      await Promise.all(Array.from({ length: 30 }, (_, index) => clients[index % 3]!.update(`${root}/n`, plusOne, { create: true })));
      const { data, stat } = await clients[0]!.getData(`${root}/n`);
      assert.equal(utf8.decode(data ?? undefined), '30');
      assert.equal(stat.version, 29);
      const losing = clients[2]!.update(`${root}/n`, (before) => {
        proxy.dropNextReply();
        return plusOne(before);
      });
      await assert.rejects(losing, fails('ConnectionLoss', 'unknown'));
      assert.equal(utf8.decode((await clients[2]!.getData(`${root}/n`)).data ?? undefined), '31');
    },
  },
];
