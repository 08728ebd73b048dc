/** The transform of docs/guides/jest.md converts ES modules to CommonJS that loads. */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import { expect, test } from 'vitest';

/** Evaluates CommonJS as Jest does, inside a function. */
function load(code: string, file: string, require: (name: string) => unknown): Record<string, unknown> {
  const module = { exports: {} };
  compileFunction(code, ['module', 'exports', 'require', '__filename'])(module, module.exports, require, file);
  return module.exports;
}

test('the transform converts a module with imports, exports and import.meta to CommonJS', async () => {
  const { default: transform } = await import('./esm-to-commonjs.js');
  const source =
    "import { sep } from 'node:path';\nexport const where = import.meta.url;\nexport class A { #b = sep; get b() { return this.#b; } }\n";
  for (const file of ['/a/b.js', '/a/b.ts']) {
    const { where, A } = load(transform.process(source, file).code, file, createRequire(import.meta.url));
    expect(where).toBe(`file://${file}`);
    expect(new (A as new () => { b: string })().b).toBe('/');
  }
});

test('the transform converts every module of the client and its dependencies to CommonJS', async () => {
  const { default: transform } = await import('./esm-to-commonjs.js');
  for (const name of ['client', 'protocol']) {
    const folder = join(import.meta.dirname, '../../..', name, 'src');
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((each) => each.endsWith('.ts'))) {
      const { code } = transform.process(readFileSync(join(folder, file), 'utf8'), join(folder, file));
      expect(code).not.toMatch(/^(?:import|export) /m);
      expect(code.replace(/^const importMetaUrl.*$/m, '')).not.toContain('import.meta');
    }
  }
});
