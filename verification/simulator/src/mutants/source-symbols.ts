/**
 * Finds declarations by name in the sources of the packages that a simulated process runs. An
 * address by name survives when code moves to another file.
 *
 * An address is the name of a class, function or constant at the top level of a file
 * (`isBetterVote`), or of a member of a class (`Leader.#checkQuorum`, `Leader.constructor`). If
 * several files declare the name, the package stands before it (`core/parentOf`), and if need be a
 * folder or file of that package (`core/tree/parentOf`, `core/tree/data-tree/parentOf`).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export interface SourceSymbol {
  /** Relative to the root of the repository. */
  readonly file: string;
  /** Text of the whole file. The declaration is `source.slice(start, end)`, without its comment. */
  readonly source: string;
  readonly start: number;
  readonly end: number;
}

/** The declarations in some source files. Only the files that an address may mean are parsed. */
export class SourceSymbols {
  readonly #sources: ReadonlyMap<string, string>;
  readonly #filesByName = new Map<string, string[]>();
  readonly #parsed = new Map<string, ts.SourceFile>();

  /** @param sources text by path, relative to the root of the repository */
  constructor(sources: ReadonlyMap<string, string>) {
    this.#sources = sources;
    for (const [file, source] of sources) {
      for (const [, name = ''] of source.matchAll(topLevelDeclaration)) {
        const files = this.#filesByName.get(name);
        if (files === undefined) this.#filesByName.set(name, [file]);
        else if (!files.includes(file)) files.push(file);
      }
    }
  }

  /** Throws an Error that says what is missing or ambiguous. */
  find(address: string): SourceSymbol {
    const slash = address.lastIndexOf('/');
    const [name = '', member, ...rest] = address.slice(slash + 1).split('.');
    if (rest.length > 0) throw new Error(`${address} is not a symbol: expected NAME, CLASS.MEMBER or PACKAGE/CLASS.MEMBER`);
    const folder = slash === -1 ? '' : `packages/${address.slice(0, slash).replace('/', '/src/')}`;
    const found = (this.#filesByName.get(name) ?? [])
      .filter((file) => folder === '' || file.startsWith(`${folder}/`) || file === `${folder}.ts`)
      .flatMap((file) => this.#topLevel(file, name).map((declaration) => ({ file, declaration })));
    const [first, second] = found;
    if (first === undefined) throw new Error(`symbol missing: no file declares ${address.slice(0, slash + 1)}${name}`);
    if (second !== undefined) {
      const addresses = found.map(({ file }) => fullAddress(file, name)).join(' or ');
      throw new Error(`symbol ambiguous: ${addresses}; write the package before it, and if need be folder and file`);
    }
    const { file, declaration } = first;
    const node = member === undefined ? declaration : memberOf(declaration, name, member, file);
    return { file, source: this.#sources.get(file)!, start: node.getStart(this.#parse(file)), end: node.end };
  }

  #topLevel(file: string, name: string): ts.Node[] {
    return this.#parse(file).statements.filter((statement) => {
      // A function without a body is an overload.
      if (ts.isFunctionDeclaration(statement)) return statement.name?.text === name && statement.body !== undefined;
      if (ts.isClassDeclaration(statement)) return statement.name?.text === name;
      if (!ts.isVariableStatement(statement)) return false;
      return statement.declarationList.declarations.some((each) => ts.isIdentifier(each.name) && each.name.text === name);
    });
  }

  #parse(file: string): ts.SourceFile {
    let parsed = this.#parsed.get(file);
    if (parsed === undefined) {
      parsed = ts.createSourceFile(file, this.#sources.get(file)!, ts.ScriptTarget.ES2022);
      this.#parsed.set(file, parsed);
    }
    return parsed;
  }
}

function fullAddress(file: string, name: string): string {
  const [, packageName, path] = /^packages\/([^/]+)\/src\/(.+)\.ts$/.exec(file)!;
  return `${packageName}/${path}/${name}`;
}

/** A light index: what only looks like a declaration is dropped when the file is parsed. */
const topLevelDeclaration = /^(?:export )?(?:default )?(?:abstract |async )*(?:class|function\*?|const|let) ([\w$]+)/gm;

function memberOf(declaration: ts.Node, className: string, name: string, file: string): ts.ClassElement {
  if (!ts.isClassDeclaration(declaration)) throw new Error(`symbol missing: ${className} is not a class (${file}), so it has no ${name}`);
  const [first, second] = declaration.members.filter((each) => isNamed(each, name));
  if (first === undefined) throw new Error(`symbol missing: class ${className} has no member ${name} (${file})`);
  if (second !== undefined) throw new Error(`symbol ambiguous: class ${className} has two members ${name} (${file}); use ${className}`);
  return first;
}

function isNamed(member: ts.ClassElement, name: string): boolean {
  // A method or constructor without a body is an overload.
  if (ts.isConstructorDeclaration(member)) return name === 'constructor' && member.body !== undefined;
  if (ts.isMethodDeclaration(member) && member.body === undefined) return false;
  return member.name !== undefined && (ts.isIdentifier(member.name) || ts.isPrivateIdentifier(member.name)) && member.name.text === name;
}

const root = fileURLToPath(new URL('../../../../', import.meta.url));

/** The packages whose code runs in a simulated process. */
const packages = ['protocol', 'core', 'runtime', 'client', 'recipes'];

let ofPackages: SourceSymbols | undefined;

/** The declarations of these packages. Their sources are read once per process. */
export function packageSymbols(): SourceSymbols {
  ofPackages ??= new SourceSymbols(readSources());
  return ofPackages;
}

function readSources(): Map<string, string> {
  const sources = new Map<string, string>();
  for (const each of packages) {
    const folder = `packages/${each}/src`;
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      const file = `${folder}/${path}`;
      if (file.endsWith('.ts')) sources.set(file, readFileSync(join(root, file), 'utf8'));
    }
  }
  return sources;
}
