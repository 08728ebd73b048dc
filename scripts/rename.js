#!/usr/bin/env node
/**
 * Renames identifiers and files everywhere at once: in sources and tests by the language service of TypeScript, in the patches of mutants, and in comments and docs where a name
 * cannot mean anything else.
 *
 *   node scripts/rename.js TABLE ... [--dry-run]
 *
 * A line of a table is `file | name | new name`. Names: `topLevel`, `Container.member`, `Class.#private`, `fn(parameter)`, `Class.method(parameter)`,
 * `fn/local`, `Class.method/local`; or `FILE`, and the file's new path. Lines that begin with `#` are comments. Run `npm run check` and the tests afterwards:
 * a new name may already mean something else where it comes to stand.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** @typedef {{ file: string, name: string, to: string, at: string }} Row */

/** @returns {{ rows: Row[], moves: Map<string, string> }} */
function readTables(paths) {
  const rows = [];
  const moves = new Map();
  for (const path of paths) {
    for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
      // What follows is for a reader: values, which no language service knows.
      if (line.startsWith('## ')) break;
      if (line.trim() === '' || line.startsWith('#')) continue;
      const [file, name, to, ...rest] = line.split(' | ').map((cell) => cell.trim());
      if (to === undefined || rest.length > 0) throw new Error(`${path}:${index + 1}: expected "file | name | new name", got: ${line}`);
      if (name === 'FILE') moves.set(file, to);
      else rows.push({ file, name, to: to.replace(/^.*[.#/]/, ''), at: `${path}:${index + 1}` });
    }
  }
  return { rows, moves };
}

// --- The program

function trackedFiles() {
  return execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(root, path)));
}

function createService(files) {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.test.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, files: [], include: [] },
    ts.sys,
    root,
    undefined,
    join(root, 'tsconfig.test.json'),
  );
  const texts = new Map();
  const read = (path) => {
    if (!texts.has(path)) texts.set(path, ts.sys.readFile(path));
    return texts.get(path);
  };
  const host = {
    getScriptFileNames: () => files.map((file) => join(root, file)),
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const text = read(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getCompilationSettings: () => ({ ...options, noEmit: true, composite: false, incremental: false, allowJs: true, checkJs: false }),
    getDefaultLibFileName: (it) => ts.getDefaultLibFilePath(it),
    fileExists: (path) => ts.sys.fileExists(path),
    readFile: read,
    readDirectory: (...args) => ts.sys.readDirectory(...args),
    directoryExists: (path) => ts.sys.directoryExists(path),
    getDirectories: (path) => ts.sys.getDirectories(path),
    realpath: (path) => ts.sys.realpath(path),
  };
  return ts.createLanguageService(host, ts.createDocumentRegistry());
}

// --- Where a name of the table is declared

function nameOf(node) {
  const { name } = node;
  if (name === undefined || !(ts.isIdentifier(name) || ts.isPrivateIdentifier(name) || ts.isStringLiteral(name))) return undefined;
  return name.text;
}

/** Declarations below a node that are its own: not those of what is declared within them. */
function declarationsIn(node, name, found = []) {
  ts.forEachChild(node, (child) => {
    if (nameOf(child) === name) found.push(child);
    declarationsIn(child, name, found);
  });
  return found;
}

function topLevel(source, name) {
  const found = [];
  for (const statement of source.statements) {
    if (nameOf(statement) === name) found.push(statement);
    if (ts.isVariableStatement(statement)) {
      for (const declaration of statement.declarationList.declarations) {
        if (ts.isIdentifier(declaration.name) && declaration.name.text === name) found.push(declaration);
        else if (ts.isObjectBindingPattern(declaration.name)) found.push(...declarationsIn(declaration.name, name));
      }
    }
  }
  return found;
}

function membersOf(node) {
  if (ts.isClassLike(node) || ts.isInterfaceDeclaration(node) || ts.isTypeLiteralNode(node) || ts.isEnumDeclaration(node))
    return [...node.members];
  if (ts.isObjectLiteralExpression(node)) return [...node.properties];
  const found = [];
  // A type alias, a variable: the literals within it, but not within their own members.
  ts.forEachChild(node, (child) => {
    found.push(...membersOf(child));
  });
  return found;
}

function isLocalDeclaration(node) {
  return ts.isParameter(node) || ts.isBindingElement(node) || ts.isVariableDeclaration(node) || ts.isFunctionDeclaration(node);
}

/** @returns {import('typescript').Node[]} the declarations that a row speaks of */
function resolve(source, spec) {
  const [, path, parameter, local] = /^([^(/]+)(?:\(([^)]*)\)|\/(.+))?$/.exec(spec) ?? [];
  if (path === undefined) return [];
  const [head, ...members] = path.split('.');
  let nodes = topLevel(source, head);
  for (const member of members) {
    nodes = nodes.flatMap((node) => {
      const found = membersOf(node);
      if (member === 'constructor') return found.filter((each) => ts.isConstructorDeclaration(each));
      const exact = found.filter((each) => nameOf(each) === member);
      return exact.length > 0 ? exact : found.filter((each) => nameOf(each) === `#${member}`);
    });
  }
  if (parameter !== undefined) {
    return nodes.flatMap((node) => declarationsIn(node, parameter).filter((each) => ts.isParameter(each) || ts.isBindingElement(each)));
  }
  if (local !== undefined) return nodes.flatMap((node) => declarationsIn(node, local).filter(isLocalDeclaration));
  return nodes;
}

// --- Places to change

const alias = { providePrefixAndSuffixTextForRename: true };

function nodeAt(source, position) {
  const visit = (node) => {
    if (position < node.getStart(source) || position >= node.end) return undefined;
    return ts.forEachChild(node, visit) ?? node;
  };
  return visit(source);
}

/**
 * Collects edits by file: position -> what is there afterwards. In `{ name }` a name means two things, a property and a variable, which may be
 * renamed by different rows.
 */
class Edits {
  #byFile = new Map();
  conflicts = [];

  /** @param {{ plain?: string, property?: string, variable?: string }} names what the place is renamed to */
  add(file, start, length, names, row) {
    let edits = this.#byFile.get(file);
    if (edits === undefined) this.#byFile.set(file, (edits = new Map()));
    const known = edits.get(start);
    if (known === undefined) {
      edits.set(start, { start, length, names, row });
      return;
    }
    for (const [kind, name] of Object.entries(names)) {
      if (known.names[kind] === undefined) known.names = { ...known.names, [kind]: name };
      else if (known.names[kind] !== name)
        this.conflicts.push(`${file}@${start}: ${known.names[kind]} (${known.row.at}) or ${name} (${row.at})`);
    }
  }

  /** @param {string} text of the file */
  of(file, text) {
    const edits = [...(this.#byFile.get(file)?.values() ?? [])].sort((a, b) => a.start - b.start);
    return edits.map((edit) => ({ ...edit, text: textOf(edit.names, text.slice(edit.start, edit.start + edit.length)) }));
  }
}

function textOf({ plain, property, variable }, old) {
  if (property === undefined && variable === undefined) return plain;
  const [left, right] = [property ?? old, variable ?? old];
  return left === right ? left : `${left}: ${right}`;
}

function apply(text, edits) {
  let [out, at] = ['', 0];
  for (const { start, length, text: by } of edits) {
    out += text.slice(at, start) + by;
    at = start + length;
  }
  return out + text.slice(at);
}

class Renamer {
  #service;
  #program;
  #checker;
  edits = new Edits();
  problems = [];

  constructor(service) {
    this.#service = service;
    this.#program = service.getProgram();
    this.#checker = this.#program.getTypeChecker();
  }

  #typeKeys;

  /** The names of members that are texts in types: `Pick<T, 'x'>`, `Omit<T, 'x'>`, `T['x']`. */
  get #keysInTypes() {
    if (this.#typeKeys !== undefined) return this.#typeKeys;
    const keys = (this.#typeKeys = []);
    const add = (type, names) => {
      const of = this.#checker.getApparentType(this.#checker.getTypeFromTypeNode(type));
      for (const name of ts.isUnionTypeNode(names) ? names.types : [names]) {
        if (!ts.isLiteralTypeNode(name) || !ts.isStringLiteral(name.literal)) continue;
        const symbol = this.#checker.getPropertyOfType(of, name.literal.text);
        if (symbol !== undefined) keys.push({ literal: name.literal, symbol });
      }
    };
    const visit = (node) => {
      if (ts.isTypeReferenceNode(node) && /^(?:Pick|Omit)$/.test(node.typeName.getText()) && node.typeArguments?.length === 2) {
        add(...node.typeArguments);
      } else if (ts.isIndexedAccessTypeNode(node)) {
        add(node.objectType, node.indexType);
      }
      ts.forEachChild(node, visit);
    };
    for (const source of this.#program.getSourceFiles()) {
      if (!source.fileName.includes('/node_modules/') && !source.isDeclarationFile) visit(source);
    }
    return keys;
  }

  rename(row) {
    const path = join(root, row.file);
    const source = this.#program.getSourceFile(path);
    if (source === undefined) return void this.problems.push(`${row.at}: there is no ${row.file}`);
    const declarations = resolve(source, row.name);
    if (declarations.length === 0) return void this.problems.push(`${row.at}: ${row.file} has no ${row.name}`);
    const work = declarations.map((node) => ({ path, position: node.name.getStart(source) }));
    const seen = new Set();
    /** Places where the name stands in for two things, and both get the new name. */
    const whole = new Map();
    const found = [];
    for (let next = work.pop(); next !== undefined; next = work.pop()) {
      const key = `${next.path}@${next.position}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const locations = this.#service.findRenameLocations(next.path, next.position, false, false, alias);
      if (locations === undefined) {
        this.problems.push(`${row.at}: ${row.name} cannot be renamed`);
        continue;
      }
      for (const location of locations) {
        found.push(location);
        const place = `${location.fileName}@${location.textSpan.start}`;
        if (location.prefixText === undefined && location.suffixText === undefined) continue;
        const file = this.#program.getSourceFile(location.fileName);
        const node = nodeAt(file, location.textSpan.start);
        const { parent } = node;
        if (ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent)) {
          whole.set(place, 'plain');
          work.push({ path: location.fileName, position: location.textSpan.start });
        } else if (location.suffixText !== undefined && (ts.isShorthandPropertyAssignment(parent) || ts.isBindingElement(parent))) {
          // The property is renamed: the variable of its name goes along, unless it is declared elsewhere for others as well.
          const symbol = ts.isBindingElement(parent)
            ? this.#checker.getSymbolAtLocation(parent.name)
            : this.#checker.getShorthandAssignmentValueSymbol(parent);
          const declaration = symbol?.declarations?.[0];
          const name = declaration?.name;
          if (name === undefined || !ts.isIdentifier(name) || !isLocal(declaration)) continue;
          whole.set(place, 'both');
          work.push({ path: declaration.getSourceFile().fileName, position: name.getStart() });
        }
      }
    }
    const renamed = new Set(found.map(({ fileName, textSpan }) => `${fileName}@${textSpan.start}`));
    const isRenamed = ({ name }) => name && renamed.has(`${name.getSourceFile().fileName}@${name.getStart()}`);
    for (const { literal: key, symbol } of this.#keysInTypes) {
      if (!symbol.declarations?.some(isRenamed)) continue;
      const file = relative(root, key.getSourceFile().fileName);
      this.edits.add(file, key.getStart() + 1, key.text.length, { plain: row.to }, row);
    }
    for (const { fileName, textSpan, prefixText, suffixText } of found) {
      const old = this.#program.getSourceFile(fileName).text.slice(textSpan.start, textSpan.start + textSpan.length);
      const to = old.startsWith('#') ? `#${row.to}` : row.to;
      let names = { plain: to };
      if (whole.get(`${fileName}@${textSpan.start}`) === 'both') names = { property: to, variable: to };
      else if (whole.has(`${fileName}@${textSpan.start}`)) names = { plain: to };
      else if (suffixText !== undefined) names = { property: to };
      else if (prefixText !== undefined) names = { variable: to };
      this.edits.add(relative(root, fileName), textSpan.start, textSpan.length, names, row);
    }
  }
}

function isLocal(declaration) {
  if (ts.isParameter(declaration) || ts.isBindingElement(declaration)) return true;
  return ts.isVariableDeclaration(declaration) && !ts.isSourceFile(declaration.parent.parent.parent);
}

// --- The patches of mutants

const mutantFolder = 'verification/simulator/src/mutants/';

/** The patches in a file of mutants, with the literals of their texts. */
function patchesIn(source) {
  const patches = [];
  const visit = (node) => {
    if (ts.isObjectLiteralExpression(node)) {
      const [symbol, original, replacement] = ['symbol', 'original', 'replacement'].map(
        (name) => node.properties.find((each) => nameOf(each) === name)?.initializer,
      );
      if (original !== undefined && replacement !== undefined) {
        patches.push({ symbol, original, replacement, line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1 });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return patches;
}

/** Declarations that a mutant's symbol may mean; source-symbols.ts of the simulator documents its form. */
function addressed(symbol, files, program) {
  const [, qualifier = '', name] = /^(?:(.+)\/)?([^/]+)$/.exec(symbol);
  const folder = `packages/${qualifier.replace('/', '/src/')}`;
  return files
    .filter((file) => /^packages\/(?:protocol|core|runtime|client|recipes)\/src\//.test(file))
    .filter((file) => qualifier === '' || file.startsWith(`${folder}/`) || file === `${folder}.ts`)
    .flatMap((file) => resolve(program.getSourceFile(join(root, file)), name).map((node) => ({ file, node })))
    .filter(({ node }) => !ts.isInterfaceDeclaration(node.parent) && !ts.isInterfaceDeclaration(node) && !ts.isTypeAliasDeclaration(node))
    .filter(({ node }) => !ts.isFunctionLike(node) || node.body !== undefined);
}

/** The symbol with the new names of its declarations. */
function renamedSymbol(symbol, node, changes) {
  const newName = (declaration) =>
    declaration.name === undefined
      ? 'constructor'
      : (changes.find(({ start }) => start === declaration.name.getStart())?.text ?? declaration.name.getText());
  const qualifier = symbol.slice(0, symbol.lastIndexOf('/') + 1);
  return qualifier + (ts.isClassLike(node.parent) ? `${newName(node.parent)}.${newName(node)}` : newName(node));
}

function literal(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\t', '\\t');
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote;
}

/** The text put in place of a patched piece, with the names that the piece's file has got. */
function renamedIdentifiers(by, source, edits, problems, place) {
  const known = new Map();
  for (const {
    start,
    length,
    names: { plain, property, variable },
  } of edits) {
    const old = source.slice(start, start + length);
    const to = plain ?? variable ?? property;
    const member = old.startsWith('#') || /\.\s*$/.test(source.slice(0, start)) ? '.' : '';
    const key = member + old;
    if (!known.has(key)) known.set(key, new Set());
    known.get(key).add(to);
  }
  return by.replaceAll(/#?\b[A-Za-z_$][\w$]*/g, (old, at) => {
    const member = old.startsWith('#') || by[at - 1] === '.' ? '.' : '';
    const to = known.get(member + old);
    if (to === undefined) return old;
    const left = stays(source, old, member, edits);
    if (to.size > 1 || left)
      problems.push(`${place}: is ${old} in the text put in now ${[...to].join(' or ')}${left ? ', or still its own' : ''}?`);
    return [...to][0];
  });
}

/** Whether the file has places of that name that are not renamed. */
function stays(source, old, member, edits) {
  const starts = new Set(edits.map(({ start }) => start));
  for (const { index } of source.matchAll(new RegExp(`(?<![\\w$#])${old.replaceAll('$', '\\$')}\\b`, 'g'))) {
    const isMember = old.startsWith('#') || source[index - 1] === '.' ? '.' : '';
    if (isMember === member && !starts.has(index)) return true;
  }
  return false;
}

function renamePatches(files, program, edits, problems) {
  for (const file of files.filter((path) => path.startsWith(mutantFolder))) {
    const source = program.getSourceFile(join(root, file));
    for (const { line, ...nodes } of patchesIn(source)) {
      const place = `${file}:${line}`;
      const texts = Object.values(nodes).map((node) => (node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined));
      if (texts.includes(undefined)) {
        problems.push(`${place}: symbol, original or replacement is not a plain string`);
        continue;
      }
      const [symbol, original, replacement] = texts;
      const [found, ...others] = addressed(symbol, files, program);
      if (found === undefined || others.length > 0) {
        problems.push(`${place}: ${symbol} is ${found === undefined ? 'missing' : 'ambiguous'}`);
        continue;
      }
      const { text } = program.getSourceFile(join(root, found.file));
      const changes = edits.of(found.file, text);
      if (changes.length === 0) continue;
      const declaration = ts.isVariableDeclaration(found.node) ? found.node.parent.parent : found.node;
      const at = text.indexOf(original, declaration.getStart());
      const inside = changes.filter(({ start, length }) => start >= at && start + length <= at + original.length);
      const shifted = inside.map((edit) => ({ ...edit, start: edit.start - at }));
      const row = { at: place, to: '' };
      const put = (node, next) => {
        if (next !== node.text) edits.add(file, node.getStart(source), node.getWidth(source), { plain: literal(next) }, row);
      };
      put(nodes.symbol, renamedSymbol(symbol, found.node, changes));
      put(nodes.original, apply(original, shifted));
      put(nodes.replacement, renamedIdentifiers(replacement, text, changes, problems, place));
    }
  }
}

// --- Comments and docs

/** Names that can mean nothing else: of more than one word, and of one thing only. */
function distinctive(rows) {
  const names = new Map();
  for (const { name, to } of rows) {
    const old = name.replace(/^.*[./(#]/, '').replace(/\)$/, '');
    if (!/^[A-Z]?[a-z\d]+[A-Z]/.test(old)) continue;
    if (!names.has(old)) names.set(old, new Set());
    names.get(old).add(to);
  }
  return new Map([...names].filter(([, to]) => to.size === 1).map(([old, to]) => [old, [...to][0]]));
}

/**
 * Of the distinctive names, those that a comment of a file, or any page, can only mean: every identifier of that name in the file, or anywhere, is renamed (so
 * not `startsWith`).
 */
function meantNames(names, scripts, program, edits) {
  const [inFile, kept, renamed] = [new Map(), new Set(), new Set()];
  for (const file of scripts) {
    const source = program.getSourceFile(join(root, file));
    if (source === undefined) continue;
    const changed = new Set(edits.of(file, source.text).map(({ start }) => start));
    const [all, some] = [new Set(), new Set()];
    const visit = (node) => {
      if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) {
        const name = node.text.replace('#', '');
        if (names.has(name)) (changed.has(node.getStart(source)) ? all : some).add(name);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    for (const name of some) kept.add(name);
    for (const name of all) renamed.add(name);
    inFile.set(file, new Map([...names].filter(([name]) => all.has(name) && !some.has(name))));
  }
  return { inFile, everywhere: new Map([...names].filter(([name]) => renamed.has(name) && !kept.has(name))) };
}

function commentRanges(source) {
  const ranges = [];
  const text = source.text;
  const seen = new Set();
  const visit = (node) => {
    for (const range of [...(ts.getLeadingCommentRanges(text, node.pos) ?? []), ...(ts.getTrailingCommentRanges(text, node.end) ?? [])]) {
      if (!seen.has(range.pos)) ranges.push(range);
      seen.add(range.pos);
    }
    for (const child of node.getChildren(source)) visit(child);
  };
  visit(source);
  return ranges;
}

function wordEdits(text, from, to, names) {
  const edits = [];
  for (const match of text.slice(from, to).matchAll(/[A-Za-z_$][\w$]*/g)) {
    const by = names.get(match[0]);
    if (by !== undefined) edits.push({ start: from + match.index, length: match[0].length, text: by });
  }
  return edits;
}

// --- Files

/** The text of a file with its relative imports as they must be when files have moved. */
function movedImports(file, text, moves, exists) {
  const here = dirname(file);
  const there = dirname(moves.get(file) ?? file);
  return text.replaceAll(/((?:\bfrom|\bimport|\bimport\()\s*')(\.[^']*)(')/g, (whole, begin, specifier, end) => {
    const target = join(here, specifier);
    if (!exists(target)) return whole;
    const next = relative(there, moves.get(target) ?? target);
    return `${begin}${next.startsWith('.') ? next : `./${next}`}${end}`;
  });
}

function pathMentions(text, moves) {
  // As docs name them: without packages/, verification/ and src/. All at once, since a path that becomes free may be the new one of another file.
  const short = (path) => path.replace(/^(?:packages|verification)\//, '').replace('/src/', '/');
  const escaped = (path) => path.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const all = new Map(
    [...moves].flatMap(([from, to]) => [
      [from, to],
      [from.replace(/^packages\//, ''), to.replace(/^packages\//, '')],
      [short(from), short(to)],
    ]),
  );
  const pattern = [...all.keys()]
    .sort((a, b) => b.length - a.length)
    .map(escaped)
    .join('|');
  // A link of a page leads there by `../`.
  return text.replaceAll(new RegExp(`(?:(?<![\\w/-])|(?<=\\.\\./)(?=packages/))(?:${pattern})`, 'g'), (path) => all.get(path));
}

/** The new texts of the files in which names of the table occur, and what could not be renamed. */
function renameIn(tracked, scripts, rows) {
  const service = createService(scripts);
  const renamer = new Renamer(service);
  const program = service.getProgram();
  for (const row of rows) renamer.rename(row);
  const { edits, problems } = renamer;
  renamePatches(scripts, program, edits, problems);
  const names = distinctive(rows);
  const { inFile, everywhere } = meantNames(names, scripts, program, edits);
  const written = new Map();
  for (const file of scripts) {
    const source = program.getSourceFile(join(root, file));
    if (source === undefined) continue;
    const own = edits.of(file, source.text);
    const meant = new Map([...(inFile.get(file) ?? []), ...everywhere]);
    const words = meant.size === 0 ? [] : commentRanges(source).flatMap(({ pos, end }) => wordEdits(source.text, pos, end, meant));
    const text = apply(
      source.text,
      [...own, ...words].sort((a, b) => a.start - b.start),
    );
    if (text !== source.text) written.set(file, text);
  }
  for (const file of tracked.filter((path) => path.endsWith('.md'))) {
    const text = readFileSync(join(root, file), 'utf8');
    const next = text.replaceAll(/`[^`\n]+`/g, (span) => apply(span, wordEdits(span, 0, span.length, everywhere)));
    if (next !== text) written.set(file, next);
  }
  return { written, problems: [...problems, ...edits.conflicts] };
}

function main(args) {
  const dry = args.includes('--dry-run');
  const { rows, moves } = readTables(args.filter((arg) => !arg.startsWith('--')));
  const tracked = trackedFiles();
  const missing = [...moves.keys()].filter((from) => !tracked.includes(from));
  for (const from of missing) moves.delete(from);
  // A test stands where its source does.
  for (const [from, to] of moves) {
    for (const kind of ['.test.ts', '.integration.test.ts', '.process.ts']) {
      const test = (path) => path.replace('/src/', '/test/').replace(/\.ts$/, kind);
      if (tracked.includes(test(from)) && !moves.has(test(from))) moves.set(test(from), test(to));
    }
  }
  const scripts = tracked.filter((path) => /\.(?:ts|js)$/.test(path) && !path.startsWith('fixtures/'));
  // Moves alone need no language service, which takes half a minute.
  const { written, problems } = rows.length === 0 ? { written: new Map(), problems: [] } : renameIn(tracked, scripts, rows);
  if (moves.size > 0) {
    const all = new Set(tracked);
    for (const file of tracked.filter((path) => /\.(?:ts|js|md|json|mjs)$/.test(path) && path !== 'package-lock.json')) {
      const text = written.get(file) ?? readFileSync(join(root, file), 'utf8');
      const next = pathMentions(/\.(?:ts|js|mjs)$/.test(file) ? movedImports(file, text, moves, (path) => all.has(path)) : text, moves);
      if (next !== text) written.set(file, next);
    }
  }
  problems.push(...missing.map((from) => `there is no ${from}: it was not moved`));
  for (const problem of problems) console.error(problem);
  if (!dry) {
    for (const [file, text] of written) writeFileSync(join(root, file), text);
    for (const [from, to] of moves) {
      mkdirSync(dirname(join(root, to)), { recursive: true });
      renameSync(join(root, from), join(root, to));
      const text = readFileSync(join(root, to), 'utf8');
      if (/import\.meta/.test(text) && from.split('/').length !== to.split('/').length) console.error(`${to}: look at its import.meta`);
    }
  }
  console.log(`${rows.length} names, ${moves.size} files: ${written.size} files change, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
