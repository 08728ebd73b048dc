/** The command in its own process. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { connect } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { beforeAll, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../../..');
const bin = join(root, 'packages/conformance/bin/conformance.js');

beforeAll(() => {
  const built = spawnSync(process.execPath, [join(root, 'node_modules/typescript-7/bin/tsc'), '-b'], { cwd: root, encoding: 'utf8' });
  expect(built.stdout + built.stderr).toBe('');
});

it('the command exits with a code for the results', async () => {
  await using server = await TestServer.start();
  const child = spawn(process.execPath, [bin, server.connectString, '--only', 'stat.']);
  let out = '';
  child.stdout.on('data', (bytes) => (out += bytes));
  const [code] = (await once(child, 'close')) as [number];
  expect(out).toMatch(/7 passed, 0 failed, 0 not applicable\n$/);
  expect(code).toBe(0);
});

it('the command removes the scratch znode after Ctrl+C', async () => {
  await using server = await TestServer.start();
  const child = spawn(process.execPath, [bin, server.connectString, '--slow'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGINT');
  child.stdout.resume();
  const [code] = (await once(child, 'close')) as [number];
  expect(code).toBe(130);
  await using zk = await connect(server.connectString);
  expect((await zk.getChildren('/')).children).toEqual(['zookeeper']);
});
