/**
 * Runs a foreign program that checks a server with its own client library and prints one JSON line
 * per check: {"check": name} with "ok": true, or "ok": false and "detail", or "skipped" and a
 * reason. An unsuccessful end of the program is a failure of its own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import type { Report } from '../report.ts';

export interface DriverFacts {
  readonly connect: string;
  readonly superAuth: string;
  readonly version: readonly [number, number, number];
  readonly tickTime: number;
  readonly minSessionTimeout: number;
  readonly maxSessionTimeout: number;
  readonly extendedTypes: boolean;
  readonly enforceQuota: boolean;
}

/** The facts as arguments of the C and Java programs. */
export function factArguments(facts: DriverFacts): string[] {
  const { connect, superAuth, version, minSessionTimeout, maxSessionTimeout, tickTime, extendedTypes, enforceQuota } = facts;
  const numbers = [minSessionTimeout, maxSessionTimeout, tickTime, Number(extendedTypes), Number(enforceQuota)].map(String);
  return [connect, superAuth, version.join('.'), ...numbers];
}

interface CheckLine {
  readonly check?: string;
  readonly ok?: boolean;
  readonly detail?: string;
  readonly skipped?: string;
}

/** Time limit of a driver; one that hangs is ended and reported. */
const driverTimeoutMs = 180_000;

export async function runDriver(
  name: string,
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  report: Report,
): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const timer = setTimeout(() => child.kill('SIGKILL'), driverTimeoutMs);
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaints = (complaints + chunk.toString('utf8')).slice(-2000);
  });
  let checks = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"check"')) continue;
    const { check = '', ok, detail, skipped } = JSON.parse(line) as CheckLine;
    checks += 1;
    const title = `${name}: ${check}`;
    if (skipped !== undefined) report.skip(title, skipped);
    else if (ok === true) report.pass(title);
    else report.fail(title, detail ?? 'no detail given');
  }
  const [code, signal] = await exited;
  clearTimeout(timer);
  if (code !== 0)
    report.fail(`${name}: the driver ends with success`, `it ended with ${signal ?? `code ${code}`} after ${checks} checks; ${complaints}`);
  else if (checks === 0) report.fail(`${name}: the driver runs checks`, `it printed no check; ${complaints}`);
}
