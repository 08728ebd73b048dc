/** Which processes count as npm's, by their ancestors. */
import { describe, expect, it } from 'vitest';
import { isWhole, lineToNpm, type ProcessTable } from '../src/npm-watch.ts';

/** Processes by pid: parent and command. The process itself is a child of `ppid`. */
function table(ppid: number, processes: Readonly<Record<number, readonly [ppid: number, command: string]>>): ProcessTable {
  return { ppid, parentOf: (pid) => processes[pid]?.[0], commandOf: (pid) => processes[pid]?.[1] };
}

const byNpm = { npm_lifecycle_event: 'start' };

describe('the line of ancestors up to npm', () => {
  it.each<[string, Readonly<Record<number, readonly [number, string]>>, readonly number[] | undefined]>([
    ['npm itself', { 10: [1, 'npm start'] }, [10]],
    ['a shell of npm', { 10: [9, 'sh -c node scripts/start.js'], 9: [1, 'npm start --client-port 0'] }, [10, 9]],
    ['a shell of npx', { 10: [9, '/bin/sh -c tskeeper serve'], 9: [1, 'npm exec tskeeper serve'] }, [10, 9]],
    ['yarn', { 10: [1, '/usr/bin/node /usr/lib/yarn/bin/yarn.js start'] }, [10]],
    ['a program that npm runs', { 10: [9, 'node test.js'], 9: [1, 'npm test'] }, undefined],
    ['a shell that npm did not start', { 10: [9, 'bash'], 9: [1, 'sshd: user'] }, undefined],
    ['a folder of that name', { 10: [1, 'node /srv/npm/run.js'] }, undefined],
    ['a system without /proc', {}, [10]],
  ])('for a child of %s', (_, processes, line) => {
    expect(lineToNpm(byNpm, table(10, processes))).toEqual(line);
  });

  it('does not exist without the variables of npm, or for a child of init', () => {
    const processes = { 10: [1, 'npm start'] } as const;
    expect(lineToNpm({}, table(10, processes))).toBeUndefined();
    expect(lineToNpm({ npm_command: 'exec' }, table(10, processes))).toEqual([10]);
    expect(lineToNpm(byNpm, table(1, { 1: [0, 'npm start'] }))).toBeUndefined();
  });

  it('is whole until any of them has another parent', () => {
    const processes = { 10: [9, 'sh -c x'], 9: [1, 'npm start'] } as const;
    expect(isWhole([10, 9], table(10, processes))).toBe(true);
    expect(isWhole([10, 9], table(1, processes))).toBe(false);
    expect(isWhole([10, 9], table(10, { 10: [1, 'sh -c x'] }))).toBe(false);
    expect(isWhole([10], table(10, {}))).toBe(true);
  });
});
