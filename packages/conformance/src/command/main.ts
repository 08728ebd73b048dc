/**
 * The command. It ends with 0 if no check failed and the scratch znode was removed, with 1 if a
 * check failed or something was left, with 2 for an invalid command line, with 3 if no server could
 * be checked, and with 130 after Ctrl+C.
 */
import { KeeperError } from '@tskeeper/client';
import { CommanderError } from 'commander';
import { checks } from '../checks/all.ts';
import { type CheckResult, Suite } from '../suite.ts';
import { type CommandOptions, createCommand } from './options.ts';
import { countsText, factsText, listJson, listText, resultsJson, resultsText } from './text.ts';

/** What the command uses of its process. */
export interface CommandEnvironment {
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
export const exitCodes = { passed: 0, failed: 1, usageError: 2, unreachable: 3, interrupted: 130 } as const;

/**
 * Runs a command line, without the program's name; resolves with the exit code. Rejects only on a
 * bug of its own.
 */
export async function main(argv: readonly string[], environment: CommandEnvironment = processEnvironment()): Promise<number> {
  let options: CommandOptions | undefined;
  const command = createCommand(
    (text) => environment.out(text),
    (text) => environment.err(text),
    (given) => (options = given),
  );
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.passed : exitCodes.usageError;
    throw error;
  }
  return runCommand(options!, environment);
}

async function runCommand(options: CommandOptions, environment: CommandEnvironment): Promise<number> {
  const { only, list, json, connectString } = options;
  const unknown = only.filter((pattern) => !checks.some(({ name }) => name.includes(pattern)));
  if (unknown.length > 0)
    return printUsageError(
      environment,
      `no check has ${unknown.map((each) => `"${each}"`).join(' or ')} in its name; --list prints the names.`,
    );
  const selectedChecks = checks.filter(({ name }) => only.length === 0 || only.some((pattern) => name.includes(pattern)));
  if (list) {
    environment.out(json ? listJson(selectedChecks) : listText(selectedChecks));
    return exitCodes.passed;
  }
  if (connectString === undefined) return printUsageError(environment, 'missing connect string of a server, such as 127.0.0.1:2181.');
  if (options.reconfig && options.superAuth === undefined)
    return printUsageError(environment, '--reconfig needs --super: only the super user may write the configuration.');
  let suite: Suite;
  try {
    suite = await Suite.prepare(connectString, options);
  } catch (error) {
    environment.err(`tskeeper-conformance: ${connectErrorText(connectString, error)}\n`);
    return exitCodes.unreachable;
  }
  if (!json) environment.out(factsText(suite.facts));
  const results: CheckResult[] = [];
  for (const [at, check] of selectedChecks.entries()) {
    environment.progress(`${at + 1}/${selectedChecks.length} ${check.name}`);
    const result = await suite.run(check, environment.interrupted);
    if (environment.interrupted.aborted) break;
    results.push(result);
  }
  environment.progress('');
  const cleanupError = await suite.close().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  environment.out(json ? resultsJson(suite.facts, results, cleanupError) : `\n${resultsText(results)}\n${countsText(results)}\n`);
  if (cleanupError !== undefined) environment.err(`tskeeper-conformance: ${cleanupError}\n`);
  if (environment.interrupted.aborted) return exitCodes.interrupted;
  return cleanupError === undefined && results.every(({ outcome }) => outcome !== 'failed') ? exitCodes.passed : exitCodes.failed;
}

function printUsageError(environment: CommandEnvironment, sentence: string): number {
  environment.err(`tskeeper-conformance: ${sentence}\n`);
  return exitCodes.usageError;
}

function connectErrorText(connectString: string, error: unknown): string {
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
function processEnvironment(): CommandEnvironment {
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
