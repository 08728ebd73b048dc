/**
 * A snapshot that is small on the disk and endless in memory is refused, and the one before it is
 * loaded.
 */
import { snapshotFileHeader, writeFileHeader, Writer } from '@tskeeper/protocol';
import { VirtualDisk } from '@tskeeper/runtime';
import { expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { VirtualServer } from './support/virtual-server.ts';

const mebibyte = 1024 ** 2;

it.each([
  ['sessions', [0x7fffffff]],
  ['entries of an ACL', [0, 1, 0, 1, 0x7fffffff]],
  ['data', [0, 0, 0, 0x7fffffff]],
])('a snapshot in gzip with zeros for %s does not use up the memory of the server', async (_what, ints) => {
  const disk = new VirtualDisk();
  const first = await VirtualServer.start([], { disk });
  const client = await first.join('10.0.9.2');
  await client.create('/a', 'x');
  await first.close();

  const writer = new Writer();
  writeFileHeader(writer, snapshotFileHeader);
  for (const int of ints) writer.int32(int);
  const bomb = gzipSync(Buffer.concat([writer.written(), Buffer.alloc(400 * mebibyte)]));
  expect(bomb.length).toBeLessThan(mebibyte);
  disk.putFile('/data/version-2/snapshot.1.gz', bomb);
  const before = process.memoryUsage().rss;
  const second = await VirtualServer.start([], { disk });
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * mebibyte);
  expect(second.lines).toContainEqual(
    expect.stringMatching(/^warn \/data\/version-2\/snapshot\.1\.gz cannot be loaded \(expected .*\); trying an older snapshot$/),
  );
  const reader = await second.join('10.0.9.3');
  expect((await reader.call('getData', { path: '/a', watch: false })).err).toBe('Ok');
  await second.close();
});
