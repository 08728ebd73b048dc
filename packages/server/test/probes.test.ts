/**
 * Auxiliary work of a server must not end it: a probe, a timer of this process, a line of its log.
 */
import fs from 'node:fs';
import { type Logger, VirtualDisk } from '@tskeeper/runtime';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { loggerThatNeverThrows } from '../src/log.ts';
import { createLogger } from '../src/index.ts';
import { SystemClock } from '../src/system-clock.ts';
import { VirtualServer } from './support/virtual-server.ts';

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}, refused by the system`), { code, errno: -24, syscall: 'uv_resident_set_memory' });
}

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('a probe of memory that fails', () => {
  it('is logged, and the server starts and serves', async () => {
    const server = await VirtualServer.start([], {
      disk: new VirtualDisk(),
      memory: () => {
        throw systemError('EMFILE');
      },
    });
    const client = await server.join('10.0.9.2');
    await server.pass(1000, 100);
    await client.create('/a', 'x');
    expect(server.failure).toBeUndefined();
    const received = server.logged.filter(({ event }) => event === 'memory.unknown');
    expect(received.length).toBeGreaterThan(0);
    expect(received.length).toBeLessThanOrEqual(20);
    expect(server.lines.find((line) => line.includes('memory'))).toBe(
      'warn cannot read how much memory this server has left (EMFILE, refused by the system); it continues, and refuses what it refused before',
    );
    await server.close();
  });
});

describe('a timer of the process', () => {
  const passing = (run: () => void): void => {
    vi.useFakeTimers();
    run();
    vi.advanceTimersByTime(20);
  };

  it('whose call the system refuses is logged, and the process continues', () => {
    const refusals: unknown[] = [];
    const clock = new SystemClock((error) => void refusals.push(error));
    const error = systemError('EMFILE');
    passing(() => {
      clock.after(5, () => {
        throw error;
      });
      clock.setImmediate(() => {
        throw error;
      });
    });
    expect(refusals).toEqual([error, error]);
  });

  it('throws every other error: a failed assertion ends the server', () => {
    const refusals: unknown[] = [];
    const clock = new SystemClock((error) => void refusals.push(error));
    expect(() =>
      passing(() => {
        clock.after(5, () => {
          throw new Error('applied > committed');
        });
      }),
    ).toThrow('applied > committed');
    expect(refusals).toEqual([]);
  });
});

describe('a line of the log', () => {
  const fields = { event: 'memory.unknown', reason: 'a test' } as const;

  it('is left out when its logger cannot write it, with any logger', () => {
    const fail = (): never => {
      throw systemError('ENOSPC');
    };
    const broken: Logger = { debug: fail, info: fail, warn: fail, error: fail };
    const logger = loggerThatNeverThrows(broken);
    expect(() => logger.warn('a', fields)).not.toThrow();
    expect(() => logger.info('b', { event: 'server.stopped' })).not.toThrow();
  });

  it('is left out when standard output does not accept it: its disk is full, or its reader has left', () => {
    const written: string[] = [];
    let code: string | undefined = 'ENOSPC';
    vi.spyOn(fs, 'writeSync').mockImplementation((_fd, text) => {
      if (code !== undefined) throw systemError(code);
      written.push(text);
      return text.length;
    });
    const logger = createLogger({ level: 'info', format: 'text' });
    logger.warn('while the disk is full', fields);
    code = 'EAGAIN';
    const startMs = performance.now();
    logger.warn('while the reader does not read', fields);
    expect(performance.now() - startMs).toBeLessThan(1000);
    code = undefined;
    logger.warn('afterwards', fields);
    expect(written.join('')).toContain('afterwards');
    code = 'EPIPE';
    logger.warn('when the reader has gone', fields);
  });
});
