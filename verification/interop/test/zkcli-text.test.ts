/**
 * The output of zkCli.sh is compared as text, without what one of its threads prints in between.
 */
import { expect, test } from 'vitest';

import { normalised } from '../src/drivers/zkcli.ts';

const server = '127.0.0.1:2181';
const notice = ['\nWATCHER::\n', '\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n'] as const;

test('the comparison of zkCli output ignores the position of the connection notice', () => {
  const texts = [
    `Connecting to ${server}\n${notice[0]}${notice[1]}[a, zookeeper]\n`,
    `Connecting to ${server}\n[a, zookeeper]\n${notice[0]}${notice[1]}`,
    `Connecting to ${server}\n${notice[0]}[a, zookeeper]\n${notice[1]}`,
    `Connecting to ${server}\n[a${notice[0]}, zookeeper${notice[1]}]\n`,
    `Connecting to ${server}\n[a, zoo${notice[0]}${notice[1]}keeper]\n`,
    `Connecting to ${server}\n[a, zookeeper]\n`,
  ];
  expect(new Set(texts.map((text) => normalised(text, server)))).toEqual(new Set(['Connecting to SERVER\n[a, zookeeper]\n']));
});

test('the comparison of zkCli output reports a line that only resembles the notice', () => {
  const text = 'data of WATCHER::\nWATCHER:: reported\nWatchedEvent state:SyncConnected type:None path:null zxid: -1 and more\n';
  expect(normalised(text, server)).toBe(text);
});

test('the comparison of zkCli output reports another event', () => {
  const event = '\nWatchedEvent state:SyncConnected type:NodeCreated path:/a zxid: 7\n';
  expect(normalised(event, server)).toBe(event);
});
