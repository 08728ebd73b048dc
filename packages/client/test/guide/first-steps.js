import { connect, KeeperError } from '@tskeeper/client';

const zk = await connect(process.argv[2] ?? '127.0.0.1:2181', { sessionTimeoutMs: 10_000 });
try {
  await zk.deleteRecursive('/first-steps');
  await zk.create('/first-steps/colour', 'blue', { parents: true });

  const { data, stat } = await zk.getData('/first-steps/colour');
  console.log(`read: ${new TextDecoder().decode(data)}, version ${stat.version}`);
  await zk.setData('/first-steps/colour', 'green', { version: stat.version });

  await zk.delete('/first-steps/no-such-thing');
} catch (error) {
  if (!KeeperError.is(error, 'NoNode')) throw error;
  console.log(error.message);
} finally {
  await zk.close();
}
