import { type CreateSettings, openAcl } from '@tskeeper/client';
import { exitCodes } from '../../exit-codes.ts';
import { parseAcl } from '../../zk/acl-text.ts';
import { argumentsOf, type CommandCall, validPath, CommandFailed, type ZkCommand } from '../../zk/command.ts';
import { dataOf } from '../../zk/data-argument.ts';

/** The largest TTL: 40 bits of an ephemeralOwner, the rest marks the znode as one with a TTL. */
const ttlMsMax = 0xff_ffff_ffff;

export const create: ZkCommand = {
  name: 'create',
  usage: '[-s] [-e] [-c] [-t ttl] path [data] [acl]',
  summary: 'create a znode',
  options: [
    { name: 'e', description: 'ephemeral: deleted when the session ends' },
    { name: 's', description: 'sequential: the server appends a number to the path' },
    { name: 'c', description: 'container: deleted after its last child is deleted' },
    { name: 't', value: 'ttl', description: 'deleted after this many milliseconds without changes and children' },
  ],
  argumentsMax: 3,
  jsonShape: '{"path": "/a"}, with the sequence number if it is sequential',
  async run(call) {
    const [path = '', word, acl] = argumentsOf(call, 1);
    const mode = createSettingsOf(call);
    validPath(call.line.has('s') ? `${path}1` : path);
    const settings = { ...mode, acl: acl === undefined ? openAcl : parseAcl(acl, (sentence) => call.note(sentence)) };
    const data = word === undefined ? null : await dataOf(call, word);
    const client = await call.client();
    const created = await client.create(path, data, { ...settings, ...call.options });
    await call.answer(`Created ${created.path}`, { path: created.path });
  },
};

function createSettingsOf({ line }: CommandCall): CreateSettings {
  const [ephemeral, sequential, container] = [line.has('e'), line.has('s'), line.has('c')];
  const ttl = line.value('t');
  if (container && (ephemeral || sequential)) {
    throw createError('-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.');
  }
  if (ttl !== undefined && !/^[+-]?\d+$/.test(ttl)) throw createError('-t argument must be a long value');
  if (ttl !== undefined && ephemeral) throw createError('TTLs cannot be used with Ephemeral znodes');
  if (ttl !== undefined && container) throw createError('TTLs cannot be used with Container znodes');
  if (ttl !== undefined) {
    const ttlMs = Number(ttl);
    if (ttlMs <= 0 || ttlMs > ttlMsMax) throw createError(`ttl must be positive and cannot be larger than: ${ttlMsMax}`);
    return { mode: sequential ? 'persistentSequentialWithTtl' : 'persistentWithTtl', ttlMs };
  }
  if (container) return { mode: 'container' };
  if (ephemeral) return { mode: sequential ? 'ephemeralSequential' : 'ephemeral' };
  return { mode: sequential ? 'persistentSequential' : 'persistent' };
}

function createError(sentence: string): CommandFailed {
  return new CommandFailed(sentence, exitCodes.refused);
}
