import { KeeperError } from '@tskeeper/client';
import { aclView } from '../../files/views.ts';
import { parseAcl } from '../../zk/acl-text.ts';
import { argumentsOf, validPath, CommandFailed, numberOption, pathOf, type ZkCommand } from '../../zk/command.ts';
import { walkSubtree } from '../../zk/subtree.ts';
import { aclLines, errorTextOf, statLines, statView } from '../../zk/zkcli-texts.ts';

export const getAcl: ZkCommand = {
  name: 'getAcl',
  usage: '[-s] path',
  summary: 'print the ACL of a znode',
  options: [{ name: 's', description: 'also print the stat' }],
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "acl": [{"scheme": "world", "id": "anyone", "perms": "cdrwa"}], "stat": {...}}',
  async run(call) {
    const path = pathOf(call);
    const client = await call.client();
    const { acl, stat } = await client.getACL(path, call.options);
    const stats = call.line.has('s') ? `\n${statLines(stat)}` : '';
    await call.answer(`${aclLines(acl)}${stats}`, { path, acl: aclView(acl), stat: statView(stat) });
  },
};

export const setAcl: ZkCommand = {
  name: 'setAcl',
  usage: '[-s] [-v version] [-R] path acl',
  summary: 'set the ACL of a znode: scheme:id:perms, separated by commas',
  options: [
    { name: 's', description: 'also print the stat' },
    { name: 'v', value: 'version', description: 'only if its ACL has this version' },
    { name: 'R', description: 'also for all descendants' },
  ],
  argumentsMax: 2,
  jsonShape: '{"path": "/a", "stat": {...}}; with -R {"path": "/a", "changed": 3, "failed": 0}',
  async run(call) {
    const [path = '', text = ''] = argumentsOf(call, 2);
    validPath(path);
    const version = numberOption(call, 'v', -1);
    const acl = parseAcl(text, (sentence) => call.note(sentence));
    const client = await call.client();
    if (!call.line.has('R')) {
      const stat = await client.setACL(path, acl, { version, ...call.options });
      await call.answer(call.line.has('s') ? statLines(stat) : undefined, { path, stat: statView(stat) });
      return;
    }
    let changed = 0;
    let failed = 0;
    for await (const one of walkSubtree(client, path, call.options)) {
      try {
        await client.setACL(one, acl, { version, ...call.options });
        changed++;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        failed++;
        call.note(errorTextOf(error));
      }
    }
    await call.answer(undefined, { path, changed, failed });
    if (failed > 0) throw new CommandFailed(`cannot set the ACL of ${failed} of ${changed + failed} znodes`);
  },
};
