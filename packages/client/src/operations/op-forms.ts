/** The forms of the operations of `multi` and `multiRead`, for the validation of arguments. */
import { checkOptions, checkValue, type Kind, kinds, oneOf, optionKinds, type OptionKinds, orOneOf } from '../arguments.ts';
import { CallForm } from '../call-form.ts';

/** Servers check the range and answer BadArguments. */
const ttlMs: Kind = { wanted: 'a number of milliseconds', fits: (given) => typeof given === 'number' };
export const createSettings = {
  mode: oneOf(
    'persistent',
    'ephemeral',
    'persistentSequential',
    'ephemeralSequential',
    'container',
    'persistentWithTtl',
    'persistentSequentialWithTtl',
  ),
  acl: kinds.acl,
  ttlMs,
};
/** A znode may be created without data. */
export const optionalData: Kind = orOneOf(kinds.data, undefined);

/** The functions of `op`. */
export const opForms = {
  create: new CallForm('op.create(path, data, options)', optionKinds(createSettings), optionalData),
  delete: new CallForm('op.delete(path, options)', optionKinds({ version: kinds.version })),
  setData: new CallForm('op.setData(path, data, options)', optionKinds({ version: kinds.version }), kinds.data),
  check: new CallForm('op.check(path, options)', optionKinds({ version: kinds.version })),
  getData: new CallForm('op.getData(path)'),
  getChildren: new CallForm('op.getChildren(path)'),
} as const;

const opKinds: Readonly<Record<string, OptionKinds>> = (() => {
  const on = { op: kinds.string, path: kinds.string };
  const version = { version: kinds.version };
  return {
    create: optionKinds(on, { data: kinds.data }, createSettings),
    delete: optionKinds(on, version),
    setData: optionKinds(on, { data: kinds.data }, version),
    check: optionKinds(on, version),
    getData: optionKinds(on),
    getChildren: optionKinds(on),
  };
})();

const known: Readonly<Record<'multi' | 'multiRead', readonly string[]>> = {
  multi: ['create', 'delete', 'setData', 'check'],
  multiRead: ['getData', 'getChildren'],
};
const arrays = {
  multi: { wanted: 'an array such as [op.create(path), op.delete(path)]', fits: Array.isArray },
  multiRead: { wanted: 'an array such as [op.getData(path)]', fits: Array.isArray },
} as const satisfies Readonly<Record<string, Kind>>;

/**
 * Throws a TypeError if `ops` is not an array of operations of this method. `what` names the value
 * in errors, if it is not an argument of the method.
 */
export function checkOps(ops: unknown, method: 'multi' | 'multiRead', what: string = method): void {
  checkValue(ops, arrays[method], `${what}: ops`);
  (ops as readonly unknown[]).forEach((each, index) => {
    const name: unknown = kinds.object.fits(each) ? (each as { readonly op?: unknown }).op : undefined;
    if (typeof name !== 'string' || !known[method].includes(name)) {
      const made = known[method].map((one) => `op.${one}`).join(', ');
      throw new TypeError(`${what}: ops[${index}] is not an operation of ${method}; create it with ${made}`);
    }
    checkOptions(each, opKinds[name]!, `${what}: ops[${index}], op.${name}`);
  });
}
