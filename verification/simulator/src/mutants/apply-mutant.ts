/**
 * Applies a mutant to the source that its symbol names. Each error names the mutant and its symbol,
 * and says whether the symbol or the piece of text is missing or ambiguous.
 */
import type { Mutant } from './mutant.ts';
import type { SourceSymbol, SourceSymbols } from './source-symbols.ts';

export interface MutatedFile {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly source: string;
}

export function applyMutant(
  name: string,
  mutant: Pick<Mutant, 'symbol' | 'original' | 'replacement'>,
  symbols: SourceSymbols,
): MutatedFile {
  const { symbol, original, replacement } = mutant;
  const { file, source, start, end } = findSymbol(name, symbol, symbols);
  const text = source.slice(start, end);
  const at = text.indexOf(original);
  const where = `${symbol} (${file})`;
  if (at === -1) throw new Error(`mutant ${name}: pattern missing: ${where} does not contain the text to replace; adapt it:\n${original}`);
  if (text.includes(original, at + 1))
    throw new Error(
      `mutant ${name}: pattern ambiguous: ${where} contains the text to replace more than once; make it longer:\n${original}`,
    );
  return { file, source: source.slice(0, start + at) + replacement + source.slice(start + at + original.length) };
}

function findSymbol(name: string, symbol: string, symbols: SourceSymbols): SourceSymbol {
  try {
    return symbols.find(symbol);
  } catch (error) {
    throw new Error(`mutant ${name}: ${symbol}: ${(error as Error).message}`, { cause: error });
  }
}
