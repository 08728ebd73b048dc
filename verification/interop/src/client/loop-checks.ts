/**
 * Watch loops with any server of ZooKeeper's protocol: what they report, and that nothing is lost
 * silently.
 */
import assert from 'node:assert/strict';

import { type Client, KeeperError, type RecursiveWatchLoopEvent } from '@tskeeper/client';

import type { Check } from './checks.ts';

type Loop = AsyncIterableIterator<RecursiveWatchLoopEvent>;

async function nextEvent(loop: Loop): Promise<RecursiveWatchLoopEvent> {
  const { value, done } = await loop.next();
  assert.ok(done !== true, 'the loop has ended');
  return value;
}

const eventText = (event: RecursiveWatchLoopEvent): string =>
  event.type === 'Reread' ? `Reread ${event.cause}` : `${event.type} ${event.path}`;

/** What a mirror knows: path and version. */
async function treeOf(zk: Client, root: string): Promise<Map<string, number>> {
  const tree = new Map<string, number>();
  for await (const { path, stat } of zk.walk(root)) tree.set(path, stat.version);
  return tree;
}

export const loopChecks: readonly Check[] = [
  {
    name: 'a watch loop reports each change once and in order, and its end removes the watch',
    async run({ open, root, facts }) {
      const [zk, other] = [await open(), await open()];
      const loop = zk.watch(root, { recursive: true });
      assert.equal(eventText(await nextEvent(loop)), 'Reread started');
      const { czxid } = (await other.create(`${root}/a`)).stat;
      await other.setData(`${root}/a`, '1');
      await other.create(`${root}/a/b`, null, { mode: 'ephemeral' });
      await other.delete(`${root}/a/b`);
      const first = await nextEvent(loop);
      assert.equal(eventText(first), `NodeCreated ${root}/a`);
      // Servers before 3.9 do not report it.
      const [major, minor] = facts.version;
      assert.equal(first.type !== 'Reread' && first.zxid, major > 3 || minor >= 9 ? czxid : undefined);
      const rest = [await nextEvent(loop), await nextEvent(loop), await nextEvent(loop)].map(eventText);
      assert.deepEqual(rest, [`NodeDataChanged ${root}/a`, `NodeCreated ${root}/a/b`, `NodeDeleted ${root}/a/b`]);
      await loop.return?.();
      await assert.rejects(zk.removeWatches(root), (error: unknown) => KeeperError.is(error, 'NoWatcher'));
    },
  },
  {
    name: 'a mirror by a watch loop is up to date after lost connections and partitions',
    async run({ open, openThroughProxy, proxy, root }) {
      const other = await open();
      const zk = await openThroughProxy({ sessionTimeoutMs: 20_000 });
      let mirror = new Map<string, number>();
      let rereads = 0;
      let begin = (): void => undefined;
      const begun = new Promise<void>((resolve) => {
        begin = resolve;
      });
      const stop = new AbortController();
      const mirroring = (async () => {
        for await (const event of zk.watch(root, { recursive: true, signal: stop.signal })) {
          if (event.type === 'Reread') {
            rereads++;
            begin();
            // A call that fails with its connection is followed by another Reread.
            try {
              mirror = await treeOf(zk, root);
            } catch (error) {
              assert.ok(KeeperError.is(error, 'ConnectionLoss'), String(error));
            }
          } else if (event.type === 'NodeDeleted') {
            mirror.delete(event.path);
          } else {
            const stat = await zk.exists(event.path).catch(() => null);
            if (stat !== null) mirror.set(event.path, stat.version);
          }
        }
      })().catch((error: unknown) => {
        if (error !== stop.signal.reason) throw error;
      });
      // A connection lost before the loop has begun is not reported to it.
      await Promise.race([begun, mirroring]);
      for (let round = 0; round < 6; round++) {
        for (let at = 0; at < 40; at++) {
          const path = `${root}/n${(round * 7 + at) % 25}`;
          if (at % 3 === 0) await other.delete(path).catch(() => undefined);
          else if ((await other.exists(path)) === null) await other.create(path);
          else await other.setData(path, String(at));
          if (at === 15) proxy.cut();
        }
      }
      const wanted = await treeOf(other, root);
      const deadline = performance.now() + 20_000;
      while (!isSame(mirror, wanted)) {
        assert.ok(performance.now() < deadline, `the mirror has ${mirror.size} znodes, the tree ${wanted.size}`);
        await new Promise((resolve) => void setTimeout(resolve, 20));
      }
      assert.ok(rereads > 1, 'no connection was lost');
      stop.abort(new Error('enough'));
      await mirroring;
    },
  },
];

function isSame(mirror: ReadonlyMap<string, number>, tree: ReadonlyMap<string, number>): boolean {
  return mirror.size === tree.size && [...tree].every(([path, version]) => mirror.get(path) === version);
}
