/** The command line. */
import { parseConnectString } from '@tskeeper/client';
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseRelease, type Release } from '../release.ts';

export interface CommandOptions {
  readonly connectString: string | undefined;
  readonly only: readonly string[];
  readonly list: boolean;
  readonly json: boolean;
  readonly slow: boolean;
  readonly reconfig: boolean;
  readonly timeoutMs: number | undefined;
  readonly superAuth: string | undefined;
  readonly release: Release | undefined;
}

function parseSeconds(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 3600)) throw new InvalidArgumentError('It must be a number of seconds, more than 0 and at most 3600.');
  return value;
}

function parsePatterns(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').filter((each) => each !== '')];
}

function parseReleaseOption(text: string): Release {
  const value = parseRelease(text);
  if (value === undefined) throw new InvalidArgumentError('It must be a release of ZooKeeper, such as 3.8 or 3.9.2.');
  return value;
}

function parseUserAndPassword(text: string): string {
  if (!/^[^:]+:./.test(text)) throw new InvalidArgumentError('It must be user:password.');
  return text;
}

function parseConnectStringOption(text: string): string {
  try {
    parseConnectString(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
  return text;
}

export function createCommand(
  out: (text: string) => void,
  err: (text: string) => void,
  onParsed: (options: CommandOptions) => void,
): Command {
  return new Command('tskeeper-conformance')
    .description("Checks whether a ZooKeeper server, or an ensemble, behaves as ZooKeeper's documentation says.")
    .argument(
      '[connect string]',
      'host:port,host:port/chroot; all servers of an ensemble, for the checks that need several',
      parseConnectStringOption,
    )
    .addOption(
      new Option('--only <patterns>', 'run the checks whose names contain one of these: watches,multi.failures').argParser(parsePatterns),
    )
    .option('--list', 'list the checks without running them')
    .option('--json', 'print the results as JSON')
    .option('--slow', 'also run the checks that wait until sessions have expired')
    .addOption(new Option('--timeout <seconds>', 'time limit of one check (default: 30)').argParser(parseSeconds))
    .addOption(new Option('--super <user:password>', 'the super user, for the checks that need it').argParser(parseUserAndPassword))
    .option('--reconfig', 'also write the configuration of the ensemble again, with the same servers (needs --super)')
    .addOption(
      new Option('--release <release>', 'compare with this release of ZooKeeper, whatever srvr says').argParser(parseReleaseOption),
    )
    .showHelpAfterError('(--help lists the options)')
    .configureOutput({ writeOut: out, writeErr: err })
    .exitOverride()
    .action((server: string | undefined, given: Record<string, unknown>) => {
      onParsed({
        connectString: server,
        only: (given['only'] as string[] | undefined) ?? [],
        list: given['list'] === true,
        json: given['json'] === true,
        slow: given['slow'] === true,
        reconfig: given['reconfig'] === true,
        timeoutMs: given['timeout'] === undefined ? undefined : (given['timeout'] as number) * 1000,
        superAuth: given['super'] as string | undefined,
        release: given['release'] as Release | undefined,
      });
    });
}
