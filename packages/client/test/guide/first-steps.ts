import { connect, KeeperError } from '@tskeeper/client';

const servers = process.argv[2] ?? '127.0.0.1:2181';
const text = (data: Uint8Array | null) => new TextDecoder().decode(data ?? undefined);

// Resolves when a server has opened a session. `await using` closes it at the end, even after an error.
await using zk = await connect(servers, { sessionTimeoutMs: 10_000 });
console.log(`${zk.state}, session time-out ${zk.sessionTimeoutMs} ms`);

// Remove what an earlier run left.
await zk.deleteRecursive('/first-steps');
await zk.create('/first-steps', 'a parent has data too');

// A parent must exist before its children. Data are bytes; a string is encoded as UTF-8.
await zk.create('/first-steps/colour', 'blue');
try {
  await zk.create('/first-steps/colour', 'red');
} catch (error) {
  if (!KeeperError.is(error, 'NodeExists')) throw error;
  console.log(`create: ${error.code} of ${error.path}`);
}

// A read returns the data and the znode's stat. null means that the znode has no data.
const { data, stat } = await zk.getData('/first-steps/colour');
console.log(`read: ${text(data)}, version ${stat.version}`);

// Succeeds only if the znode has not changed since it was read.
await zk.setData('/first-steps/colour', 'green', { version: stat.version });
try {
  await zk.setData('/first-steps/colour', 'red', { version: stat.version });
} catch (error) {
  if (!KeeperError.is(error, 'BadVersion')) throw error;
  console.log(`write: ${error.code}, another client was faster`);
}

// The server appends a number to the name. It deletes the znode when the session ends, however the program ends.
const { path } = await zk.create('/first-steps/worker-', null, { mode: 'ephemeralSequential' });
console.log(`ephemeral: ${path}`);

// Watches a znode and everything below it. Leaving the loop removes the watch.
for await (const event of zk.watch('/first-steps', { recursive: true })) {
  if (event.type === 'Reread') {
    const { children } = await zk.getChildren('/first-steps');
    console.log(`children: ${children.toSorted().join(' ')}`);
    await zk.setData('/first-steps/colour', 'yellow');
    await zk.delete('/first-steps/colour');
  } else {
    console.log(`event: ${event.type} ${event.path}`);
    if (event.type === 'NodeDeleted') break;
  }
}
