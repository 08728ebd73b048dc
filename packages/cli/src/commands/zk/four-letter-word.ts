import {
  type ConnectString,
  ConnectStringError,
  formatServer,
  fourLetterWord,
  KeeperError,
  NodeTransport,
  parseConnectString,
} from '@tskeeper/client';
import { exitCodes } from '../../exit-codes.ts';
import { argumentsOf, CommandFailed, type ZkCommand } from '../../zk/command.ts';
import { connectErrorText } from '../../zk/connect-error-text.ts';

/**
 * The words of ZooKeeper 3.9 (docs/reference/four-letter-words.md), without the trace mask words,
 * whose requests are not text.
 */
export const fourLetterWords: readonly string[] = [
  'cons',
  'conf',
  'crst',
  'dirs',
  'dump',
  'envi',
  'hash',
  'isro',
  'mntr',
  'ruok',
  'srst',
  'srvr',
  'stat',
  'wchc',
  'wchp',
  'wchs',
];

/** Sends the word to every server of the connect string, since each answers for itself. */
export const fourLetterWordCommand: ZkCommand = {
  name: '4lw',
  usage: 'word',
  summary: 'send a four letter word, such as srvr, ruok, mntr or stat, to each server; needs no session',
  options: [],
  argumentsMax: 1,
  completions: fourLetterWords,
  jsonShape: '{"server": "127.0.0.1:2181", "word": "ruok", "answer": "imok"} for each server',
  async run(call) {
    const [word = ''] = argumentsOf(call, 1);
    if (!/^[a-z]{4}$/.test(word)) {
      const sentence = `4lw: ${JSON.stringify(word)} is not a four letter word. A word has four lowercase letters, such as srvr, ruok, mntr or stat`;
      throw new CommandFailed(sentence, exitCodes.refused);
    }
    const servers = await resolveServers(call.settings.connectString);
    const { signal, clock, settings } = call;
    const answers = servers.map((server) => fourLetterWord(server, word, { signal, timeoutMs: settings.connectTimeoutMs, clock }));
    // The answers are awaited one after the other; an earlier rejection must not end the process.
    for (const answer of answers) answer.catch(() => undefined);
    const failures: CommandFailed[] = [];
    for (const [index, server] of servers.entries()) {
      try {
        const answer = await answers[index]!;
        const heading = servers.length === 1 ? '' : `${server}:\n`;
        // `call.answer` adds a line break.
        await call.answer(`${heading}${answer.replace(/\n$/, '')}`, { server, word, answer });
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        failures.push(toCommandFailed(error, server, word));
      }
    }
    const last = failures.pop();
    for (const failure of failures) call.reportFailure(failure);
    if (last !== undefined) throw last;
  },
};

async function resolveServers(connectString: string): Promise<string[]> {
  const { servers, srvName } = parseServers(connectString);
  if (srvName === undefined) return servers.map(formatServer);
  try {
    return (await new NodeTransport().resolveSrv(srvName)).map(formatServer);
  } catch (error) {
    const reason = error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);
    throw new CommandFailed(`cannot resolve the servers of ${srvName}: ${connectErrorText(reason)}`, exitCodes.noConnection);
  }
}

function parseServers(connectString: string): ConnectString {
  try {
    return parseConnectString(connectString);
  } catch (error) {
    if (error instanceof ConnectStringError) throw new CommandFailed(error.message, exitCodes.refused);
    throw error;
  }
}

function toCommandFailed({ code, reason = code, message }: KeeperError, server: string, word: string): CommandFailed {
  switch (code) {
    case 'Unimplemented': {
      const sentence = `${server}: ${word} is not in the 4lw.commands.whitelist of this server; add it to zoo.cfg and restart the server`;
      return new CommandFailed(sentence, exitCodes.failed, { code });
    }
    case 'ConnectionLoss':
    case 'RequestTimeout':
      return new CommandFailed(`${server}: ${connectErrorText(reason, server)}`, exitCodes.noConnection, { code });
    default:
      return new CommandFailed(`${server}: ${message}`, exitCodes.failed, { code });
  }
}
