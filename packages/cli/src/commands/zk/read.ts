import { dataView } from '../../files/views.ts';
import { usageError, noNodeError, optionLines, pathOf, isWatchRequested, type ZkCommand } from '../../zk/command.ts';
import { hexDump, listText, statLines, statView } from '../../zk/zkcli-texts.ts';
import { allChildren, walkSubtree } from '../../zk/subtree.ts';

/** Commands that read one znode or its subtree. */

export const get: ZkCommand = {
  name: 'get',
  usage: '[-s] [-w] [-b] [-x] path',
  summary: "print a znode's data",
  options: [
    { name: 's', description: 'Print znode stats additionally' },
    { name: 'w', description: 'Watch for changes on the znode' },
    { name: 'b', description: 'Output data in base64 format' },
    { name: 'x', description: 'Output data in hexdump format' },
  ],
  usageListsOptions: true,
  setsWatch: 'with -w',
  argumentsMax: 2,
  jsonShape: '{"path": "/a", "data": "text", "encoding": "utf8" or "base64", "stat": {...}}; data is null if the znode has none',
  async run(call) {
    const path = pathOf(call);
    const { line } = call;
    const watch = isWatchRequested(call, 'get', '[-s] [-w]') ? call.watch : undefined;
    const client = await call.client();
    const { data, stat } = await client.getData(path, { watch, ...call.options });
    const shown = Buffer.from(data ?? Buffer.from('null'));
    // The bytes as they are, so that binary data can be piped.
    const text = line.has('x') ? Buffer.from(hexDump(shown)) : line.has('b') ? Buffer.from(shown.toString('base64')) : shown;
    const stats = line.has('s') ? Buffer.from(`\n${statLines(stat)}`) : Buffer.alloc(0);
    await call.answer(Buffer.concat([text, stats]), { path, ...dataView(data), stat: statView(stat) });
  },
};

export const stat: ZkCommand = {
  name: 'stat',
  usage: '[-w] path',
  summary: "print a znode's stat",
  options: [{ name: 'w', description: 'watch for changes of the znode, including its creation' }],
  setsWatch: 'with -w',
  argumentsMax: 2,
  jsonShape: '{"path": "/a", "stat": {...}}',
  async run(call) {
    const path = pathOf(call);
    const watch = isWatchRequested(call, 'stat', '[-w]') ? call.watch : undefined;
    const client = await call.client();
    const found = await client.exists(path, { watch, ...call.options });
    if (found === null) throw noNodeError(path);
    await call.answer(statLines(found), { path, stat: statView(found) });
  },
};

export const ls: ZkCommand = {
  name: 'ls',
  usage: '[-s] [-w] [-R] path',
  summary: "print the names of a znode's children",
  options: [
    { name: '?', description: 'help' },
    { name: 's', description: 'stat' },
    { name: 'w', description: 'watch' },
    { name: 'R', description: 'recurse' },
  ],
  setsWatch: 'with -w',
  argumentsMax: 2,
  jsonShape: '{"path": "/a", "children": ["b", "c"]}, with -s also "stat"; with -R one {"path": "/a/b"} for each znode',
  async run(call) {
    const { line } = call;
    if (line.has('?')) {
      await call.answer(`usage: ls [options] path\n${optionLines(this.options)}`, { usage: `ls ${this.usage}` });
      if (line.args.length === 0) return;
    }
    if (line.args.length === 0) throw usageError(this);
    const path = pathOf(call);
    const watch = isWatchRequested(call, 'ls', '[-w]') ? call.watch : undefined;
    const client = await call.client();
    if (line.has('R')) {
      for await (const one of walkSubtree(client, path, { watch, ...call.options })) await call.answer(one, { path: one });
      return;
    }
    const result = await allChildren(client, path, { watch, ...call.options });
    const children = result.children.toSorted();
    const withStat = line.has('s');
    await call.answer(`${listText(children)}${withStat ? `\n${statLines(result.stat)}` : ''}`, {
      path,
      children,
      ...(withStat && { stat: statView(result.stat) }),
    });
  },
};

export const getAllChildrenNumber: ZkCommand = {
  name: 'getAllChildrenNumber',
  usage: 'path',
  summary: 'print how many descendants a znode has',
  options: [],
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "number": 2}',
  async run(call) {
    const path = pathOf(call);
    const client = await call.client();
    const number = await client.getAllChildrenNumber(path, call.options);
    await call.answer(`${number}`, { path, number });
  },
};

export const getEphemerals: ZkCommand = {
  name: 'getEphemerals',
  usage: 'path',
  summary: 'print the ephemeral znodes of this session whose paths start with this text; without it all of them',
  options: [],
  argumentsMax: 1,
  jsonShape: '{"prefix": "/", "ephemerals": ["/a"]}',
  async run(call) {
    const prefix = call.line.args.length === 0 ? '/' : pathOf(call);
    const client = await call.client();
    const ephemerals = await client.getEphemerals(prefix, call.options);
    await call.answer(listText(ephemerals), { prefix, ephemerals });
  },
};
