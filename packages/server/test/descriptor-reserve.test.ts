/** Whoever takes the last file descriptor of a process does not take the log's. */
import { describe, expect, it } from 'vitest';
import { DescriptorReserve } from '../src/descriptor-reserve.ts';

/** A system with so many descriptors. */
class FewDescriptors {
  free: number;
  constructor(free: number) {
    this.free = free;
  }
  take(): number {
    if (this.free === 0) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    this.free--;
    return this.free;
  }
  giveBack(): void {
    this.free++;
  }
  readonly open = (): Promise<number> => Promise.resolve().then(() => this.take());
}

describe('F34: descriptors in reserve', () => {
  it('are given to the log when there are no others, one for each', async () => {
    const system = new FewDescriptors(10);
    const reserve = new DescriptorReserve(4, system);
    reserve.fill();
    system.free = 0;
    await reserve.use(system.open);
    await reserve.use(system.open);
    expect([system.free, reserve.isShort]).toEqual([0, true]);
    // What one of these closes is in reserve again before anyone else can have it.
    system.giveBack();
    reserve.fill();
    expect(system.free).toBe(0);
    for (let n = 0; n < 3; n++) await reserve.use(system.open);
    await expect(reserve.use(system.open)).rejects.toMatchObject({ code: 'EMFILE' });
  });

  it('are given up one after the other while somebody else is faster', async () => {
    const system = new FewDescriptors(4);
    const reserve = new DescriptorReserve(4, system);
    reserve.fill();
    let thefts = 3;
    const opened = reserve.use(() => {
      if (thefts-- > 0) system.free = 0;
      return system.open();
    });
    await expect(opened).resolves.toBe(0);
  });

  it('are not touched by any other error, and not taken before a folder is claimed', async () => {
    const system = new FewDescriptors(4);
    const reserve = new DescriptorReserve(4, system);
    expect([system.free, reserve.isShort]).toEqual([4, false]);
    reserve.fill();
    await expect(reserve.use(() => Promise.reject(Object.assign(new Error('no'), { code: 'ENOENT' })))).rejects.toThrow('no');
    expect([system.free, reserve.isShort]).toEqual([0, false]);
  });
});
