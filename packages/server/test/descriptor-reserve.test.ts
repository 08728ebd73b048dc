/** A process without free file descriptors can still open its log. */
import { describe, expect, it } from 'vitest';
import { DescriptorReserve } from '../src/descriptor-reserve.ts';

/** A system with so many descriptors. */
class FewDescriptors {
  free: number;
  constructor(free: number) {
    this.free = free;
  }
  open(): number {
    if (this.free === 0) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    this.free--;
    return this.free;
  }
  close(): void {
    this.free++;
  }
  readonly openFile = (): Promise<number> => Promise.resolve().then(() => this.open());
}

describe('F34: the descriptor reserve', () => {
  it('gives up one descriptor for each file that the log opens when there are no others', async () => {
    const system = new FewDescriptors(10);
    const reserve = new DescriptorReserve(4, system);
    reserve.fill();
    system.free = 0;
    await reserve.use(system.openFile);
    await reserve.use(system.openFile);
    expect([system.free, reserve.isShort]).toEqual([0, true]);
    // A descriptor that one of these closes is in reserve again before anything else can take it.
    system.close();
    reserve.fill();
    expect(system.free).toBe(0);
    for (let n = 0; n < 3; n++) await reserve.use(system.openFile);
    await expect(reserve.use(system.openFile)).rejects.toMatchObject({ code: 'EMFILE' });
  });

  it('gives up one descriptor after the other while something else takes them first', async () => {
    const system = new FewDescriptors(4);
    const reserve = new DescriptorReserve(4, system);
    reserve.fill();
    let thefts = 3;
    const opened = reserve.use(() => {
      if (thefts-- > 0) system.free = 0;
      return system.openFile();
    });
    await expect(opened).resolves.toBe(0);
  });

  it('is not used for any other error, and is empty before a folder is locked', async () => {
    const system = new FewDescriptors(4);
    const reserve = new DescriptorReserve(4, system);
    expect([system.free, reserve.isShort]).toEqual([4, false]);
    reserve.fill();
    await expect(reserve.use(() => Promise.reject(Object.assign(new Error('no'), { code: 'ENOENT' })))).rejects.toThrow('no');
    expect([system.free, reserve.isShort]).toEqual([0, false]);
  });
});
