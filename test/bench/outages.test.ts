import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { outages, percentile } from '../../bench/outages.js';
import { rows } from '../../bench/rows.js';
import { Writers } from '../../bench/writers.js';

describe('a percentile', () => {
  it('is a measured number, and of a hundred rounds the p99 is the second worst', () => {
    const rounds = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([percentile(rounds, 50), percentile(rounds, 90), percentile(rounds, 99), percentile(rounds, 100)]).toEqual([50, 90, 99, 100]);
    expect(percentile([7], 99)).toBe(7);
  });
});

describe('rows of three servers', () => {
  it('each have a function that measures them', () => {
    const all = rows as readonly { readonly group?: string; readonly kind: string; readonly ensemble?: number }[];
    const kinds = all.filter((row) => row.group === 'failover').map((row) => row.kind);
    expect(kinds.toSorted()).toEqual(Object.keys(outages).toSorted());
    expect(all.filter((row) => row.group === 'ensemble').every((row) => row.kind === 'load' && row.ensemble === 3)).toBe(true);
  });
});

describe('writers', () => {
  const open: { close(): void }[] = [];
  afterEach(() => {
    for (const each of open.splice(0)) each.close();
  });

  /** Accepts every session, and answers each write. */
  async function fake(error = 0): Promise<{ readonly port: number; readonly sockets: Socket[]; silent: boolean }> {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      let greeted = false;
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        if (state.silent) return;
        if (!greeted) {
          greeted = true;
          const response = Buffer.alloc(41);
          response.writeInt32BE(37, 0);
          response.writeInt32BE(30_000, 8);
          response.writeInt32BE(7, 16);
          response.writeInt32BE(16, 20);
          socket.write(response);
          return;
        }
        if (bytes.readInt32BE(8) === -11) {
          socket.end();
          return;
        }
        const reply = Buffer.alloc(20);
        reply.writeInt32BE(16, 0);
        bytes.copy(reply, 4, 4, 8);
        reply.writeInt32BE(error, 16);
        socket.write(reply);
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    open.push({
      close: () => {
        server.close();
        for (const socket of sockets) socket.destroy();
      },
    });
    const state = { port: (server.address() as { port: number }).port, sockets, silent: false };
    return state;
  }

  it('measure the time without a reply to a write, and connect to another server when their own ends', async () => {
    const [one, two] = [await fake(), await fake()];
    const writers = new Writers([one.port, two.port]);
    writers.start();
    await writers.answers(20, performance.now(), 120_000);
    const before = performance.now();
    one.silent = two.silent = true;
    for (const socket of [...one.sockets, ...two.sockets]) socket.destroy();
    // Each of the two servers was silent, and its clients have moved to the other.
    const dialled = () => one.sockets.length + two.sockets.length;
    const atFirst = dialled();
    await vi.waitUntil(() => dialled() >= atFirst + 4, { timeout: 120_000, interval: 5 });
    two.silent = false;
    await writers.answers(20, performance.now(), 120_000);
    expect(writers.longestGap(before)).toBeGreaterThanOrEqual(200);
    await writers.stop();
  });

  it('report a write that was answered with an error', async () => {
    const { port } = await fake(-112);
    const writers = new Writers([port]);
    writers.start();
    await writers.answers(1, performance.now(), 120_000);
    await expect(writers.stop()).rejects.toThrow('the answer to write 1 was error -112');
  });
});
