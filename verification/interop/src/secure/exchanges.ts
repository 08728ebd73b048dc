/**
 * Authentication, request by request: what a server answers to exchanges that are right, wrong, out
 * of order or not DIGEST-MD5 at all. The outcomes of two servers are compared.
 */
import { endpointOf, record, requestBody, type ServerProcess, WireCnxn, handshakeBody } from '@tskeeper/harness';
import { OpCode, operations, Reader, Xid } from '@tskeeper/protocol';
import { clientPortService, digestMd5Proofs, parseDirectives, quoted } from '@tskeeper/protocol/internal';

/** Longer than any answer takes; only a failure takes this long. */
const answerMs = 20_000;

type Directives = Readonly<Record<string, string | undefined>>;

/** A request: whoAmI, auth, or the next token, given the server's last one. */
type Step = 'whoAmI' | { readonly scheme: string; readonly auth: string } | ((challenge: string) => string);

const empty: Step = () => '';
const whoAmI: Step = 'whoAmI';
const text =
  (token: string): Step =>
  () =>
    token;

/** A valid response of a user; `changes` are made to it after its proof was computed. */
function response(
  username: string,
  password: string,
  changes: Directives = {},
  proved: Partial<{ authzid: string; nc: string }> = {},
): Step {
  return (challenge) => {
    const nonce = parseDirectives(Buffer.from(challenge), 'the challenge').get('nonce')?.[0] ?? 'none';
    const { realm, digestUri } = clientPortService;
    const nonceCount = proved.nc ?? '00000001';
    const terms = { username, realm, password, nonce, cnonce: 'cnonce', nonceCount, authzid: proved.authzid, digestUri, isUtf8: true };
    const { response: proof } = digestMd5Proofs(terms);
    const directives: Directives = {
      charset: 'utf-8',
      username: quoted(username),
      realm: quoted(realm),
      nonce: quoted(nonce),
      nc: nonceCount,
      cnonce: '"cnonce"',
      'digest-uri': quoted(digestUri),
      maxbuf: '65536',
      response: proof,
      qop: 'auth',
      ...(proved.authzid === undefined ? {} : { authzid: quoted(proved.authzid) }),
      ...changes,
    };
    return Object.entries(directives)
      .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
      .join(',');
  };
}

const right = response('bob', 'bobsecret');

export const exchanges: Readonly<Record<string, readonly Step[]>> = {
  'a right password': [empty, right, whoAmI],
  'a wrong password': [empty, response('bob', 'wrong'), whoAmI],
  'an unknown user': [empty, response('eve', 'secret'), whoAmI],
  'no user': [empty, response('bob', 'bobsecret', { username: undefined }), whoAmI],
  'the name of another user asked for': [empty, response('bob', 'bobsecret', {}, { authzid: 'super' }), whoAmI],
  'the name super': [empty, response('super', 'supersecret'), whoAmI],
  'a super user': [empty, response('root', 'rootsecret'), whoAmI],
  'letters of ISO 8859-1': [empty, response('jörg', 'schlüssel'), whoAmI],
  'other letters': [empty, response('maria', 'пароль€'), whoAmI],
  'a token before the challenge': [text('abc'), whoAmI],
  'no response': [empty, empty, whoAmI],
  'nonsense for a response': [empty, text('nonsense'), whoAmI],
  'a second exchange': [empty, right, whoAmI, empty],
  'a second use of the nonce': [empty, response('bob', 'bobsecret', {}, { nc: '00000002' }), whoAmI],
  'another nonce': [empty, response('bob', 'bobsecret', { nonce: '"other"' }), whoAmI],
  'no nonce': [empty, response('bob', 'bobsecret', { nonce: undefined }), whoAmI],
  'another realm': [empty, response('bob', 'bobsecret', { realm: '"other"' }), whoAmI],
  'no realm': [empty, response('bob', 'bobsecret', { realm: undefined }), whoAmI],
  'another service': [empty, response('bob', 'bobsecret', { 'digest-uri': '"imap/zk-sasl-md5"' }), whoAmI],
  'no service': [empty, response('bob', 'bobsecret', { 'digest-uri': undefined }), whoAmI],
  'no cnonce': [empty, response('bob', 'bobsecret', { cnonce: undefined }), whoAmI],
  'no proof': [empty, response('bob', 'bobsecret', { response: undefined }), whoAmI],
  'a short proof': [empty, response('bob', 'bobsecret', { response: 'abcd' }), whoAmI],
  'integrity protection': [empty, response('bob', 'bobsecret', { qop: 'auth-int' }), whoAmI],
  'no quality of protection': [empty, response('bob', 'bobsecret', { qop: undefined }), whoAmI],
  'another charset': [empty, response('bob', 'bobsecret', { charset: 'latin1' }), whoAmI],
  'no charset': [empty, response('bob', 'bobsecret', { charset: undefined }), whoAmI],
  'a directive twice': [empty, response('bob', 'bobsecret', { qop: 'auth,qop=auth' }), whoAmI],
  'an unknown directive': [empty, response('bob', 'bobsecret', { more: '1' }), whoAmI],
  'an auth request': [{ scheme: 'sasl', auth: 'token' }, whoAmI],
  'the name of this ensemble': [{ scheme: 'ensemble', auth: 'north' }, whoAmI],
  'the name of another ensemble': [{ scheme: 'ensemble', auth: 'south' }, whoAmI],
  'no name of an ensemble': [{ scheme: 'ensemble', auth: '' }, whoAmI],
  'a request without SASL': [whoAmI],
};

/** Sorted: ZooKeeper keeps them in a set. */
function identitiesIn(body: Buffer): string {
  const { clientInfo } = operations.whoAmI.reply.read(new Reader(body));
  return (clientInfo ?? [])
    .map(({ authScheme, user }) => `${authScheme}:${user}`)
    .toSorted()
    .join(' ');
}

/** What the server answers, step by step: error codes, tokens without what is random, closes. */
export async function outcomeOf(server: ServerProcess, steps: readonly Step[]): Promise<string> {
  const cnxn = await WireCnxn.open(endpointOf(server.connectString));
  const outcome: string[] = [];
  try {
    cnxn.send(handshakeBody({ readOnly: false, timeOut: 30_000 }));
    await cnxn.replies(1, answerMs);
    cnxn.take();
    let challenge = '';
    for (const [index, step] of steps.entries()) {
      if (step === 'whoAmI') cnxn.send(requestBody(index + 1, OpCode.whoAmI, record.nothing()));
      else if (typeof step === 'object') cnxn.send(requestBody(Xid.auth, OpCode.auth, record.auth(step.scheme, Buffer.from(step.auth))));
      else cnxn.send(requestBody(index + 1, OpCode.sasl, (writer) => writer.buffer(Buffer.from(step(challenge)))));
      await cnxn.replies(1, answerMs);
      for (const message of cnxn.take()) {
        if (message.kind !== 'reply') {
          outcome.push(message.kind);
          continue;
        }
        if (step === 'whoAmI') outcome.push(`whoAmI ${message.err} ${message.err === 0 ? identitiesIn(message.body) : ''}`);
        else if (typeof step === 'object') outcome.push(`auth ${message.err}`);
        else {
          const length = message.body.length < 4 ? -2 : message.body.readInt32BE(0);
          const reply = length < 0 ? String(length) : message.body.toString('utf8', 4, 4 + length);
          if (length > 0) challenge = reply;
          outcome.push(`sasl ${message.err} ${reply.replace(/nonce="[^"]*"/, 'nonce').replace(/rspauth=[0-9a-f]{32}$/, 'rspauth')}`);
        }
      }
      if (cnxn.closed) break;
    }
  } finally {
    cnxn.destroy();
  }
  return outcome.join('; ');
}
