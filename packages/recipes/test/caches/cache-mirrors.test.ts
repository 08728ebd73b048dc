/** Caches in random stories, and the detection of broken ones. */
import { ClientView } from '@tskeeper/client';
import { describe, expect, it, vi } from 'vitest';
import { breadth, expectHappened } from '../../../../test/breadth.ts';
import { ChangeStream } from '../../src/caches/change-stream.ts';
import { ReadQueue } from '../../src/caches/read-queue.ts';
import { ZnodeStore } from '../../src/caches/znode-store.ts';
import { Cache, type CachedZnode } from '../../src/index.ts';
import { run, Tally, withLoops } from './cache-run.ts';

describe('caches', () => {
  it.each(breadth([0], [0, 60, 120, 180, 240, 300]))(
    'B20, B21: show the tree, and report each change and nothing else, over the seeds after %i',
    async (behind) => {
      const tally = new Tally();
      for (let seed = behind + 1; seed <= behind + breadth(5, 60); seed++) expect(await run(seed, tally), `seed ${seed}`).toBe(undefined);
      // All of these have really happened.
      expectHappened(tally, 10);
    },
  );
});

describe('a broken cache', () => {
  const method = <Of extends object, Name extends keyof Of>(of: { readonly prototype: Of }, name: Name) =>
    Object.getOwnPropertyDescriptor(of.prototype, name)!.value as Of[Name];
  const enqueue = method(ReadQueue, 'enqueue');
  const push = method(ChangeStream, 'push');
  const getData = method(ClientView, 'getData');
  const getChildren = method(ClientView, 'getChildren');

  const canaries: Record<string, () => void> = {
    'does not repeat a read of a znode that changes meanwhile': () => {
      vi.spyOn(ReadQueue.prototype, 'enqueue').mockImplementation(function (this: ReadQueue, path, kind) {
        if (!this.isPending(path)) enqueue.call(this, path, kind);
      });
    },
    'does not survey a znode that it only looks at': () => {
      vi.spyOn(ReadQueue.prototype, 'enqueue').mockImplementation(function (this: ReadQueue, path, kind) {
        enqueue.call(this, path, kind === 'survey' && path.endsWith('x') ? 'look' : kind);
      });
    },
    'ignores a lost connection': () => {
      withLoops((event) => (event.type === 'Reread' && event.cause === 'reconnected' ? undefined : event));
    },
    'always says that it is in step': () => {
      vi.spyOn(Cache.prototype, 'isSynced', 'get').mockReturnValue(true);
    },
    'keeps the znodes below a deleted one': () => {
      vi.spyOn(ZnodeStore.prototype, 'descendants').mockReturnValue([]);
    },
    'shows znodes without their parents': () => {
      const get = method(ZnodeStore, 'get');
      const made = { path: '/m/a', data: undefined, decodeError: undefined, stat: { czxid: 0n, mzxid: 0n } } as CachedZnode<unknown>;
      vi.spyOn(ZnodeStore.prototype, 'get').mockImplementation(function (this: ZnodeStore<unknown>, path) {
        return get.call(this, path) ?? (path === made.path ? made : undefined);
      });
    },
    'shows an older state': () => {
      const former = new Map<string, Awaited<ReturnType<typeof getData>>>();
      vi.spyOn(ClientView.prototype, 'getData').mockImplementation(async function (this: ClientView, path, options) {
        const now = await getData.call(this, path, options);
        const shown = former.get(path);
        former.set(path, now);
        return shown !== undefined && now.stat.version % 3 === 2 ? shown : now;
      });
    },
    'takes a znode that was created again for the same': () => {
      const first = new Map<string, bigint>();
      vi.spyOn(ClientView.prototype, 'getData').mockImplementation(async function (this: ClientView, path, options) {
        const { data, stat } = await getData.call(this, path, options);
        if (!first.has(path)) first.set(path, stat.czxid);
        return { data, stat: { ...stat, czxid: first.get(path)! } };
      });
    },
    'misses a child that was created while it was disconnected': () => {
      vi.spyOn(ClientView.prototype, 'getChildren').mockImplementation(async function (this: ClientView, path, options) {
        const { children, stat } = await getChildren.call(this, path, options);
        return { children: children.filter((name) => name !== 'y'), stat };
      });
    },
    'does not report an overflow': () => {
      vi.spyOn(ChangeStream.prototype, 'push').mockImplementation(function (this: ChangeStream<never>, change) {
        if (!('path' in change) || change.path !== '/m/b') push.call(this, change);
      });
    },
  };

  it.each(breadth(['shows an older state', 'does not report an overflow'], Object.keys(canaries)))(
    'is detected when it %s',
    async (name) => {
      const enough = breadth(1, 3);
      let caught = 0;
      try {
        for (let seed = 1; seed <= 200 && caught < enough; seed++) {
          canaries[name]!();
          const isCaught = await run(seed, new Tally()).then(
            (fault) => fault !== undefined,
            // That is, it is never in step.
            (error: Error) => /still not so after/.test(error.message),
          );
          if (isCaught) caught++;
          vi.restoreAllMocks();
        }
      } finally {
        vi.restoreAllMocks();
      }
      expect(caught).toBe(enough);
    },
  );
});
