import { describe, expect, it } from 'vitest';
import { createLogger, type LogOptions } from '../src/log.ts';

function lines(options: Omit<LogOptions, 'write'>): string[] {
  const written: string[] = [];
  const logger = createLogger({ ...options, write: (line) => written.push(line) });
  logger.debug('a detail', { event: 'container.deleted', path: '/a' });
  logger.info('a fact', { event: 'session.opened', session: '0x1', timeoutMs: 4000, address: '10.0.0.1:4242' });
  logger.warn('a worry', { event: 'digest.mismatch', zxid: '0x1' });
  return written;
}

describe('the log', () => {
  it('writes one JSON object per line for collectors', () => {
    const [info, warn] = lines({ level: 'info', format: 'json' });
    expect(info!.endsWith('\n')).toBe(true);
    expect(JSON.parse(info!)).toMatchObject({
      level: 'info',
      pid: process.pid,
      event: 'session.opened',
      session: '0x1',
      timeoutMs: 4000,
      address: '10.0.0.1:4242',
      msg: 'a fact',
    });
    const { time } = JSON.parse(warn!) as { time: string };
    expect(new Date(time).toISOString()).toBe(time);
  });

  it('writes time, level and message in text form', () => {
    expect(lines({ level: 'info', format: 'text' })).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info {2}a fact\n$/),
      expect.stringMatching(/ warn {2}a worry\n$/),
    ]);
  });

  it('leaves out messages below its level', () => {
    expect(lines({ level: 'debug', format: 'text' })).toHaveLength(3);
    expect(lines({ level: 'warn', format: 'text' })).toHaveLength(1);
    expect(lines({ level: 'silent', format: 'text' })).toEqual([]);
  });
});
