/** The forms of the functions that reach a server, for the validation of their arguments. */
import { arrayOf, type Kind, kinds, nested, optionKinds, orOneOf, secret } from './arguments.ts';
import { CallForm } from './call-form.ts';
import { retryKind } from './call-forms.ts';
import { tlsOptionKinds } from './node/tls-material.ts';

const bytes: Kind = { wanted: 'a Uint8Array', fits: (given) => given instanceof Uint8Array };

function withMethods(what: string, ...names: readonly string[]): Kind {
  return {
    wanted: `${what} (an object with ${names.join(', ')})`,
    fits: (given) => kinds.object.fits(given) && names.every((name) => typeof (given as Record<string, unknown>)[name] === 'function'),
  };
}

const world = {
  tls: orOneOf(nested(tlsOptionKinds), true, false),
  transport: withMethods('a transport', 'connect'),
  clock: withMethods('a clock', 'now', 'after', 'cancel'),
};

export const connectOptions = optionKinds({
  sessionTimeoutMs: kinds.int,
  connectTimeoutMs: kinds.milliseconds,
  requestTimeoutMs: kinds.milliseconds,
  retry: retryKind,
  readOnly: kinds.boolean,
  sasl: secret(kinds.object),
  auth: secret(arrayOf(nested(optionKinds({ scheme: kinds.string, auth: secret(kinds.bytes) }), ['scheme', 'auth']))),
  session: nested(optionKinds({ id: { wanted: 'a bigint', fits: (given) => typeof given === 'bigint' }, password: secret(bytes) }), [
    'id',
    'password',
  ]),
  onState: kinds.function,
  signal: kinds.signal,
  maxPacketBytes: kinds.int,
  expireLocally: kinds.boolean,
  yieldsSession: kinds.boolean,
  followConfig: kinds.boolean,
  keepProcessAlive: kinds.boolean,
  ...world,
  random: withMethods('a source of randomness', 'uint32'),
  tracer: withMethods('a tracer', 'run', 'settled', 'session'),
});

/** The functions that create a client, and `fourLetterWord`, which needs none. */
export const functionForms = {
  connect: new CallForm('connect(servers, options)', connectOptions),
  createClient: new CallForm('createClient(servers, options)', connectOptions),
  fourLetterWord: new CallForm(
    'fourLetterWord(server, word, options)',
    optionKinds({ timeoutMs: kinds.milliseconds, signal: kinds.signal, ...world }),
    kinds.string,
    kinds.string,
  ),
} as const;
