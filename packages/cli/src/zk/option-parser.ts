/**
 * Parses options as Apache Commons CLI does, which zkCli uses: options may be anywhere among the
 * arguments, flags can be joined (`-sw`), a value can follow its option directly (`-v3`, `-v=3`),
 * and a negative number is a value where one is expected. No library parses them like this.
 */

export interface OptionSpec {
  /** Without its hyphen: `s`, `members`. */
  readonly name: string;
  /** Name of its value; a flag has none. */
  readonly value?: string;
  readonly description: string;
}

export interface OptionRules {
  readonly options: readonly OptionSpec[];
  /** Options that every command has; the rules for `options` do not apply to them. */
  readonly common?: readonly OptionSpec[];
  /** Whether the options exclude each other, and whether one of them is required. */
  readonly exclusive?: 'at most one' | 'exactly one' | undefined;
}

/** An invalid command line, in the words of Commons CLI. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}

export class ParsedLine {
  readonly args: readonly string[];
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(args: readonly string[], values: ReadonlyMap<string, readonly string[]>) {
    this.args = args;
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The value of an option; of one given twice, the first value. */
  value(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }
}

export function parseLine(words: readonly string[], rules: OptionRules): ParsedLine {
  return new LineParser(rules).parse(words);
}

class LineParser {
  readonly #rules: OptionRules;
  readonly #specs: ReadonlyMap<string, OptionSpec>;
  readonly #args: string[] = [];
  readonly #values = new Map<string, string[]>();
  /** The option that expects a value next. */
  #optionAwaitingValue: OptionSpec | undefined;
  #selected: string | undefined;

  constructor(rules: OptionRules) {
    this.#rules = rules;
    this.#specs = new Map([...(rules.common ?? []), ...rules.options].map((spec) => [spec.name, spec]));
  }

  parse(words: readonly string[]): ParsedLine {
    let optionsEnded = false;
    for (const word of words) {
      if (optionsEnded) this.#args.push(word);
      else if (word === '--') optionsEnded = true;
      else if (this.#optionAwaitingValue !== undefined && !this.#isOption(word)) this.#setValue(unquote(word));
      else if (word.startsWith('-') && word !== '-') this.#parseOption(word);
      else this.#addArgument(word);
    }
    this.#rejectMissingValue();
    if (this.#rules.exclusive === 'exactly one' && this.#selected === undefined) {
      const all = this.#rules.options.map(({ name, description }) => `-${name} ${description}`).join(', ');
      throw new OptionError(`Missing required option: [${all}]`);
    }
    return new ParsedLine(this.#args, this.#values);
  }

  /** Whether a word is an option; a negative number is one only where no value is expected. */
  #isOption(word: string): boolean {
    if (/^-\d+(\.\d+)?$/.test(word)) return false;
    const name = (/^-+([^=]*)/.exec(word)?.[1] ?? '').trim();
    return name !== '' && (this.#specs.has(name) || this.#specs.has(name[0]!));
  }

  #setValue(value: string): void {
    this.#values.get(this.#optionAwaitingValue!.name)!.push(value);
    this.#optionAwaitingValue = undefined;
  }

  #addArgument(word: string): void {
    if (word.startsWith('-') && word.length > 1) throw new OptionError(`Unrecognized option: ${word}`);
    this.#args.push(word);
  }

  #parseOption(word: string): void {
    const text = word.replace(/^--?/, '');
    const equals = text.indexOf('=');
    if (equals === -1) {
      if (this.#specs.has(text)) this.#addOption(text);
      else if (text.length === 1) this.#addArgument(word);
      else this.#parseJoined(word, text);
      return;
    }
    const name = text.slice(0, equals);
    const spec = this.#specs.get(name);
    if (spec?.value === undefined) {
      this.#addArgument(word);
      return;
    }
    this.#addOption(name);
    this.#setValue(text.slice(equals + 1));
  }

  /** `-sw`, or `-v3`. */
  #parseJoined(word: string, text: string): void {
    for (let at = 0; at < text.length; at++) {
      const spec = this.#specs.get(text[at]!);
      if (spec === undefined) {
        this.#addArgument(word);
        return;
      }
      this.#addOption(spec.name);
      if (spec.value !== undefined && at + 1 < text.length) {
        this.#setValue(text.slice(at + 1));
        return;
      }
    }
  }

  #addOption(name: string): void {
    this.#rejectMissingValue();
    if (this.#rules.exclusive !== undefined && this.#rules.options.some((spec) => spec.name === name)) {
      if (this.#selected !== undefined && this.#selected !== name) {
        throw new OptionError(
          `The option '${name}' was specified but an option from this group has already been selected: '${this.#selected}'`,
        );
      }
      this.#selected = name;
    }
    if (!this.#values.has(name)) this.#values.set(name, []);
    this.#optionAwaitingValue = this.#specs.get(name)!.value === undefined ? undefined : this.#specs.get(name);
  }

  #rejectMissingValue(): void {
    if (this.#optionAwaitingValue !== undefined) throw new OptionError(`Missing argument for option: ${this.#optionAwaitingValue.name}`);
  }
}

/** Removes one pair of enclosing double quotes. */
function unquote(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') && !value.slice(1, -1).includes('"') ? value.slice(1, -1) : value;
}
