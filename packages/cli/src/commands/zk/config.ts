import { readFileSync } from 'node:fs';
import { exitCodes } from '../../exit-codes.ts';
import { type CommandCall, CommandFailed, usageError, type ZkCommand } from '../../zk/command.ts';
import { statLines, statView } from '../../zk/zkcli-texts.ts';

export const getConfig: ZkCommand = {
  name: 'config',
  usage: '[-c] [-w] [-s]',
  summary: 'print the configuration of the ensemble',
  options: [
    { name: 's', description: 'also print the stat' },
    { name: 'w', description: 'watch for changes of the configuration' },
    { name: 'c', description: 'print only the version and the client addresses' },
  ],
  setsWatch: 'with -w',
  argumentsMax: 0,
  jsonShape: '{"config": "server.1=...", "version": "100000000", "clients": ["10.0.0.1:2181"], "stat": {...}}',
  async run(call) {
    const client = await call.client();
    const { data, stat } = await client.getConfig({ watch: call.line.has('w') ? call.watch : undefined, ...call.options });
    const config = Buffer.from(data ?? Buffer.from('null')).toString();
    const { version, clients } = clientAddressesIn(config);
    const text = call.line.has('c') ? `${version} ${clients.join(',')}` : config;
    const stats = call.line.has('s') ? `\n${statLines(stat)}` : '';
    await call.answer(Buffer.from(`${text}${stats}`), { config, version, clients, stat: statView(stat) });
  },
};

/**
 * Client addresses in a dynamic configuration:
 * `server.1=host:2888:3888:participant;[address:]2181`.
 */
function clientAddressesIn(config: string): { version: string; clients: string[] } {
  let version = '';
  const clients: string[] = [];
  for (const line of config.split('\n')) {
    const [key = '', value = ''] = line.split(/=(.*)/s).map((part) => part.trim());
    if (key === 'version') version = value;
    if (!key.startsWith('server.')) continue;
    // A server's addresses are separated by |, and each may have its own client port.
    for (const address of value.split('|')) {
      const client = address.split(';')[1]?.trim();
      if (client === undefined || client === '') continue;
      clients.push(client.includes(':') ? client : `0.0.0.0:${client}`);
    }
  }
  return { version, clients };
}

export const reconfig: ZkCommand = {
  name: 'reconfig',
  usage:
    '[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | [-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]',
  summary: 'change the servers of the ensemble',
  options: [
    { name: 's', description: 'also print the stat' },
    { name: 'v', value: 'version', description: 'required current config version' },
    { name: 'file', value: 'path', description: 'path of config file to parse for membership' },
    { name: 'members', value: 'list', description: 'comma-separated list of config strings for non-incremental reconfig' },
    { name: 'add', value: 'list', description: 'comma-separated list of config strings for new servers' },
    { name: 'remove', value: 'list', description: 'comma-separated list of server IDs to remove' },
  ],
  argumentsMax: 0,
  jsonShape: '{"config": "server.1=...", "stat": {...}}',
  async run(call) {
    const { line } = call;
    const [file, members, add, remove] = ['file', 'members', 'add', 'remove'].map((name) => line.value(name));
    if ([file, members, add, remove].every((value) => value === undefined)) throw usageError(this);
    const whole = file !== undefined || members !== undefined;
    if (whole && (add !== undefined || remove !== undefined)) {
      throw reconfigError(
        "Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)",
      );
    }
    if (file !== undefined && members !== undefined) {
      throw reconfigError("Can't use -file and -members together (conflicting non-incremental modes)");
    }
    const fromConfig = configVersionOf(call);
    const newMembers = file === undefined ? members?.toLowerCase() : membersIn(file);
    const changes =
      newMembers === undefined
        ? { joiningServers: add?.toLowerCase(), leavingServers: remove?.toLowerCase(), fromConfig }
        : { newMembers, fromConfig };
    const client = await call.client();
    const { data, stat } = await client.reconfig({ ...changes, ...call.options });
    const config = Buffer.from(data ?? []).toString();
    const stats = line.has('s') ? `\n${statLines(stat)}` : '';
    await call.answer(`Committed new configuration:\n${config}${stats}`, { config, stat: statView(stat) });
  },
};

/** The lines of a configuration file that name servers; the leader validates them. */
function membersIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw reconfigError(`Error processing ${file}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
  const lines = text.split('\n').map((line) => line.trim());
  const members = lines.filter((line) => /^(server\.\d+|group\.\d+|weight\.\d+)\s*=/.test(line));
  if (!members.some((line) => line.startsWith('server.'))) throw reconfigError(`Error processing ${file}: it has no line server.<id>=...`);
  return members.join(',');
}

/** The version of a configuration is a zxid in hexadecimal. */
function configVersionOf({ line }: CommandCall): bigint {
  const text = line.value('v');
  if (text === undefined) return -1n;
  if (!/^[0-9a-f]{1,16}$/i.test(text)) throw reconfigError('-v must be followed by a long (configuration version)');
  return BigInt(`0x${text}`);
}

function reconfigError(sentence: string): CommandFailed {
  return new CommandFailed(sentence, exitCodes.refused);
}
