import { validPath, usageError, pathOf, type ZkCommand } from '../../zk/command.ts';

const watchModes = { PERSISTENT: 'persistent', PERSISTENT_RECURSIVE: 'persistentRecursive' } as const;

function isMode(text: string): text is keyof typeof watchModes {
  return Object.hasOwn(watchModes, text);
}

export const addWatch: ZkCommand = {
  name: 'addWatch',
  usage: '[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE',
  summary: 'watch a znode, or a znode and all its descendants, until the watch is removed',
  options: [
    {
      name: 'm',
      value: 'mode',
      description: 'PERSISTENT: the znode and its list of children; PERSISTENT_RECURSIVE: the znode and all its descendants',
    },
  ],
  setsWatch: 'always',
  argumentsMax: Infinity,
  jsonShape:
    '{"path": "/a", "mode": "PERSISTENT"}, then one {"event": "NodeCreated", "state": "SyncConnected", "path": "/a/b", "zxid": "0x5"} for each event',
  async run(call) {
    const [path = ''] = call.line.args;
    if (call.line.args.length !== 1) throw usageError(this);
    const mode = (call.line.value('m') ?? 'PERSISTENT_RECURSIVE').toUpperCase();
    if (!isMode(mode)) throw usageError(this);
    validPath(path);
    const client = await call.client();
    await client.addWatch(path, { mode: watchModes[mode], watch: call.watch, ...call.options });
    await call.answer(undefined, { path, mode });
  },
};

const watcherTypes = { c: 'children', d: 'data', p: 'persistent', r: 'persistentRecursive', a: 'any' } as const;

export const removeWatches: ZkCommand = {
  name: 'removewatches',
  usage: 'path [-c|-d|-a] [-l]',
  summary: 'remove watches',
  options: [
    { name: 'c', description: 'child watcher type' },
    { name: 'd', description: 'data watcher type' },
    { name: 'p', description: 'persistent watcher type' },
    { name: 'r', description: 'persistent recursive watcher type' },
    { name: 'a', description: 'any watcher type' },
    { name: 'l', description: 'remove locally when there is no server connection' },
  ],
  argumentsMax: 1,
  jsonShape: '{"path": "/a"}',
  async run(call) {
    const path = pathOf(call);
    const flag = (Object.keys(watcherTypes) as (keyof typeof watcherTypes)[]).find((name) => call.line.has(name)) ?? 'a';
    const client = await call.client();
    await client.removeWatches(path, { type: watcherTypes[flag], local: call.line.has('l'), ...call.options });
    await call.answer(undefined, { path });
  },
};
