import { parseLines, type Pair } from 'dot-properties';

/** One key with its value, and the place where it is written. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  /** `zoo.cfg:12`, `-Dzookeeper.snapCount`, `-Djute.maxbuffer in JVMFLAGS`. */
  readonly where: string;
}

/**
 * The lines of a Java properties file, in order. The syntax is that of `java.util.Properties`:
 * comments, continuation lines, `=`, `:` or a blank as separator, escapes.
 */
export function parseProperties(text: string, file: string): Setting[] {
  const settings: Setting[] = [];
  let line = 1;
  let scanned = 0;
  for (const node of parseLines(text, true)) {
    if (node.type !== 'PAIR') continue;
    const { key, value, range } = node as Required<Pair>;
    for (; scanned < range[0]; scanned++) {
      if (text[scanned] === '\n') line++;
    }
    settings.push({ name: key.trim(), value: value.trim(), where: `${file}:${line}` });
  }
  return settings;
}

export interface JavaFlags {
  /** In order; of two settings with the same name the later one applies. */
  readonly properties: readonly Setting[];
  /** Everything that is not a -D setting. */
  readonly others: readonly string[];
}

/** The settings in JVMFLAGS or SERVER_JVMFLAGS: words, split as a shell splits them. */
export function parseJavaFlags(text: string, variable: string): JavaFlags {
  const properties: Setting[] = [];
  const others: string[] = [];
  for (const word of splitWords(text)) {
    if (word.startsWith('-D')) properties.push(parseDefinition(word.slice(2), ` in ${variable}`));
    else others.push(word);
  }
  return { properties, others };
}

/** `name=value` of a -D setting; the value is empty without `=`, as in Java. */
export function parseDefinition(definition: string, origin = ''): Setting {
  const equals = definition.indexOf('=');
  const name = equals < 0 ? definition : definition.slice(0, equals);
  return { name, value: equals < 0 ? '' : definition.slice(equals + 1).trim(), where: `-D${name}${origin}` };
}

function splitWords(text: string): string[] {
  const words = text.match(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs, (_, escaped?: string, double?: string, single?: string) => {
      return escaped ?? double?.replaceAll(/\\(.)/gs, '$1') ?? single ?? '';
    }),
  );
}
