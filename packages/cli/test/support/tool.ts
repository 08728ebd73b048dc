/** Runs a command line in this process, with a fake terminal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineSnapshot, defineTxnlog, run } from '../../src/index.ts';
import { FakeTerminal } from './fake-terminal.ts';

export interface ToolResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function tool(...argv: readonly string[]): Promise<ToolResult> {
  const terminal = new FakeTerminal();
  const code = await run(argv, terminal, [defineTxnlog, defineSnapshot]);
  return { code, out: terminal.output, err: terminal.errors };
}

/** Parses one object per line. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

export const fixtures: string = fileURLToPath(new URL('../../../../fixtures', import.meta.url));

/** A temporary folder with these files, deleted at the end of the scope. */
export function temporaryFolder(files: Readonly<Record<string, Uint8Array>> = {}): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'tskeeper-files-'));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(path, name), bytes);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
