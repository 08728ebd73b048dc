import ts from 'typescript';

/**
 * The compiled form of a source: without types, and with the import endings that the build writes.
 * If the source does not parse, the error begins with `title`.
 */
export function transpile(source: string, title: string): string {
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
  if (wrong !== undefined) throw new Error(`${title} does not parse: ${ts.flattenDiagnosticMessageText(wrong.messageText, '\n')}`);
  return outputText;
}
