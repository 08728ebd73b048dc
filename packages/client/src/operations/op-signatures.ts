/** The forms of the operations of `multi` and `multiRead`, for the validation of arguments. */
import { checkOptions, checkValue, type ValueType, valueTypes, oneOf, optionTypes, type OptionTypes, orOneOf } from '../arguments.ts';
import { CallSignature } from '../call-signature.ts';

/** Servers check the range and answer BadArguments. */
const ttlMsType: ValueType = { expected: 'a number of milliseconds', accepts: (given) => typeof given === 'number' };
export const createSettingTypes = {
  mode: oneOf(
    'persistent',
    'ephemeral',
    'persistentSequential',
    'ephemeralSequential',
    'container',
    'persistentWithTtl',
    'persistentSequentialWithTtl',
  ),
  acl: valueTypes.acl,
  ttlMs: ttlMsType,
};
/** A znode may be created without data. */
export const optionalDataType: ValueType = orOneOf(valueTypes.data, undefined);

/** The functions of `op`. */
export const opSignatures = {
  create: new CallSignature('op.create(path, data, options)', optionTypes(createSettingTypes), optionalDataType),
  delete: new CallSignature('op.delete(path, options)', optionTypes({ version: valueTypes.version })),
  setData: new CallSignature('op.setData(path, data, options)', optionTypes({ version: valueTypes.version }), valueTypes.data),
  check: new CallSignature('op.check(path, options)', optionTypes({ version: valueTypes.version })),
  getData: new CallSignature('op.getData(path)'),
  getChildren: new CallSignature('op.getChildren(path)'),
} as const;

const opTypes: Readonly<Record<string, OptionTypes>> = (() => {
  const on = { op: valueTypes.string, path: valueTypes.string };
  const version = { version: valueTypes.version };
  return {
    create: optionTypes(on, { data: valueTypes.data }, createSettingTypes),
    delete: optionTypes(on, version),
    setData: optionTypes(on, { data: valueTypes.data }, version),
    check: optionTypes(on, version),
    getData: optionTypes(on),
    getChildren: optionTypes(on),
  };
})();

const opNames: Readonly<Record<'multi' | 'multiRead', readonly string[]>> = {
  multi: ['create', 'delete', 'setData', 'check'],
  multiRead: ['getData', 'getChildren'],
};
const opListTypes = {
  multi: { expected: 'an array such as [op.create(path), op.delete(path)]', accepts: Array.isArray },
  multiRead: { expected: 'an array such as [op.getData(path)]', accepts: Array.isArray },
} as const satisfies Readonly<Record<string, ValueType>>;

/**
 * Throws a TypeError if `ops` is not an array of operations of this method. `label` names the value
 * in errors, if it is not an argument of the method.
 */
export function checkOps(ops: unknown, method: 'multi' | 'multiRead', label: string = method): void {
  checkValue(ops, opListTypes[method], `${label}: ops`);
  (ops as readonly unknown[]).forEach((each, index) => {
    const name: unknown = valueTypes.object.accepts(each) ? (each as { readonly op?: unknown }).op : undefined;
    if (typeof name !== 'string' || !opNames[method].includes(name)) {
      const made = opNames[method].map((one) => `op.${one}`).join(', ');
      throw new TypeError(`${label}: ops[${index}] is not an operation of ${method}; create it with ${made}`);
    }
    checkOptions(each, opTypes[name]!, `${label}: ops[${index}], op.${name}`);
  });
}
