/**
 * The common interface of validation libraries, the specification Standard Schema
 * (standardschema.dev): Zod, Valibot, ArkType and others.
 */

/** A schema of any such library. `Input` is what it accepts, `Output` its result. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The interface of the library. */
  readonly '~standard': {
    /** Of the specification. */
    readonly version: 1;
    /** Of the library. */
    readonly vendor: string;
    /** Validates a value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** For the compiler alone. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The result of a schema for a value, or what is wrong with it. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong with a value. */
export interface StandardIssue {
  /** For people. */
  readonly message: string;
  /** Where in the value; absent if it concerns the whole value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** How a program validates values: a function that returns the value or throws, or a schema. */
export type Validator<Value> = ((value: unknown) => Value) | StandardSchema<unknown, Value>;

/** Throws a TypeError that says what is wrong with the value. */
export function validate<Value>(validator: Validator<Value>, value: unknown): Value {
  // First, since a schema may be a function as well.
  if (!('~standard' in validator)) return validator(value);
  const result = validator['~standard'].validate(value);
  if (result instanceof Promise) {
    result.catch(() => undefined);
    throw new TypeError(
      `this schema of ${validator['~standard'].vendor} is asynchronous, and data are validated synchronously; remove its asynchronous parts`,
    );
  }
  if (result.issues === undefined) return result.value;
  throw new TypeError(result.issues.map(issueText).join('; '));
}

function issueText({ message, path = [] }: StandardIssue): string {
  const where = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return where === '' ? message : `${where}: ${message}`;
}
