import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Hold, ReadWriteLock } from '../../src/index.ts';
import { type Departing, type Fate, fated } from '../support/fates.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { recording } from '../support/requests.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/locks/catalogue';

describe('a shared lock', () => {
  it('B11, C1-24, C1-25, C1-26, C1-28: makes readers watch the nearest writer before them, and writers the nearest contender of any kind', async () => {
    const { zk, lines } = await t.recorded();
    const lock = new ReadWriteLock(zk, path);
    const first = await t.until(lock.readLock.acquire());
    const second = await t.until(lock.readLock.acquire());
    lines.length = 0;
    const writing = lock.writeLock.acquire();
    await t.settle();
    const third = lock.readLock.acquire();
    await t.settle();
    const fourth = lock.writeLock.acquire();
    await t.settle();
    expect(lines.filter((line) => line.endsWith('watch') && !line.includes('guid-own'))).toEqual([
      'exists /locks/catalogue/guid-write-0000000002 watch',
      'exists /locks/catalogue/guid-read-0000000001 watch',
      'exists /locks/catalogue/guid-read-0000000003 watch',
      'exists /locks/catalogue/guid-write-0000000002 watch',
      'exists /locks/catalogue/guid-write-0000000004 watch',
      'exists /locks/catalogue/guid-read-0000000003 watch',
    ]);
    lines.length = 0;
    await t.until(second.release());
    await t.settle();
    expect(lines.slice(1)).toEqual(['getChildren /locks/catalogue', 'exists /locks/catalogue/guid-read-0000000000 watch']);
    await t.until(first.release());
    const writer = await t.until(writing);
    await t.until(writer.release());
    const reader = await t.until(third);
    await t.until(reader.release());
    await t.until((await t.until(fourth)).release());
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('C1-26: lists the queue again when the znode to watch no longer exists', async () => {
    const holder = new ReadWriteLock(t.zk, path);
    const first = await t.until(holder.readLock.acquire());
    const second = await t.until(holder.readLock.acquire());
    const lines: string[] = [];
    let looks = 0;
    // The first `exists` is of its own znode, the second of the reader before it, which leaves
    // before that request arrives.
    const fateOf = ({ opCode }: Departing): Fate =>
      opCode === OpCode.exists && ++looks === 2 ? { ahead: () => second.release() } : undefined;
    const zk = await fated(t, fateOf, recording(t.world.options(), lines));
    let has = false;
    const writing = new ReadWriteLock(zk, path).writeLock.acquire().then(() => (has = true));
    await t.pass(500);
    expect(lines.slice(-5)).toEqual([
      'getChildren /locks/catalogue',
      'exists /locks/catalogue/guid-read-0000000001 watch',
      'removeWatches /locks/catalogue/guid-read-0000000001',
      'getChildren /locks/catalogue',
      'exists /locks/catalogue/guid-read-0000000000 watch',
    ]);
    expect(has).toBe(false);
    await t.until(first.release());
    await t.until(writing);
  });

  it('C1-27: admits at once all 50 readers that waited for a writer', async () => {
    const lock = new ReadWriteLock(t.zk, path);
    const writer = await t.until(lock.writeLock.acquire());
    const readers: Hold[] = [];
    const reading = Array.from({ length: 50 }, async () => readers.push(await lock.readLock.acquire()));
    await t.pass(1000);
    expect(readers.length).toBe(0);
    await t.until(writer.release());
    await t.until(Promise.all(reading));
    expect(readers.length).toBe(50);
    expect(await t.until(lock.writeLock.tryAcquire())).toBe(undefined);
    expect(await t.until(lock.readLock.tryAcquire())).toBeDefined();
  });

  it('lists what its contenders wait for, and rejects names that cannot be distinguished', async () => {
    const lock = new ReadWriteLock(t.zk, path, { prefixes: { read: '__READ__', write: '__WRIT__' } });
    await t.until(lock.readLock.acquire());
    await t.until(t.zk.create(`${path}/other`));
    expect((await t.until(lock.contenders())).map(({ prefix }) => prefix)).toEqual(['__READ__']);
    expect(() => new ReadWriteLock(t.zk, path, { prefixes: { read: 'a-read-', write: 'read-' } })).toThrow(
      'these names do not distinguish readers',
    );
  });
});

describe('a revocable hold', () => {
  it('B12, C1-29, C1-30: reads its own znode with a watch right after its creation, and is released when its holder has consented', async () => {
    const { zk, lines } = await t.recorded();
    const lock = new ReadWriteLock(zk, path);
    await t.until(t.zk.create('/locks'));
    let consent!: () => void;
    const asked: string[] = [];
    const onRevocation = (held: Hold) => {
      asked.push(held.state);
      return new Promise<void>((resolve) => {
        consent = resolve;
      });
    };
    const held = await t.until(lock.readLock.acquire({ onRevocation }));
    expect(lines.slice(-3)).toEqual([
      'create /locks/catalogue/guid-read- ephemeral sequential',
      'getData /locks/catalogue/guid-read-0000000000 watch',
      'getChildren /locks/catalogue',
    ]);
    lines.length = 0;
    await t.until(t.zk.setData(held.path, 'something else'));
    await t.settle();
    expect(lines).toEqual(['getData /locks/catalogue/guid-read-0000000000 watch']);
    expect(asked).toEqual([]);
    const writers = new ReadWriteLock(t.zk, path);
    const [reader] = await t.until(writers.contenders());
    const revoking = writers.revoke(reader!);
    const writing = writers.writeLock.acquire();
    await t.pass(5000);
    expect(asked).toEqual(['held']);
    expect(held.state).toBe('held');
    consent();
    await t.until(revoking);
    await t.until(writing);
    expect(held.state).toBe('released');
  });

  it('C1-31: is taken away after a stated time from a holder that does not consent, and its holder is notified', async () => {
    const held = await t.until(new ReadWriteLock(t.zk, path).writeLock.acquire());
    const other = new ReadWriteLock(await t.client(), path);
    const [holder] = await t.until(other.contenders());
    const revoking = other.revoke(holder!, { deleteAfterMs: 3000 });
    await t.pass(2900);
    expect(held.signal.aborted).toBe(false);
    await t.until(revoking);
    await t.settle();
    expect(held.state).toBe('lost');
    await t.until(other.revoke(holder!));
    await expect(other.revoke(holder!, { deleteAfterMs: 3000, timeoutMs: 3000 })).rejects.toThrow('make timeoutMs longer');
  });

  it('ends the wait of a contender that is revoked before its turn', async () => {
    const lock = new ReadWriteLock(t.zk, path);
    await t.until(lock.writeLock.acquire());
    const waiting = failureOf(lock.writeLock.acquire({ onRevocation: () => undefined }));
    await t.settle();
    const [, second] = await t.until(lock.contenders());
    await t.until(lock.revoke(second!));
    expect(await t.until(waiting)).toMatchObject({ name: 'RecipeError', code: 'Revoked' });
  });

  it('is rejected when its data are the revocation itself', async () => {
    const lock = new ReadWriteLock(t.zk, path, { data: 'unlock' });
    await expect(lock.readLock.acquire({ onRevocation: () => undefined })).rejects.toThrow(TypeError);
  });
});
