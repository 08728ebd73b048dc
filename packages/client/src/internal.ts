/** What sibling packages need and users do not. */
export { childPath, nameOf, parentOf } from './paths.ts';
export { RequestFailure } from './keeper-error.ts';
export { CallSignature } from './call-signature.ts';
export { callOptionTypes, methodSignatures } from './method-signatures.ts';
export { connectOptionTypes } from './function-signatures.ts';
export { checkOps, createSettingTypes } from './operations/op-signatures.ts';
export { parseJson } from './json-text.ts';
export { onAbort } from './signals.ts';
export { pathError } from '@tskeeper/protocol';
export {
  arrayOf,
  checkArgumentCount,
  checkOptions,
  checkPathType,
  checkValue,
  describeValue,
  valueTypes,
  type ValueType,
  objectOf,
  oneOf,
  optionTypes,
  type OptionTypes,
  orOneOf,
  secret,
} from './arguments.ts';
