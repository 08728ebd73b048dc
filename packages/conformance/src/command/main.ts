/**
 * The command. It ends with 0 if no check failed and the scratch znode was removed, with 1 if a
 * check failed or something was left, with 2 for an invalid command line, with 3 if no server could
 * be checked, and with 130 after Ctrl+C.
 */
import { KeeperError } from '@tskeeper/client';
import { CommanderError } from 'commander';
import { checks } from '../checks/all.ts';
import { type CheckResult, Suite } from '../suite.ts';
import { type CommandOptions, commandOf } from './options.ts';
import { countsText, factsText, listJson, listText, resultsJson, resultsText } from './text.ts';

/** What the command uses of its process. */
export interface CommandWorld {
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** Replaces the progress line; prints nothing without a terminal. */
  progress(text: string): void;
  /** Aborted when the user interrupts the command. */
  readonly interrupted: AbortSignal;
}

/** Exit codes of the command; see the README. */
export const exitCodes = { right: 0, wrong: 1, slip: 2, nobody: 3, interrupted: 130 } as const;

/**
 * Runs a command line, without the program's name; resolves with the exit code. Rejects only on a
 * bug of its own.
 */
export async function main(argv: readonly string[], world: CommandWorld = processWorld()): Promise<number> {
  let options: CommandOptions | undefined;
  const command = commandOf(
    (text) => world.out(text),
    (text) => world.err(text),
    (given) => (options = given),
  );
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.right : exitCodes.slip;
    throw error;
  }
  return carryOut(options!, world);
}

async function carryOut(options: CommandOptions, world: CommandWorld): Promise<number> {
  const { only, list, json, connectString } = options;
  const unknown = only.filter((pattern) => !checks.some(({ name }) => name.includes(pattern)));
  if (unknown.length > 0)
    return slip(world, `no check has ${unknown.map((each) => `"${each}"`).join(' or ')} in its name; --list prints the names.`);
  const chosen = checks.filter(({ name }) => only.length === 0 || only.some((pattern) => name.includes(pattern)));
  if (list) {
    world.out(json ? listJson(chosen) : listText(chosen));
    return exitCodes.right;
  }
  if (connectString === undefined) return slip(world, 'missing connect string of a server, such as 127.0.0.1:2181.');
  if (options.reconfig && options.superAuth === undefined)
    return slip(world, '--reconfig needs --super: only the super user may write the configuration.');
  let suite: Suite;
  try {
    suite = await Suite.prepare(connectString, options);
  } catch (error) {
    world.err(`tskeeper-conformance: ${whyNobody(connectString, error)}\n`);
    return exitCodes.nobody;
  }
  if (!json) world.out(factsText(suite.facts));
  const results: CheckResult[] = [];
  for (const [at, check] of chosen.entries()) {
    world.progress(`${at + 1}/${chosen.length} ${check.name}`);
    const result = await suite.run(check, world.interrupted);
    if (world.interrupted.aborted) break;
    results.push(result);
  }
  world.progress('');
  const left = await suite.close().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  world.out(json ? resultsJson(suite.facts, results, left) : `\n${resultsText(results)}\n${countsText(results)}\n`);
  if (left !== undefined) world.err(`tskeeper-conformance: ${left}\n`);
  if (world.interrupted.aborted) return exitCodes.interrupted;
  return left === undefined && results.every(({ outcome }) => outcome !== 'failed') ? exitCodes.right : exitCodes.wrong;
}

function slip(world: CommandWorld, sentence: string): number {
  world.err(`tskeeper-conformance: ${sentence}\n`);
  return exitCodes.slip;
}

function whyNobody(connectString: string, error: unknown): string {
  if (KeeperError.is(error, 'NoNode')) return `the chroot of ${connectString} does not exist; create it, or name another one.`;
  if (KeeperError.is(error, 'NoAuth'))
    return `no permission to create a znode at ${connectString}; name a chroot where anyone may create znodes.`;
  if (KeeperError.is(error, 'ConnectionLoss')) return `cannot open a session at ${connectString}: ${error.reason ?? error.message}.`;
  return error instanceof Error ? error.message : String(error);
}

/**
 * The first Ctrl+C ends the running check and removes the scratch znode; the second one ends the
 * process.
 */
function processWorld(): CommandWorld {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort());
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    // Return to the beginning of the line and erase it.
    progress: (text) => void (process.stderr.isTTY && process.stderr.write(`\r\u001b[K${text}`)),
    interrupted: interruption.signal,
  };
}
