/**
 * Authentication through a provider that decides elsewhere, or in several steps: the order of
 * requests, and their identities.
 */
import { ErrorCode, OpCode, operations, Reader, Writer, writeConnectRequest } from '@tskeeper/protocol';
import { clientPortService, digestMd5Proofs } from '@tskeeper/protocol/internal';
import { describe, expect, it } from 'vitest';
import { AuthToLocal } from '../../src/auth/kerberos-name.ts';
import { SaslNames } from '../../src/auth/sasl-names.ts';
import { saslProvider } from '../../src/auth/sasl-provider.ts';
import {
  type AuthOutcome,
  type AuthProvider,
  type AuthResult,
  type AuthTicket,
  coreDefaults,
  type CoreOptions,
  type ClientOutput,
  type Observer,
  type TxnLog,
  silentObserver,
  Server,
} from '../../src/index.ts';
import { standaloneSequencer } from '../../src/request/local-sequencer.ts';

const now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };
const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };

/** A provider with scripted outcomes; keeps the tickets that wait. */
class FakeProvider implements AuthProvider {
  readonly scheme: string;
  readonly provesIdentity = true;
  readonly asked: { credentials: string | undefined; ticket: AuthTicket }[] = [];
  outcome: AuthOutcome = { kind: 'later' };
  constructor(scheme: string) {
    this.scheme = scheme;
  }
  authenticate(credentials: Buffer | null, _context: unknown, ticket: AuthTicket): AuthOutcome {
    this.asked.push({ credentials: credentials?.toString(), ticket });
    return this.outcome;
  }
  isValidId(): boolean {
    return true;
  }
  matches(identity: string, aclId: string): boolean {
    return identity === aclId;
  }
  userName(identity: string): string {
    return identity;
  }
}

class Host implements ClientOutput, TxnLog {
  readonly provider: FakeProvider;
  readonly core: Server;
  closed: string[] = [];
  readonly refusals: string[] = [];
  #lastAppended = 0;
  readonly #outputs = new Map<number, Writer>();

  constructor(scheme = 'fake', options: Partial<CoreOptions> = {}) {
    this.provider = new FakeProvider(scheme);
    const all = { ...coreDefaults, authProviders: [this.provider], ...options };
    const observer: Observer = {
      ...silentObserver,
      authenticationRefused: (cnxn, refusedScheme, reason) => void this.refusals.push(`${cnxn} ${refusedScheme}: ${reason}`),
    };
    this.core = new Server(all, this, { uint32: () => 7 }, observer, now, standaloneSequencer(this));
  }
  reply(cnxn: number): Writer {
    return this.#outputs.get(cnxn)!;
  }
  isFull(): boolean {
    return false;
  }
  close(cnxn: number, reason: string): void {
    this.closed.push(`${cnxn}: ${reason}`);
  }
  append(zxid: number): void {
    this.#lastAppended = zxid;
  }

  /** @param meanwhile is called while the session is being created. */
  connect(cnxn: number, meanwhile?: () => void): void {
    this.#outputs.set(cnxn, new Writer());
    this.core.connect(cnxn, context, now);
    const hello = { protocolVersion: 0, lastZxidSeen: 0, timeOut: 10_000, sessionId: 0n, passwd: Buffer.alloc(16), readOnly: false };
    this.#frame(cnxn, (writer) => writeConnectRequest(writer, hello));
    meanwhile?.();
    if (meanwhile === undefined) {
      this.applied();
      this.#outputs.get(cnxn)!.clear();
    }
  }
  /** The session of a connection has been created: frames sent after its handshake are served. */
  opened(cnxn: number): void {
    this.applied();
    const output = this.#outputs.get(cnxn)!;
    const reader = new Reader(Buffer.from(output.written()));
    const behind = Buffer.from(reader.bytes.subarray(reader.int32() + reader.offset, reader.limit));
    output.clear();
    output.raw(behind);
  }
  /** The provider's result for the authentication that it was asked for as the `index`-th. */
  decide(index: number, result: AuthResult): void {
    this.core.authenticated(this.provider.asked[index]!.ticket, result, now);
  }
  auth(cnxn: number, credentials: string, scheme = 'fake'): void {
    const request = { type: 0, scheme, auth: Buffer.from(credentials) };
    this.#request(cnxn, -4, OpCode.auth, (writer) => operations.auth.request.write(writer, request));
  }
  sasl(cnxn: number, xid: number, token: string): void {
    this.#request(cnxn, xid, OpCode.sasl, (writer) => operations.sasl.request.write(writer, { token: Buffer.from(token) }));
  }
  whoAmI(cnxn: number, xid: number): void {
    this.#request(cnxn, xid, OpCode.whoAmI, () => {});
  }
  setRoot(cnxn: number, xid: number): void {
    const request = { path: '/', data: Buffer.alloc(1), version: -1 };
    this.#request(cnxn, xid, OpCode.setData, (writer) => operations.setData.request.write(writer, request));
  }
  applied(): void {
    this.core.appended(this.#lastAppended, now);
  }

  /** The replies since the last call, as `xid error` and the content of a whoAmI or a token. */
  heard(cnxn: number): string[] {
    const output = this.#outputs.get(cnxn)!;
    const reader = new Reader(Buffer.from(output.written()));
    output.clear();
    const heard: string[] = [];
    while (reader.remaining > 0) {
      const end = reader.int32() + reader.offset;
      const xid = reader.int32();
      reader.int64();
      const error = reader.int32();
      const body = new Reader(reader.bytes.subarray(reader.offset, end));
      reader.offset = end;
      heard.push([xid, error, ...described(xid, body)].join(' '));
    }
    return heard;
  }

  #request(cnxn: number, xid: number, opCode: number, body: (writer: Writer) => void): void {
    this.#frame(cnxn, (writer) => {
      writer.int32(xid);
      writer.int32(opCode);
      body(writer);
    });
  }
  #frame(cnxn: number, write: (writer: Writer) => void): void {
    const writer = new Writer();
    write(writer);
    this.core.frame(cnxn, new Reader(Buffer.from(writer.written())), now);
  }
}

/** xids from 100 on are of whoAmI, from 200 on of sasl. */
function described(xid: number, body: Reader): string[] {
  if (xid >= 200) return [body.buffer()?.toString() ?? 'null'];
  if (xid < 100) return [];
  const { clientInfo } = operations.whoAmI.reply.read(body);
  return (clientInfo ?? []).map(({ authScheme, user }) => `${authScheme}:${user}`);
}

const anna: AuthOutcome = { kind: 'done', identities: [{ scheme: 'fake', id: 'anna' }] };
const bert = { kind: 'done', identities: [{ scheme: 'fake', id: 'bert' }] } as const;

describe('an authentication decided elsewhere', () => {
  it('delays later requests, which then run with the new identities', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual([]);
    expect(server.core.wantsInput(1)).toBe(false);
    expect(server.provider.asked).toEqual([{ credentials: 'secret', ticket: { scheme: 'fake' } }]);
    server.decide(0, bert);
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1 fake:bert']);
    expect(server.core.wantsInput(1)).toBe(true);
  });

  it('delays later writes too, and the reads after them, in order', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.setRoot(1, 5);
    server.whoAmI(1, 100);
    server.decide(0, bert);
    expect(server.heard(1)).toEqual(['-4 0']);
    server.applied();
    expect(server.heard(1)).toEqual(['5 0', '100 0 ip:127.0.0.1 fake:bert']);
  });

  it('does not change the identities of earlier requests', () => {
    const server = new Host();
    server.connect(1);
    server.setRoot(1, 5);
    server.whoAmI(1, 100);
    server.provider.outcome = anna;
    server.auth(1, 'secret');
    server.applied();
    expect(server.heard(1)).toEqual(['-4 0', '5 0', '100 0 ip:127.0.0.1']);
  });

  it('does not delay earlier requests', () => {
    const server = new Host();
    server.connect(1);
    server.setRoot(1, 5);
    server.whoAmI(1, 100);
    server.auth(1, 'secret');
    server.whoAmI(1, 101);
    server.applied();
    expect(server.heard(1)).toEqual(['5 0', '100 0 ip:127.0.0.1']);
    server.decide(0, bert);
    expect(server.heard(1)).toEqual(['-4 0', '101 0 ip:127.0.0.1 fake:bert']);
  });

  it('that is decided first leaves later requests waiting for an earlier write', () => {
    const server = new Host();
    server.connect(1);
    server.setRoot(1, 5);
    server.auth(1, 'secret');
    server.whoAmI(1, 100);
    server.decide(0, bert);
    expect(server.heard(1)).toEqual(['-4 0']);
    server.applied();
    expect(server.heard(1)).toEqual(['5 0', '100 0 ip:127.0.0.1 fake:bert']);
    expect(server.core.inspect.outstandingRequests()).toBe(0);
  });

  it('that is refused closes the connection, and delayed requests have no effect', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'wrong');
    server.whoAmI(1, 100);
    server.decide(0, { kind: 'refused' });
    expect(server.heard(1)).toEqual([`-4 ${ErrorCode.AuthFailed}`]);
    expect(server.closed).toEqual(['1: authentication failed']);
    expect(server.core.inspect.outstandingRequests()).toBe(0);
  });

  it('has no effect when its result arrives after the connection has closed and its id was reused', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.core.disconnected(1, now);
    server.connect(1);
    server.auth(1, 'other');
    server.decide(0, bert);
    expect(server.heard(1)).toEqual([]);
    server.whoAmI(1, 100);
    server.decide(1, { kind: 'done', identities: [] });
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1']);
  });

  it('is decided once: a second result has no effect', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.decide(0, bert);
    server.decide(0, { kind: 'refused' });
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1 fake:bert']);
  });
});

describe('credentials sent after the handshake', () => {
  it('apply to all requests after them', () => {
    const server = new Host();
    server.provider.outcome = anna;
    server.connect(1, () => {
      server.whoAmI(1, 100);
      server.auth(1, 'secret');
      server.whoAmI(1, 101);
    });
    server.opened(1);
    expect(server.heard(1)).toEqual(['100 0 ip:127.0.0.1', '-4 0', '101 0 ip:127.0.0.1 fake:anna']);
  });

  it('are processed before frames that arrived while requests were held', () => {
    const server = new Host('fake', { requestThrottleLimit: 1 });
    server.provider.outcome = anna;
    server.connect(2);
    // Its session is the only request there is room for; later frames are held.
    server.connect(1, () => {
      server.auth(1, 'secret');
      server.whoAmI(1, 100);
    });
    server.whoAmI(2, 102);
    server.opened(1);
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1 fake:anna']);
    expect(server.heard(2)).toEqual(['102 0 ip:127.0.0.1']);
  });

  it('are not overtaken by any frame of their connection, whatever delays each', () => {
    const server = new Host('fake', { requestThrottleLimit: 2 });
    server.connect(2);
    server.connect(1, () => {
      // There is room for one more, which waits for the session. Then there is none, and the others
      // are held.
      server.auth(1, 'secret');
      server.setRoot(2, 5);
      server.setRoot(1, 6);
      server.whoAmI(1, 100);
    });
    server.setRoot(2, 7);
    server.opened(1);
    server.decide(0, bert);
    server.applied();
    expect(server.heard(1)).toEqual(['-4 0', '6 0', '100 0 ip:127.0.0.1 fake:bert']);
  });
});

describe('held credentials whose connection closes before their turn', () => {
  const throttled = () => {
    const server = new Host('fake', { requestThrottleLimit: 1, requestThrottleDropStale: false });
    server.connect(1);
    server.connect(2);
    server.setRoot(1, 5);
    return server;
  };
  const rootVersion = (server: Host) => server.core.inspect.lastZxid() - 3;

  it('drop the later writes of the connection, whose identities are unknown', () => {
    const server = throttled();
    server.setRoot(2, 6);
    server.auth(2, 'secret');
    server.setRoot(2, 7);
    server.core.disconnected(2, now);
    server.applied();
    server.applied();
    // The earlier write was performed; the later one was not.
    expect(rootVersion(server)).toBe(1);
  });

  it('drop these writes too while the credentials are being decided elsewhere', () => {
    const server = throttled();
    server.auth(2, 'secret');
    server.setRoot(2, 6);
    server.applied();
    // The credentials are being decided, and the write waits for them.
    server.setRoot(1, 8);
    server.setRoot(2, 7);
    server.core.disconnected(2, now);
    server.applied();
    server.applied();
    expect(rootVersion(server)).toBe(1);
  });
});

/** Counts how often a property is read. */
class CountedIdentity {
  static reads = 0;
  readonly #id: string;
  constructor(id: string) {
    this.#id = id;
  }
  get scheme(): string {
    CountedIdentity.reads++;
    return 'fake';
  }
  get id(): string {
    CountedIdentity.reads++;
    return this.#id;
  }
}

describe('A35: the identities of a connection', () => {
  const known = (...ids: readonly string[]): AuthOutcome => ({ kind: 'done', identities: ids.map((id) => ({ scheme: 'fake', id })) });
  const tooMany = `-4 ${ErrorCode.AuthFailed}`;

  it('are limited in number: one too many is answered AuthFailed and closes only that connection', () => {
    const server = new Host('fake', { identitiesPerCnxnMax: 3 });
    server.connect(1);
    server.connect(2);
    for (const id of ['a', 'b', 'c']) {
      server.provider.outcome = known(id);
      server.auth(1, id);
    }
    server.whoAmI(2, 100);
    expect(server.heard(1)).toEqual(['-4 0', '-4 0', tooMany]);
    expect(server.heard(2)).toEqual(['100 0 ip:127.0.0.1']);
    expect(server.closed).toEqual(['1: too many identities']);
  });

  it('are limited in bytes, in the form servers send each other', () => {
    // The address takes 8 bytes of lengths, 2 of scheme and 9 of id; the others 8, 4, and the rest.
    const server = new Host('fake', { identityBytesPerCnxnMax: 19 + 12 + 30 });
    server.connect(1);
    server.provider.outcome = known('é'.repeat(15));
    server.auth(1, 'fits');
    server.provider.outcome = known('');
    server.auth(1, 'does not');
    expect(server.heard(1)).toEqual(['-4 0', tooMany]);
    expect(server.closed).toEqual(['1: too many identities']);
  });

  it('are limited to what servers accept from each other, if that is less', () => {
    const server = new Host('fake', { juteMaxBuffer: 30, juteMaxBufferExtra: 20 });
    server.connect(1);
    server.provider.outcome = known('x'.repeat(20));
    server.auth(1, 'too long');
    expect(server.heard(1)).toEqual([tooMany]);
  });

  it('may be sent again any number of times', () => {
    const server = new Host('fake', { identitiesPerCnxnMax: 2 });
    server.connect(1);
    server.provider.outcome = known('a');
    for (let i = 0; i < 3; i++) server.auth(1, 'a');
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual(['-4 0', '-4 0', '-4 0', '100 0 ip:127.0.0.1 fake:a']);
  });

  it('are looked up, not scanned: one more costs the same however many there are', () => {
    const server = new Host('fake');
    server.connect(1);
    for (let i = 0; i < 900; i++) {
      server.provider.outcome = { kind: 'done', identities: [new CountedIdentity(`id${i}`)] };
      server.auth(1, 'secret');
    }
    CountedIdentity.reads = 0;
    server.auth(1, 'secret');
    expect(CountedIdentity.reads).toBeLessThan(20);
  });
});

describe('a SASL exchange', () => {
  const names = new SaslNames({ rules: new AuthToLocal('DEFAULT', ''), removesHost: false, removesRealm: false, superUsers: new Set() });
  const withSasl = (options: Partial<CoreOptions> = {}) =>
    new Host('fake', {
      sasl: { mechanism: 'DIGEST-MD5', passwords: new Map([['anna', 'secret']]), names },
      authProviders: [saslProvider(undefined)],
      ...options,
    });
  const nonce = Buffer.alloc(32, '00000007', 'hex').toString('base64', 0, 30);
  const challenge = `realm="zk-sasl-md5",nonce="${nonce}",charset=utf-8,algorithm=md5-sess`;

  function response(password: string): { readonly token: string; readonly rspauth: string } {
    const { realm, digestUri } = clientPortService;
    const terms = { username: 'anna', realm, password, nonce, cnonce: 'c', nonceCount: '00000001', authzid: undefined, digestUri };
    const proofs = digestMd5Proofs({ ...terms, isUtf8: true });
    const directives = [`username="anna",realm="${realm}",nonce="${nonce}",cnonce="c",nc=00000001,qop=auth,charset=utf-8`];
    return { token: [...directives, `digest-uri="${digestUri}"`, `response=${proofs.response}`].join(','), rspauth: proofs.rspauth };
  }

  it('A39: exchanges tokens and ends with an identity', () => {
    const server = withSasl();
    server.connect(1);
    const { token, rspauth } = response('secret');
    server.sasl(1, 200, '');
    server.sasl(1, 201, token);
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual([`200 0 ${challenge}`, `201 0 rspauth=${rspauth}`, '100 0 ip:127.0.0.1 sasl:anna']);
    expect(server.closed).toEqual([]);
  });

  it('is one for each connection', () => {
    const server = withSasl();
    for (const cnxn of [1, 2]) server.connect(cnxn);
    for (const cnxn of [1, 2]) server.sasl(cnxn, 200, '');
    server.sasl(2, 201, response('secret').token);
    server.sasl(1, 201, response('wrong').token);
    server.whoAmI(2, 100);
    expect(server.heard(1)).toEqual([`200 0 ${challenge}`, `201 ${ErrorCode.AuthFailed} null`]);
    expect(server.heard(2).slice(2)).toEqual(['100 0 ip:127.0.0.1 sasl:anna']);
    expect(server.closed).toEqual(['1: authentication failed']);
    expect(server.refusals).toEqual(['1 sasl: the password of "anna" is wrong']);
  });

  it('fails where a client begins a second one', () => {
    const server = withSasl();
    server.connect(1);
    server.sasl(1, 200, '');
    server.sasl(1, 201, response('secret').token);
    server.sasl(1, 202, '');
    expect(server.heard(1).slice(2)).toEqual([`202 ${ErrorCode.AuthFailed} null`]);
    expect(server.refusals).toEqual(['1 sasl: it goes on after the end of its exchange']);
  });

  it('that fails leaves the client without an identity where that is allowed', () => {
    const server = withSasl({ allowsFailedSasl: true });
    server.connect(1);
    server.sasl(1, 200, '');
    server.sasl(1, 201, response('wrong').token);
    server.whoAmI(1, 100);
    expect(server.heard(1).slice(1)).toEqual(['201 0 null', '100 0 ip:127.0.0.1']);
    expect(server.closed).toEqual([]);
    server.sasl(1, 202, '');
    expect(server.heard(1)).toEqual([`202 ${ErrorCode.AuthFailed} null`]);
    expect(server.closed).toEqual(['1: authentication failed']);
  });

  it.each([true, false])(
    'A38: that fails where one is required ends with SessionClosedRequireSaslAuth (allowsFailedSasl %s)',
    (allowsFailedSasl) => {
      const server = withSasl({ enforcedAuthSchemes: ['sasl'], allowsFailedSasl });
      server.connect(1);
      server.sasl(1, 200, '');
      server.sasl(1, 201, response('wrong').token);
      expect(server.heard(1).slice(1)).toEqual([`201 ${ErrorCode.SessionClosedRequireSaslAuth} null`]);
      expect(server.closed).toEqual(['1: authentication failed']);
    },
  );

  it('A38: is required before a request', () => {
    const server = withSasl({ enforcedAuthSchemes: ['sasl'] });
    for (const cnxn of [1, 2]) server.connect(cnxn);
    server.whoAmI(1, 50);
    expect(server.heard(1)).toEqual([`50 ${ErrorCode.SessionClosedRequireSaslAuth}`]);
    server.sasl(2, 200, '');
    server.sasl(2, 201, response('secret').token);
    server.whoAmI(2, 100);
    expect(server.heard(2).at(-1)).toBe('100 0 ip:127.0.0.1 sasl:anna');
  });

  it('gives no identity if no mechanism is configured', () => {
    const server = new Host();
    server.connect(1);
    server.sasl(1, 200, 'token');
    server.whoAmI(1, 100);
    server.sasl(1, 201, 'token');
    expect(server.heard(1)).toEqual(['200 0 null', '100 0 ip:127.0.0.1', '201 0 null']);
    expect(server.closed).toEqual([]);
  });

  it('cannot be started by an auth request for the scheme sasl', () => {
    const server = new Host('fake', { authProviders: [saslProvider(undefined)] });
    server.connect(1);
    server.auth(1, 'token', 'sasl');
    expect(server.heard(1)).toEqual([`-4 ${ErrorCode.AuthFailed}`]);
    expect(server.closed).toEqual(['1: authentication failed']);
  });
});
