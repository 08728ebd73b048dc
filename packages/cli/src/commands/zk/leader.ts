import { type Client, KeeperError, type LeaderInfo, op } from '@tskeeper/client';
import { exitCodes } from '../../exit-codes.ts';
import { argumentsOf, type CommandCall, CommandFailed, numberOption, usageError, type ZkCommand } from '../../zk/command.ts';

export const leader: ZkCommand = {
  name: 'leader',
  usage: '[transfer [-to <sid>]]',
  summary: 'print which server leads, or give the lead to another server',
  options: [{ name: 'to', value: 'sid', description: 'the server that is to lead; by default the follower with the highest priority' }],
  argumentsMax: 1,
  completions: ['transfer'],
  jsonShape: '{"leader": 2, "epoch": 5}',
  async run(call) {
    const [action] = call.line.args;
    if (action !== undefined && action !== 'transfer') throw usageError(call.command);
    if (action === undefined && call.line.has('to')) throw usageError(call.command);
    const client = await call.client();
    const before = await client.getLeader(call.options);
    const to = call.line.has('to') ? numberOption(call, 'to', 0) : undefined;
    const now = action === undefined ? before : await transfer(call, client, before, to);
    const text = now.leader === undefined ? 'This server is standalone' : `Server ${now.leader} leads in epoch ${now.epoch}`;
    await call.answer(text, { leader: now.leader ?? null, epoch: now.epoch });
  },
};

/** Why a leader refuses, by the code with which it does. */
const refusals: Readonly<Record<string, string>> = {
  BadVersion: 'it leads already',
  BadArguments: 'it has no vote, or a vote of weight 0',
  NewConfigNoQuorum: 'it is not in step with the leader; wait until it follows',
  ReconfigInProgress: 'a reconfiguration or another transfer is in progress; try again when it is complete',
  Unimplemented: 'this server is standalone, or the leader or a follower runs ZooKeeper or an earlier version',
};

async function transfer(call: CommandCall, client: Client, before: LeaderInfo, to: number | undefined): Promise<LeaderInfo> {
  const target = to === undefined ? 'another server' : `server ${to}`;
  try {
    await client.transferLeader({ ...call.options, to });
  } catch (error) {
    const reason = error instanceof KeeperError ? refusals[error.code] : undefined;
    if (reason === undefined) throw error;
    throw new CommandFailed(`The lead was not given to ${target}: ${reason}.`, exitCodes.failed, { code: (error as KeeperError).code });
  }
  await untilDecided(call, client);
  const now = await leaderAfterReconnect(call, client);
  if (now.epoch > before.epoch && (to === undefined || now.leader === to)) return now;
  const instead = now.epoch > before.epoch ? `server ${now.leader} was elected instead` : `server ${now.leader} goes on leading`;
  throw new CommandFailed(`${target[0]!.toUpperCase()}${target.slice(1)} has not taken the lead in time: ${instead}.`, exitCodes.failed);
}

/**
 * A write waits while the lead is given away: it is answered if the old leader goes on, and fails
 * with the connection if it does not. This one changes nothing.
 */
async function untilDecided({ options }: CommandCall, client: Client): Promise<void> {
  try {
    await client.multi([op.check('/')], options);
  } catch (error) {
    if (!(error instanceof KeeperError)) throw error;
  }
}

/**
 * The connection may be lost once more before the new leader serves. A local session has ended with
 * the role of its server, so another one asks.
 */
async function leaderAfterReconnect(call: CommandCall, client: Client): Promise<LeaderInfo> {
  for (let asking = client; ;) {
    try {
      return await asking.getLeader(call.options);
    } catch (error) {
      if (KeeperError.is(error, 'SessionExpired')) asking = await call.newClient();
      else if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    }
  }
}

export const shed: ZkCommand = {
  name: 'shed',
  usage: 'percent',
  summary: 'let the server close a share of its connections, so that the clients connect to other servers',
  options: [],
  argumentsMax: 1,
  jsonShape: '{"connections": 250}',
  async run(call) {
    const [text = ''] = argumentsOf(call, 1);
    const percent = Number(text);
    if (!/^\d+(\.\d+)?$/.test(text) || percent > 100)
      throw new CommandFailed(`shed needs a percentage from 0 to 100, not ${text}`, exitCodes.refused);
    const client = await call.client();
    const connections = await client.shedConnections(percent / 100, call.options);
    await call.answer(`The server closes ${connections} connections`, { connections });
  },
};
