/** Whether a process with an open client exits: real processes, over real sockets. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Server, startServer } from '@tskeeper/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../support/bundle.ts';

let folder: string;
let program: string;
let server: Server;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-alive-'));
  program = await bundle("export { connect, createClient } from '@tskeeper/client';", join(folder, 'client.mjs'));
  server = await startServer({ dataDir: join(folder, 'data'), clientPort: 0 });
});

afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program until it exits by itself, or has printed `idle` and stays for a while. */
function run(body: string): Promise<{ readonly ended: boolean; readonly code: number | null; readonly output: string }> {
  const source = `import { connect, createClient } from ${JSON.stringify(program)};\nconst servers = ${JSON.stringify(server.connectString)};\n${body}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (output += bytes.toString()));
  return new Promise((resolve) => {
    // A program that stays alive prints it from a timer that does not keep it alive.
    child.stdout.on('data', () => {
      if (!output.includes('still here')) return;
      child.removeAllListeners('exit');
      child.kill('SIGKILL');
      resolve({ ended: false, code: null, output });
    });
    child.on('exit', (code) => resolve({ ended: true, code, output }));
  });
}

const stillHere = "setTimeout(() => console.log('still here'), 1500).unref();";

describe('keepProcessAlive', () => {
  it('false lets a process exit while a client is connected', async () => {
    const { ended, code, output } = await run(`
      const zk = await connect(servers, { keepProcessAlive: false });
      console.log(zk.state, (await zk.exists('/')).version);
      ${stillHere}`);
    expect([ended, code, output.trim()]).toEqual([true, 0, 'connected 0']);
  });

  it('false lets a process exit while a client looks for a server', async () => {
    const { ended, code, output } = await run(`
      const zk = createClient('127.0.0.1:1', { keepProcessAlive: false });
      console.log(zk.state);
      ${stillHere}`);
    expect([ended, code, output.trim()]).toEqual([true, 0, 'connecting']);
  });

  it('false keeps the process alive while the program waits: for a connection, calls, pauses between attempts, close', async () => {
    const { ended, code, output } = await run(`
      const zk = createClient('127.0.0.1:1', { keepProcessAlive: false, connectTimeoutMs: 500 });
      zk.on('connectFailed', ({ server, reason, attempt }) => { if (attempt === 1) console.log(server, reason); });
      try { await zk.ready(); } catch (error) { console.log(error.code); }
      const waiting = createClient(servers, { keepProcessAlive: false });
      console.log((await waiting.getData('/')).stat.version);
      await waiting.close();
      console.log(waiting.state);`);
    expect(output.trim().split('\n')).toEqual(['127.0.0.1:1 connection failed: ECONNREFUSED', 'ConnectionLoss', '0', 'closed']);
    expect([ended, code]).toEqual([true, 0]);
  });

  it('is true by default: an open client keeps its process alive', async () => {
    const { ended } = await run(`const zk = await connect(servers); ${stillHere}`);
    expect(ended).toBe(false);
  });
});
