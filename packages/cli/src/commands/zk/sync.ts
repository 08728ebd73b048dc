import { pathOf, type ZkCommand } from '../../zk/command.ts';

export const sync: ZkCommand = {
  name: 'sync',
  usage: 'path',
  summary: 'wait until the server has caught up with the leader',
  options: [],
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "synced": true}',
  async run(call) {
    const path = pathOf(call);
    const client = await call.client();
    await client.sync(path, call.options);
    await call.answer('Sync is OK', { path, synced: true });
  },
};
