/** What sibling packages need and users do not. */
export { childPath, nameOf, parentOf } from './paths.ts';
export { Refusal } from './keeper-error.ts';
export { CallForm } from './call-form.ts';
export { callKinds, methodForms } from './call-forms.ts';
export { connectOptions } from './connect-forms.ts';
export { checkOps, createSettings } from './operations/op-forms.ts';
export { parsedJson } from './json-text.ts';
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
