/** Which ancestors count as npm. */
import { describe, expect, it } from 'vitest';
import { areStillAncestors, findNpmAncestors, type ProcessTable } from '../src/npm-watch.ts';

/** Processes by pid: parent and command. The process itself is a child of `ppid`. */
function table(ppid: number, processes: Readonly<Record<number, readonly [ppid: number, command: string]>>): ProcessTable {
  return { ppid, parentOf: (pid) => processes[pid]?.[0], commandLineOf: (pid) => processes[pid]?.[1] };
}

const byNpm = { npm_lifecycle_event: 'start' };
const program = '/p/node_modules/.bin/tskeeper';
const start = (environment: Readonly<Record<string, string>>, parentPid = 10) => ({ environment, program, parentPid });

describe('the chain of ancestors up to npm', () => {
  it.each<[string, Readonly<Record<number, readonly [number, string]>>, readonly number[] | undefined]>([
    ['npm itself', { 10: [1, 'npm start'] }, [10]],
    ['a shell of npm', { 10: [9, 'sh -c node scripts/start.js'], 9: [1, 'npm start --client-port 0'] }, [10, 9]],
    ['a shell of npx', { 10: [9, '/bin/sh -c tskeeper serve'], 9: [1, 'npm exec tskeeper serve'] }, [10, 9]],
    ['a shell of npm as process 1 of a container', { 10: [1, 'sh -c tskeeper serve'], 1: [0, 'npm start'] }, [10, 1]],
    ['yarn', { 10: [1, '/usr/bin/node /usr/lib/yarn/bin/yarn.js start'] }, [10]],
    ['yarn of a project', { 10: [1, '/usr/bin/node /p/.yarn/releases/yarn-4.9.1.cjs start'] }, [10]],
    ['bun', { 10: [1, 'bun run start'] }, [10]],
    ['a program that npm runs', { 10: [9, 'node test.js'], 9: [1, 'npm test'] }, undefined],
    ['a shell that npm did not start', { 10: [9, 'bash'], 9: [1, 'sshd: user'] }, undefined],
    ['a folder of that name', { 10: [1, 'node /srv/npm/run.js'] }, undefined],
    ['a system without /proc', {}, [10]],
  ])('holds the processes from the parent to npm, or is undefined without npm, for a child of %s', (_, processes, line) => {
    expect(findNpmAncestors(start(byNpm), table(10, processes))).toEqual(line);
  });

  it('ends with the program named by npm_execpath', () => {
    const processes = { 10: [9, 'sh -c tskeeper serve'], 9: [1, '/opt/other /opt/other/cli.js start'] } as const;
    expect(findNpmAncestors(start({ ...byNpm, npm_execpath: '/opt/other/cli.js' }), table(10, processes))).toEqual([10, 9]);
    expect(findNpmAncestors(start(byNpm), table(10, processes))).toBeUndefined();
  });

  it('is undefined without the variables of npm', () => {
    const processes = { 10: [1, 'npm start'] } as const;
    expect(findNpmAncestors(start({}), table(10, processes))).toBeUndefined();
    expect(findNpmAncestors(start({ npm_lifecycle_script: 'tskeeper serve' }, 1), table(1, {}))).toBeUndefined();
    expect(findNpmAncestors(start({ npm_command: 'exec' }), table(10, processes))).toEqual([10]);
  });

  const running = (npm_lifecycle_script: string) => ({ ...byNpm, npm_lifecycle_script });
  it.each<[string, Readonly<Record<number, readonly [number, string]>>, number]>([
    ['init has adopted this process', { 1: [0, '/sbin/init'] }, 1],
    ['init has adopted this process, and the system shows no command lines', {}, 1],
    ['init has adopted the shell of npm', { 10: [1, 'sh -c tskeeper serve; true'], 1: [0, '/sbin/init'] }, 10],
    ['another program has adopted this process', { 10: [1, 'python3 supervisor.py'], 1: [0, '/sbin/init'] }, 10],
    ['a shell that is process 1 of a container has adopted this process', { 1: [0, 'sh -c npm run all'] }, 1],
  ])('is reported as gone when npm has ended, %s, and a script of npm runs the command', (_, processes, ppid) => {
    expect(findNpmAncestors(start(running('tskeeper serve; true'), ppid), table(ppid, processes))).toBe('gone');
    expect(findNpmAncestors(start(byNpm, ppid), table(ppid, processes))).toBeUndefined();
  });

  it('is reported as gone when the parent has changed since the process started', () => {
    expect(findNpmAncestors(start(running('tskeeper serve'), 10), table(1, { 1: [0, 'npm start'] }))).toBe('gone');
    expect(findNpmAncestors(start(running('sh run.sh'), 10), table(1, {}))).toBeUndefined();
  });

  it.each([
    ['tskeeper', true],
    ["'tskeeper' serve", true],
    ['node_modules/.bin/tskeeper serve', true],
    ['cd /srv && PORT=1 exec tskeeper serve zoo.cfg 2>&1 | tee log', true],
    ['node node_modules/@tskeeper/cli/bin/tskeeper.js serve', true],
    ['/usr/bin/node --enable-source-maps node_modules/.bin/tskeeper serve', true],
    ['tskeeper serve &', false],
    ['nohup tskeeper serve > log 2>&1 &', false],
    ['setsid tskeeper serve', false],
    ['concurrently "tskeeper serve" vite', false],
    ['node app.js', false],
    ['tskeeper-exporter', false],
    ['', false],
  ])('is reported as gone only if the script of npm runs the command in the foreground: %j, %s', (script, does) => {
    expect(findNpmAncestors(start(running(script), 1), table(1, {}))).toBe(does ? 'gone' : undefined);
  });

  it('is not reported as gone while npm runs a program between it and the command, whatever the script contains', () => {
    const processes = { 10: [9, 'node /opt/shim/node tskeeper'], 9: [8, 'sh -c tskeeper serve'], 8: [1, 'npm start'] } as const;
    expect(findNpmAncestors(start(running('tskeeper serve')), table(10, processes))).toBeUndefined();
  });

  it('is intact until one of its processes gets another parent', () => {
    const processes = { 10: [9, 'sh -c x'], 9: [1, 'npm start'] } as const;
    expect(areStillAncestors([10, 9], table(10, processes))).toBe(true);
    expect(areStillAncestors([10, 9], table(1, processes))).toBe(false);
    expect(areStillAncestors([10, 9], table(10, { 10: [1, 'sh -c x'] }))).toBe(false);
    expect(areStillAncestors([10], table(10, {}))).toBe(true);
    // No file could be opened, so nothing is known to have ended.
    const unreadable: ProcessTable = { ppid: 10, parentOf: () => 'unreadable', commandLineOf: () => undefined };
    expect(areStillAncestors([10, 9], unreadable)).toBe(true);
    expect(areStillAncestors([11, 9], unreadable)).toBe(false);
  });
});
