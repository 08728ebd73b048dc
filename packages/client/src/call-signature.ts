/** A call of the client, and the validation of its arguments. */
import { checkArgumentCount, checkOptions, checkValue, type ValueType, valueTypes, optionTypes, type OptionTypes } from './arguments.ts';

/** A call, described by its form: `setData(path, data, options)`. */
export class CallSignature {
  readonly #signature: string;
  readonly #maxArguments: number;
  readonly #labels: readonly string[];
  readonly #options: OptionTypes;
  readonly #positional: readonly ValueType[];

  /**
   * `positional`: kinds of the arguments before the options; an argument called `path` is always a
   * string.
   */
  constructor(signature: string, options: OptionTypes = optionTypes(), ...positional: readonly ValueType[]) {
    this.#signature = signature;
    this.#options = options;
    const names = signature.slice(signature.indexOf('(') + 1, -1).split(', ');
    this.#labels = names.map((name) => `${signature.slice(0, signature.indexOf('('))}: the ${name}`);
    this.#maxArguments = names[0] === '' ? 0 : names.length;
    this.#positional = names[0] === 'path' ? [pathType, ...positional] : positional;
  }

  /**
   * `count` is `arguments.length` of the call; `first` and `second` are the arguments before the
   * options. Throws a TypeError, or a RangeError for a number out of range.
   */
  check(count: number, options: unknown, first?: unknown, second?: unknown): void {
    checkArgumentCount(count, this.#maxArguments, this.#signature);
    const { length } = this.#positional;
    if (length > 0) checkValue(first, this.#positional[0]!, this.#labels[0]!);
    if (length > 1) checkValue(second, this.#positional[1]!, this.#labels[1]!);
    checkOptions(options, this.#options, this.#signature);
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
const pathType: ValueType = { ...valueTypes.string, expected: 'a string, as in "/app/config"' };
