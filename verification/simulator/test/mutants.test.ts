/**
 * `npm run sim:mutants` and `npm run explore` show that each mutant is caught. This test checks
 * that each mutant still fits its source: its symbol is declared once, its text occurs once in the
 * symbol, and the changed source parses.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { isFull } from '../../../test/breadth.ts';
import { applyMutant, mutants, packageSymbols, SourceSymbols, transpile } from '../src/internal.ts';

const root = new URL('../../../', import.meta.url);

const door = `/** Has one bolt: #bolts = 1. */
export class Door {
  static readonly widthMax = 3;
  #bolts = 1;
  constructor(bolts: number) {
    this.#bolts = bolts;
  }
  open(): void;
  open(key: string): void;
  open(key?: string): void {
    if (key !== undefined) this.#bolts = 0;
  }
  get width(): number {
    return 2;
  }
  set width(_to: number) {}
}
export const colour = 'red';
`;

const symbols = new SourceSymbols(
  new Map([
    ['packages/core/src/house/door.ts', door],
    ['packages/core/src/house/wall.ts', 'export const height = 2;\nfunction area() {\n  return height * 3;\n}\n'],
    ['packages/core/src/garden/wall.ts', 'const text = `\nclass Hedge {}`;\nexport const height = 1;\nexport async function grow() {}\n'],
    ['packages/recipes/src/area.ts', 'export interface Door {}\nexport function area(): number {\n  return 4;\n}\n'],
  ]),
);

function textOf(address: string): string {
  const { source, start, end } = symbols.find(address);
  return source.slice(start, end);
}

function apply(symbol: string, original: string, replacement = 'x') {
  return applyMutant('m', { symbol, original, replacement }, symbols);
}

/** Syntax errors of a source. Takes a sixth of the time that compiling takes. */
function syntaxErrors(source: string): string[] {
  const file = ts.createSourceFile('x.ts', source, ts.ScriptTarget.ES2022);
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost({}),
    getSourceFile: () => file,
  };
  const program = ts.createProgram({ rootNames: ['x.ts'], options: { noResolve: true, noLib: true, types: [] }, host });
  return program.getSyntacticDiagnostics(file).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('a symbol', () => {
  test.each([
    ['colour', "export const colour = 'red';"],
    ['Door.constructor', 'constructor(bolts: number) {\n    this.#bolts = bolts;\n  }'],
    ['Door.#bolts', '#bolts = 1;'],
    ['Door.widthMax', 'static readonly widthMax = 3;'],
    ['Door.open', 'open(key?: string): void {\n    if (key !== undefined) this.#bolts = 0;\n  }'],
    ['grow', 'export async function grow() {}'],
    ['core/area', 'function area() {\n  return height * 3;\n}'],
    ['recipes/area', 'export function area(): number {\n  return 4;\n}'],
    ['core/garden/height', 'export const height = 1;'],
    ['core/house/wall/height', 'export const height = 2;'],
  ])('%s is found with its whole text', (address, text) => {
    expect(textOf(address)).toBe(text);
  });

  test('that is a class has the text of the class without its comment', () => {
    expect(textOf('Door')).toBe(door.slice(door.indexOf('export class'), door.indexOf('\nexport const colour')));
  });
});

describe('a mutant', () => {
  test('changes only the text of its symbol', () => {
    expect(apply('Door.#bolts', '1', '2')).toEqual({
      file: 'packages/core/src/house/door.ts',
      source: door.replace('\n  #bolts = 1;', '\n  #bolts = 2;'),
    });
  });

  test.each([
    ['Window', 'mutant m: Window: symbol missing: no file declares Window'],
    ['Hedge', 'mutant m: Hedge: symbol missing: no file declares Hedge'],
    ['recipes/Door', 'mutant m: recipes/Door: symbol missing: no file declares recipes/Door'],
    ['Door.#locks', 'mutant m: Door.#locks: symbol missing: class Door has no member #locks (packages/core/src/house/door.ts)'],
    ['colour.red', 'mutant m: colour.red: symbol missing: colour is not a class (packages/core/src/house/door.ts), so it has no red'],
    ['Door.open.key', 'mutant m: Door.open.key: Door.open.key is not a symbol: expected NAME, CLASS.MEMBER or PACKAGE/CLASS.MEMBER'],
  ])('whose symbol %s is missing is an error', (symbol, message) => {
    expect(() => apply(symbol, 'x')).toThrow(message);
  });

  test.each([
    ['area', 'mutant m: area: symbol ambiguous: core/house/wall/area or recipes/area/area; write the package before it'],
    ['core/height', 'mutant m: core/height: symbol ambiguous: core/house/wall/height or core/garden/wall/height; write'],
    ['Door.width', 'mutant m: Door.width: symbol ambiguous: class Door has two members width (packages/core/src/house/door.ts); use Door'],
  ])('whose symbol %s is ambiguous is an error', (symbol, message) => {
    expect(() => apply(symbol, 'x')).toThrow(message);
  });

  test('whose text is missing in its symbol, even if it occurs elsewhere in the file, is an error', () => {
    expect(() => apply('Door.open', 'bolts = bolts')).toThrow(
      'mutant m: pattern missing: Door.open (packages/core/src/house/door.ts) does not contain the text to replace; adapt it:\nbolts = bolts',
    );
  });

  test('whose text occurs twice in its symbol is an error', () => {
    expect(() => apply('Door.constructor', 'bolts')).toThrow(
      'mutant m: pattern ambiguous: Door.constructor (packages/core/src/house/door.ts) contains the text to replace more than once; make it longer:\nbolts',
    );
  });

  test('whose replacement does not parse is an error', () => {
    const { source } = apply('core/area', 'return', '(');
    expect(() => transpile(source, 'mutant m: core/area')).toThrow("mutant m: core/area does not parse: ')' expected");
    expect(syntaxErrors(source)).toContain("')' expected.");
  });

  test.each(Object.entries(mutants))('%s changes the compiled source', (name, mutant) => {
    const { file, source } = applyMutant(name, mutant, packageSymbols());
    const title = `mutant ${name}: ${mutant.symbol} (${file})`;
    const original = readFileSync(fileURLToPath(new URL(file, root)), 'utf8');
    if (isFull) {
      expect(transpile(source, title)).not.toBe(transpile(original, file));
    } else {
      expect(source).not.toBe(original);
      expect(syntaxErrors(source), `${title} does not parse`).toEqual([]);
    }
  });
});
