/** A call of the client, and the validation of its arguments. */
import { checkCount, checkOptions, checkValue, type Kind, kinds, optionKinds, type OptionKinds } from './arguments.ts';

/** A call, described by its form: `setData(path, data, options)`. */
export class CallForm {
  readonly #form: string;
  readonly #most: number;
  readonly #names: readonly string[];
  readonly #options: OptionKinds;
  readonly #positional: readonly Kind[];

  /**
   * `positional`: kinds of the arguments before the options; an argument called `path` is always a
   * string.
   */
  constructor(form: string, options: OptionKinds = optionKinds(), ...positional: readonly Kind[]) {
    this.#form = form;
    this.#options = options;
    const names = form.slice(form.indexOf('(') + 1, -1).split(', ');
    this.#names = names.map((name) => `${form.slice(0, form.indexOf('('))}: the ${name}`);
    this.#most = names[0] === '' ? 0 : names.length;
    this.#positional = names[0] === 'path' ? [pathKind, ...positional] : positional;
  }

  /**
   * `count` is `arguments.length` of the call; `first` and `second` are the arguments before the
   * options. Throws a TypeError, or a RangeError for a number out of range.
   */
  check(count: number, options: unknown, first?: unknown, second?: unknown): void {
    checkCount(count, this.#most, this.#form);
    const { length } = this.#positional;
    if (length > 0) checkValue(first, this.#positional[0]!, this.#names[0]!);
    if (length > 1) checkValue(second, this.#positional[1]!, this.#names[1]!);
    checkOptions(options, this.#options, this.#form);
  }

  /** The error that `check` would throw; undefined if the arguments are valid. */
  misuse(count: number, options: unknown, first?: unknown, second?: unknown): unknown {
    try {
      this.check(count, options, first, second);
      return undefined;
    } catch (error) {
      return error;
    }
  }
}

/** A string that is not a valid path is found later, and causes a KeeperError: BadArguments. */
const pathKind: Kind = { ...kinds.string, wanted: 'a string, as in "/app/config"' };
