import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { VirtualServer } from '../support/virtual-server.ts';
import tokenScheme, { proofOf } from './token-scheme.js';

const folder = mkdtempSync(join(tmpdir(), 'tskeeper-token-'));
const file = join(folder, 'secret');
writeFileSync(file, 'known to few');
process.env['TOKEN_SECRET_FILE'] = file;
afterAll(() => rmSync(folder, { recursive: true }));

const later = Math.floor(Date.now() / 1000) + 3600;

it.each([
  ['a token', `anna:${later}:${proofOf('known to few', 'anna', later)}`, 'Ok'],
  ['a token of another secret', `anna:${later}:${proofOf('known to many', 'anna', later)}`, 'AuthFailed'],
  ['a token of another name', `bob:${later}:${proofOf('known to few', 'anna', later)}`, 'AuthFailed'],
  ['a token that has expired', `anna:1:${proofOf('known to few', 'anna', 1)}`, 'AuthFailed'],
  ['no token', '', 'AuthFailed'],
])('the scheme of the guide: %s', async (_what, token, expected) => {
  const server = await VirtualServer.start('authProvider.1=./token-scheme.js', {
    modules: { './token-scheme.js': { default: tokenScheme } },
  });
  const client = await server.join();
  expect((await client.call('auth', { type: 0, scheme: 'token', auth: Buffer.from(token) })).err).toBe(expected);
  if (expected !== 'Ok') return;
  expect((await client.call('whoAmI', undefined)).body.clientInfo.at(-1)).toEqual({ authScheme: 'token', user: 'anna' });
});
