import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startServer } from '../src/index.ts';

it('a plug-in for authentication is loaded from the folder of zoo.cfg, as ESM or as CommonJS', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tskeeper-plugin-'));
  try {
    const code = (scheme: string) => `{ scheme: '${scheme}', authenticate: () => ['x'], isValidId: () => true }`;
    writeFileSync(join(folder, 'one.mjs'), `export default ${code('one')};\n`);
    writeFileSync(join(folder, 'two.cjs'), `module.exports = () => (${code('two')});\n`);
    const lines = [
      `dataDir=${folder}/data`,
      'clientPortAddress=127.0.0.1',
      'clientPort=0',
      'authProvider.1=./one.mjs',
      'authProvider.2=./two.cjs',
    ];
    const configFile = join(folder, 'zoo.cfg');
    writeFileSync(configFile, lines.join('\n'));
    const server = await startServer({ configFile });
    await server.close();
    writeFileSync(configFile, [...lines, 'authProvider.3=./three.js'].join('\n'));
    await expect(startServer({ configFile })).rejects.toThrow(
      /zoo\.cfg:6: authProvider\.3 names the module \.\/three\.js, which cannot be loaded: /,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
