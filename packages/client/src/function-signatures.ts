/** The forms of the functions that reach a server, for the validation of their arguments. */
import { arrayOf, type ValueType, valueTypes, objectOf, optionTypes, orOneOf, secret } from './arguments.ts';
import { CallSignature } from './call-signature.ts';
import { retryType } from './method-signatures.ts';
import { tlsOptionTypes } from './node/tls-context.ts';

const bytesType: ValueType = { expected: 'a Uint8Array', accepts: (given) => given instanceof Uint8Array };

function withMethods(what: string, ...names: readonly string[]): ValueType {
  return {
    expected: `${what} (an object with ${names.join(', ')})`,
    accepts: (given) =>
      valueTypes.object.accepts(given) && names.every((name) => typeof (given as Record<string, unknown>)[name] === 'function'),
  };
}

const environmentTypes = {
  tls: orOneOf(objectOf(tlsOptionTypes), true, false),
  transport: withMethods('a transport', 'connect'),
  clock: withMethods('a clock', 'now', 'after', 'cancel'),
};

export const connectOptionTypes = optionTypes({
  sessionTimeoutMs: valueTypes.int,
  connectTimeoutMs: valueTypes.milliseconds,
  requestTimeoutMs: valueTypes.milliseconds,
  retry: retryType,
  readOnly: valueTypes.boolean,
  sasl: secret(valueTypes.object),
  auth: secret(arrayOf(objectOf(optionTypes({ scheme: valueTypes.string, auth: secret(valueTypes.bytes) }), ['scheme', 'auth']))),
  session: objectOf(
    optionTypes({ id: { expected: 'a bigint', accepts: (given) => typeof given === 'bigint' }, password: secret(bytesType) }),
    ['id', 'password'],
  ),
  onState: valueTypes.function,
  signal: valueTypes.signal,
  maxPacketBytes: valueTypes.int,
  expireLocally: valueTypes.boolean,
  yieldSession: valueTypes.boolean,
  followConfig: valueTypes.boolean,
  keepProcessAlive: valueTypes.boolean,
  ...environmentTypes,
  random: withMethods('a source of randomness', 'uint32'),
  tracer: withMethods('a tracer', 'run', 'callSettled', 'sessionEvent'),
});

/** The functions that create a client, and `fourLetterWord`, which needs none. */
export const functionSignatures = {
  connect: new CallSignature('connect(servers, options)', connectOptionTypes),
  createClient: new CallSignature('createClient(servers, options)', connectOptionTypes),
  fourLetterWord: new CallSignature(
    'fourLetterWord(server, word, options)',
    optionTypes({ timeoutMs: valueTypes.milliseconds, signal: valueTypes.signal, ...environmentTypes }),
    valueTypes.string,
    valueTypes.string,
  ),
} as const;
