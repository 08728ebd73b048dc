/**
 * Login configurations of Java, such as `-Djava.security.auth.login.config` names: which module
 * proves an identity, and with which options. The syntax is that of
 * javax.security.auth.login.Configuration.
 *
 *     Server {
 *       org.apache.zookeeper.server.auth.DigestLoginModule required
 *       user_bob="secret";
 *     };
 */
import { ConfigError } from './config-error.ts';

export interface JaasModule {
  /** The name of its class. */
  readonly className: string;
  readonly options: ReadonlyMap<string, string>;
  /** `jaas.conf:3` */
  readonly where: string;
}

/** The modules of each section, by the name of the section. */
export type JaasSections = ReadonlyMap<string, readonly JaasModule[]>;

const controlFlags = ['required', 'requisite', 'sufficient', 'optional'];

interface Token {
  readonly text: string;
  readonly isQuoted: boolean;
  readonly line: number;
}

/**
 * @param properties the values for `${name}` in options.
 * @throws ConfigError with file, line and remedy.
 */
export function parseJaas(text: string, file: string, properties: ReadonlyMap<string, string>): JaasSections {
  return new JaasParser(text, file, properties).sections();
}

class JaasParser {
  readonly #file: string;
  readonly #properties: ReadonlyMap<string, string>;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string, file: string, properties: ReadonlyMap<string, string>) {
    this.#file = file;
    this.#properties = properties;
    this.#tokens = this.#tokensOf(text);
  }

  sections(): JaasSections {
    const sections = new Map<string, JaasModule[]>();
    while (this.#at < this.#tokens.length) {
      const name = this.#word('the name of a section');
      if (sections.has(name.text)) this.#fail(name.line, `the section ${name.text} is there twice. Remove one of them.`);
      this.#expect('{', `after the name of the section ${name.text}`);
      const modules: JaasModule[] = [];
      while (this.#next?.text !== '}') modules.push(this.#module());
      this.#expect('}', `at the end of the section ${name.text}`);
      this.#expect(';', `after the } of the section ${name.text}`);
      sections.set(name.text, modules);
    }
    return sections;
  }

  #module(): JaasModule {
    const className = this.#word('the class name of a login module');
    const flag = this.#word(`one of ${controlFlags.join(', ')} after ${className.text}`);
    if (!controlFlags.includes(flag.text.toLowerCase())) {
      this.#fail(flag.line, `${flag.text} stands where one of ${controlFlags.join(', ')} belongs, after ${className.text}.`);
    }
    const options = new Map<string, string>();
    while (this.#next?.text !== ';') {
      const name = this.#word(`an option of ${className.text}, or the ; that ends it`);
      this.#expect('=', `after the option ${name.text}`);
      const value = this.#take(`the value of the option ${name.text}`);
      if (!value.isQuoted && /^[{};=]$/.test(value.text))
        this.#fail(value.line, `the option ${name.text} has no value. Write ${name.text}="value".`);
      if (options.has(name.text)) this.#fail(name.line, `the option ${name.text} is there twice. Remove one of them.`);
      options.set(name.text, this.#expanded(value));
    }
    this.#expect(';', `after the options of ${className.text}`);
    return { className: className.text, options, where: `${this.#file}:${className.line}` };
  }

  get #next(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #take(what: string): Token {
    const token = this.#next;
    if (token === undefined) this.#fail(this.#tokens.at(-1)?.line ?? 1, `the file ends where ${what} belongs.`);
    this.#at++;
    return token;
  }

  #word(what: string): Token {
    const token = this.#take(what);
    if (!token.isQuoted && /^[{};=]$/.test(token.text)) this.#fail(token.line, `a ${token.text} stands where ${what} belongs.`);
    return token;
  }

  #expect(sign: string, where: string): void {
    const token = this.#take(`a ${sign} ${where}`);
    if (token.isQuoted || token.text !== sign) this.#fail(token.line, `a ${sign} is missing ${where}.`);
  }

  #expanded({ text, line }: Token): string {
    return text.replaceAll(/\$\{([^}]*)\}/g, (_, name: string) => {
      const value = name === '/' ? '/' : this.#properties.get(name);
      if (value === undefined) this.#fail(line, `\${${name}} has no value. Pass -D${name}=value, or write the value into the file.`);
      return value;
    });
  }

  #tokensOf(text: string): Token[] {
    const token = /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|"((?:[^"\\\n]|\\.)*)"|([{};=])|((?:[^\s{};="/]|\/(?![/*]))+)/gy;
    const tokens: Token[] = [];
    let line = 1;
    let end = 0;
    for (const match of text.matchAll(token)) {
      const [whole, inQuotes, sign, word] = match;
      if (inQuotes !== undefined) tokens.push({ text: unescape(inQuotes), isQuoted: true, line });
      else if (sign !== undefined || word !== undefined) tokens.push({ text: sign ?? word!, isQuoted: false, line });
      line += whole.split('\n').length - 1;
      end = match.index + whole.length;
    }
    // Only a quote or a comment that does not end can stop the scan.
    if (end < text.length) this.#fail(line, `${text[end] === '"' ? 'a quote' : 'a comment'} begins here and does not end.`);
    return tokens;
  }

  #fail(line: number, sentence: string): never {
    throw new ConfigError(`${this.#file}:${line}: ${sentence}`);
  }
}

const escapes: Readonly<Record<string, string>> = { a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** The escapes of Java's StreamTokenizer: C's, and up to three octal digits. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-3]?[0-7]{1,2}|.)/g, (_, code: string) =>
    /^[0-7]+$/.test(code) ? String.fromCodePoint(Number.parseInt(code, 8)) : (escapes[code] ?? code),
  );
}
