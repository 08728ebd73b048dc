/**
 * The command. It ends with 0 when nothing failed and nothing was left behind, with 1 when something was, with 2 for a slip on the command line,
 * with 3 when there was nobody to check, and with 130 when it was interrupted.
 */
import { KeeperError } from '@tskeeper/client';
import { CommanderError } from 'commander';
import { checks } from '../checks/all.ts';
import { type CheckResult, Suite } from '../suite.ts';
import { type CommandOptions, commandOf } from './options.ts';
import { countsText, factsText, listJson, listText, resultsJson, resultsText } from './text.ts';

/** What the command touches of the process it runs in. */
export interface CommandWorld {
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** Shows what is under way, in the place of what was shown before; where nobody sits, nothing. */
  progress(text: string): void;
  /** Aborted when the user wants it to end. */
  readonly interrupted: AbortSignal;
}

/** How the command ends; see the README. */
export const exitCodes = { right: 0, wrong: 1, slip: 2, nobody: 3, interrupted: 130 } as const;

/** Runs a command line, without the program's name, and resolves with the exit code. Rejects with nothing but a mistake of its own. */
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
    return slip(world, `no check has ${unknown.map((each) => `"${each}"`).join(' or ')} in its name; --list tells the names.`);
  const chosen = checks.filter(({ name }) => only.length === 0 || only.some((pattern) => name.includes(pattern)));
  if (list) {
    world.out(json ? listJson(chosen) : listText(chosen));
    return exitCodes.right;
  }
  if (connectString === undefined) return slip(world, 'give it the connect string of a server, as 127.0.0.1:2181.');
  if (options.reconfig && options.superAuth === undefined)
    return slip(world, '--reconfig needs --super, since nobody else may write the configuration.');
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
  if (KeeperError.is(error, 'NoNode')) return `the chroot of ${connectString} does not exist; make it, or name another.`;
  if (KeeperError.is(error, 'NoAuth')) return `nothing may be created at ${connectString}; name a chroot where anyone may create.`;
  if (KeeperError.is(error, 'ConnectionLoss')) return `no server of ${connectString} opens a session (${error.reason ?? error.message}).`;
  return error instanceof Error ? error.message : String(error);
}

/** The first Ctrl+C ends the check that runs, and removes what was made; the second ends the process. */
function processWorld(): CommandWorld {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort());
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    // Back to the beginning of the line, and the rest of it erased.
    progress: (text) => void (process.stderr.isTTY && process.stderr.write(`\r\u001b[K${text}`)),
    interrupted: interruption.signal,
  };
}
