/** A server of a test's own, and command lines run against it in this process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Server, startServer } from '@tskeeper/server';
import { defineZk, run } from '../../src/index.ts';
import { FakeTerminal } from './fake-terminal.ts';
import type { ToolResult } from './tool.ts';

export interface TestServer extends AsyncDisposable {
  readonly connectString: string;
  readonly folder: string;
  /** Runs `tskeeper -s <server> ...` to its end. */
  zk(...argv: readonly string[]): Promise<ToolResult>;
  /** Data and child watches that the server knows. */
  watchCount(): number;
  close(): Promise<void>;
}

export interface TestServerOptions {
  readonly definitions?: readonly string[];
  readonly clientPort?: number;
}

export async function testServer({ definitions = [], clientPort = 0 }: TestServerOptions = {}): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), 'tskeeper-cli-'));
  const server: Server = await startServer({
    dataDir: folder,
    clientPort,
    clientAddress: '127.0.0.1',
    definitions: ['zookeeper.extendedTypesEnabled=true', ...definitions],
  });
  const { connectString } = server;
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= server.close());
  return {
    connectString,
    folder,
    zk: async (...argv) => await zkAt(connectString, new FakeTerminal(), ...argv),
    watchCount: () => server.inspect.watchCount(),
    close,
    async [Symbol.asyncDispose]() {
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function zkAt(connectString: string, terminal: FakeTerminal, ...argv: readonly string[]): Promise<ToolResult> {
  const code = await run(['-s', connectString, ...argv], terminal, [defineZk]);
  return { code, out: terminal.output, err: terminal.errors };
}
