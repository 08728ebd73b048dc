/** Runs command lines in this process against the test's own server. */
import { TestServer } from '@tskeeper/testing';
import { defineZk, run } from '../../src/index.ts';
import { FakeTerminal } from './fake-terminal.ts';
import type { ToolResult } from './tool.ts';

export interface ZkServer extends AsyncDisposable {
  readonly connectString: string;
  /** Runs `tskeeper -s <server> ...` to its end. */
  zk(...argv: readonly string[]): Promise<ToolResult>;
  /** Number of data and child watches on the server. */
  watchCount(): number;
  close(): Promise<void>;
}

export async function testServer(port = 0): Promise<ZkServer> {
  const server = await TestServer.start({ port, config: { extendedTypesEnabled: true } });
  const { connectString } = server;
  return {
    connectString,
    zk: async (...argv) => await zkAt(connectString, new FakeTerminal(), ...argv),
    watchCount: () => server.inspect.watchCount(),
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

export async function zkAt(connectString: string, terminal: FakeTerminal, ...argv: readonly string[]): Promise<ToolResult> {
  const code = await run(['-s', connectString, ...argv], terminal, [defineZk]);
  return { code, out: terminal.output, err: terminal.errors };
}
