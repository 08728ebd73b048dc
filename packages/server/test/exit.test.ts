import { BindError, DiskError, FolderInUse, ListenError, StorageRefused } from '@tskeeper/runtime';
import { expect, it } from 'vitest';
import { ConfigError } from '../src/config/config-error.ts';
import { exitCodes, exitStatusOf } from '../src/exit.ts';

it.each<[Error, number, string]>([
  [new ConfigError('zoo.cfg:1: no.'), exitCodes.refused, 'zoo.cfg:1: no.'],
  [new ListenError('EADDRINUSE', 'port 1 is in use.'), exitCodes.refused, 'port 1 is in use.'],
  [new BindError('the election port is in use.'), exitCodes.refused, 'the election port is in use.'],
  [new StorageRefused('the log /d/log.1 is damaged.'), exitCodes.refused, 'the log /d/log.1 is damaged.'],
  [
    new StorageRefused('the server cannot use dataDir, /d (make folder /d/version-2: EACCES); give the user the right.'),
    exitCodes.refused,
    'the server cannot use dataDir, /d (make folder /d/version-2: EACCES); give the user the right.',
  ],
  [new FolderInUse('the folder /d is in use.'), exitCodes.refused, 'the folder /d is in use.'],
  [
    new DiskError('ENOSPC', 'write', '/d/log.1'),
    exitCodes.diskFailure,
    'the disk failed: write /d/log.1: ENOSPC. Make room on the disk, then start the server again.',
  ],
  [
    new DiskError('EACCES', 'open', '/d/log.1'),
    exitCodes.diskFailure,
    'the disk failed: open /d/log.1: EACCES. Give the user of this process the right to write there.',
  ],
  [
    new DiskError('EIO', 'sync', '/d/log.1'),
    exitCodes.diskFailure,
    'the disk failed: sync /d/log.1: EIO. Check the disk before starting the server again.',
  ],
  [
    new DiskError('EMFILE', 'open', '/d/log.1'),
    exitCodes.diskFailure,
    'the disk failed: open /d/log.1: EMFILE. Raise the limit of open files (ulimit -n, LimitNOFILE).',
  ],
  [
    new DiskError('ETIMEDOUT', 'append to the log in', '/d'),
    exitCodes.diskFailure,
    'the disk failed: append to the log in /d: ETIMEDOUT. The operation did not complete within the longest session time-out. Check the disk; if it is healthy, something else occupies all threads of this process that wait for disks: start the server again.',
  ],
])('%s ends the process with its own exit code and message', (error, code, message) => {
  expect(exitStatusOf(error)).toEqual({ code, message });
});

it('an unexpected error is reported with its stack', () => {
  const { code, message } = exitStatusOf(new TypeError('x is not a function'));
  expect(code).toBe(exitCodes.internalError);
  expect(message).toMatch(/^unexpected error, please report it: TypeError: x is not a function\n {4}at /);
  expect(exitStatusOf('thrown text').message).toBe('unexpected error, please report it: thrown text');
});
