/**
 * `node --import loader.js`: loads the mutant that TSKEEPER_MUTANT names in the place of one compiled file. Its source is changed, stripped
 * of its types as the build does it, and handed to whoever imports it.
 */
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { mutated } from './mutant.ts';
import { mutants } from './mutants.ts';

const root = new URL('../../../../', import.meta.url);

/** The compiled form of a source: its types gone, and its imports with the endings they have behind the build. */
export function compiled(source: string): string {
  const { outputText, diagnostics } = ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      rewriteRelativeImportExtensions: true,
      verbatimModuleSyntax: true,
    },
    reportDiagnostics: true,
  });
  const [wrong] = diagnostics ?? [];
  if (wrong !== undefined) throw new Error(ts.flattenDiagnosticMessageText(wrong.messageText, '\n'));
  return outputText;
}

const name = process.env['TSKEEPER_MUTANT'];
if (name !== undefined) {
  const mutant = mutants[name];
  if (mutant === undefined) throw new Error(`there is no mutant ${name}; there are ${Object.keys(mutants).join(', ')}`);
  const source = compiled(mutated(readFileSync(fileURLToPath(new URL(mutant.file, root)), 'utf8'), mutant));
  const url = new URL(mutant.file.replace('/src/', '/dist/').replace(/\.ts$/, '.js'), root).href;
  register('./hooks.js', { parentURL: import.meta.url, data: { url, source } });
}
