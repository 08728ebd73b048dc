/** What sibling packages need of the client and users do not. */
export { childPath, nameOf, parentOf } from './paths.ts';
export { Refusal } from './keeper-error.ts';
export { CallForm } from './call-form.ts';
export { onAbort } from './signals.ts';
export { pathFault } from '@tskeeper/protocol';
export {
  arrayOf,
  checkCount,
  checkOptions,
  checkPathType,
  checkValue,
  described,
  kinds,
  type Kind,
  nested,
  oneOf,
  optionKinds,
  type OptionKinds,
  orOneOf,
  secret,
} from './arguments.ts';
