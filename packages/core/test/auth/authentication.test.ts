/** Authentication through a provider that asks elsewhere, or in several steps: what waits, what is answered, and as whom. */
import { ErrorCode, OpCode, operations, Reader, Writer, writeConnectRequest } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import {
  type AuthOutcome,
  type AuthProvider,
  coreDefaults,
  type CoreOptions,
  type ClientOutput,
  type TxnLog,
  silentObserver,
  Server,
} from '../../src/index.ts';
import { standaloneOrder } from '../../src/request/authority.ts';

const now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };
const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };

/** Does what it is told to, and keeps the tickets of those who wait. */
class ToldProvider implements AuthProvider {
  readonly scheme: string;
  readonly provesIdentity = true;
  readonly asked: { credentials: string | undefined; ticket: number }[] = [];
  outcome: AuthOutcome = { kind: 'later' };
  constructor(scheme: string) {
    this.scheme = scheme;
  }
  authenticate(credentials: Buffer | null, _context: unknown, ticket: number): AuthOutcome {
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
  readonly provider: ToldProvider;
  readonly core: Server;
  closed: string[] = [];
  #lastAppended = 0;
  readonly #outputs = new Map<number, Writer>();

  constructor(scheme = 'told', options: Partial<CoreOptions> = {}) {
    this.provider = new ToldProvider(scheme);
    const all = { ...coreDefaults, ...options, authProviders: [this.provider] };
    this.core = new Server(all, this, { uint32: () => 7 }, silentObserver, now, standaloneOrder(this));
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

  /** @param meanwhile what comes while the session is being opened */
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
  /** The session that a connection was given is open: what came behind its handshake is served. */
  opened(cnxn: number): void {
    this.applied();
    const output = this.#outputs.get(cnxn)!;
    const reader = new Reader(Buffer.from(output.written()));
    const behind = Buffer.from(reader.bytes.subarray(reader.int32() + reader.offset, reader.limit));
    output.clear();
    output.raw(behind);
  }
  auth(cnxn: number, credentials: string, scheme = 'told'): void {
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

  /** What has been answered since the last call, as `xid error` and what whoAmI or a token says. */
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

/** xids from 100 on are those of whoAmI, from 200 on those of sasl. */
function described(xid: number, body: Reader): string[] {
  if (xid >= 200) return [body.buffer()?.toString() ?? 'null'];
  if (xid < 100) return [];
  const { clientInfo } = operations.whoAmI.reply.read(body);
  return (clientInfo ?? []).map(({ authScheme, user }) => `${authScheme}:${user}`);
}

const anna: AuthOutcome = { kind: 'done', identities: [{ scheme: 'told', id: 'anna' }] };
const bert = { kind: 'done', identities: [{ scheme: 'told', id: 'bert' }] } as const;

describe('an authentication that is decided elsewhere', () => {
  it('keeps what comes behind it waiting, and lets it go on as who it turned out to be', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual([]);
    expect(server.core.wantsInput(1)).toBe(false);
    expect(server.provider.asked).toEqual([{ credentials: 'secret', ticket: 1 }]);
    server.core.authenticated(1, bert, now);
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1 told:bert']);
    expect(server.core.wantsInput(1)).toBe(true);
  });

  it('keeps writes waiting too, and the reads behind them in order', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.setRoot(1, 5);
    server.whoAmI(1, 100);
    server.core.authenticated(1, bert, now);
    expect(server.heard(1)).toEqual(['-4 0']);
    server.applied();
    expect(server.heard(1)).toEqual(['5 0', '100 0 ip:127.0.0.1 told:bert']);
  });

  it('does not reach back to a request that came before it', () => {
    const server = new Host();
    server.connect(1);
    server.setRoot(1, 5);
    server.whoAmI(1, 100);
    server.provider.outcome = anna;
    server.auth(1, 'secret');
    server.applied();
    expect(server.heard(1)).toEqual(['-4 0', '5 0', '100 0 ip:127.0.0.1']);
  });

  it('does not hold up what came before it', () => {
    const server = new Host();
    server.connect(1);
    server.setRoot(1, 5);
    server.whoAmI(1, 100);
    server.auth(1, 'secret');
    server.whoAmI(1, 101);
    server.applied();
    expect(server.heard(1)).toEqual(['5 0', '100 0 ip:127.0.0.1']);
    server.core.authenticated(1, bert, now);
    expect(server.heard(1)).toEqual(['-4 0', '101 0 ip:127.0.0.1 told:bert']);
  });

  it('lets requests behind it wait for a write ahead of it, when it comes first', () => {
    const server = new Host();
    server.connect(1);
    server.setRoot(1, 5);
    server.auth(1, 'secret');
    server.whoAmI(1, 100);
    server.core.authenticated(1, bert, now);
    expect(server.heard(1)).toEqual(['-4 0']);
    server.applied();
    expect(server.heard(1)).toEqual(['5 0', '100 0 ip:127.0.0.1 told:bert']);
    expect(server.core.inspect.outstandingRequests()).toBe(0);
  });

  it('closes the connection when it is refused, and nothing that waited has any effect', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'wrong');
    server.whoAmI(1, 100);
    server.core.authenticated(1, { kind: 'refused' }, now);
    expect(server.heard(1)).toEqual([`-4 ${ErrorCode.AuthFailed}`]);
    expect(server.closed).toEqual(['1: authentication failed']);
    expect(server.core.inspect.outstandingRequests()).toBe(0);
  });

  it('does no harm when it comes after the connection has gone and its number has another', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.core.disconnected(1, now);
    server.connect(1);
    server.auth(1, 'other');
    server.core.authenticated(1, bert, now);
    expect(server.heard(1)).toEqual([]);
    server.whoAmI(1, 100);
    server.core.authenticated(2, { kind: 'done', identities: [] }, now);
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1']);
  });

  it('can be decided once only', () => {
    const server = new Host();
    server.connect(1);
    server.auth(1, 'secret');
    server.core.authenticated(1, bert, now);
    expect(() => server.core.authenticated(1, bert, now)).toThrow('ticket 1');
  });
});

describe('credentials behind the handshake', () => {
  it('count for what comes behind them', () => {
    const server = new Host();
    server.provider.outcome = anna;
    server.connect(1, () => {
      server.whoAmI(1, 100);
      server.auth(1, 'secret');
      server.whoAmI(1, 101);
    });
    server.opened(1);
    expect(server.heard(1)).toEqual(['100 0 ip:127.0.0.1', '-4 0', '101 0 ip:127.0.0.1 told:anna']);
  });

  it('stay ahead of what came while requests were held back', () => {
    const server = new Host('told', { requestThrottleLimit: 1 });
    server.provider.outcome = anna;
    server.connect(2);
    // Its session is the one request there is room for; what comes behind it is held back.
    server.connect(1, () => {
      server.auth(1, 'secret');
      server.whoAmI(1, 100);
    });
    server.whoAmI(2, 102);
    server.opened(1);
    expect(server.heard(1)).toEqual(['-4 0', '100 0 ip:127.0.0.1 told:anna']);
    expect(server.heard(2)).toEqual(['102 0 ip:127.0.0.1']);
  });

  it('are overtaken by nothing of their connection, wherever each had to wait', () => {
    const server = new Host('told', { requestThrottleLimit: 2 });
    server.connect(2);
    server.connect(1, () => {
      // There is room for one more: it waits for the session. Then there is none: they wait for room.
      server.auth(1, 'secret');
      server.setRoot(2, 5);
      server.setRoot(1, 6);
      server.whoAmI(1, 100);
    });
    server.setRoot(2, 7);
    server.opened(1);
    server.core.authenticated(1, bert, now);
    server.applied();
    expect(server.heard(1)).toEqual(['-4 0', '6 0', '100 0 ip:127.0.0.1 told:bert']);
  });
});

describe('credentials whose connection goes before their turn comes', () => {
  const throttled = () => {
    const server = new Host('told', { requestThrottleLimit: 1, requestThrottleDropStale: false });
    server.connect(1);
    server.connect(2);
    server.setRoot(1, 5);
    return server;
  };
  const rootVersion = (server: Host) => server.core.inspect.lastZxid() - 3;

  it('take the writes behind them along: whose they are, nobody knows', () => {
    const server = throttled();
    server.setRoot(2, 6);
    server.auth(2, 'secret');
    server.setRoot(2, 7);
    server.core.disconnected(2, now);
    server.applied();
    server.applied();
    // The write ahead of them was carried out; the one behind them was not.
    expect(rootVersion(server)).toBe(1);
  });

  it('take them along as well when they were being judged elsewhere', () => {
    const server = throttled();
    server.auth(2, 'secret');
    server.setRoot(2, 6);
    server.applied();
    // The credentials are being judged now, and the write waits for them.
    server.setRoot(1, 8);
    server.setRoot(2, 7);
    server.core.disconnected(2, now);
    server.applied();
    server.applied();
    expect(rootVersion(server)).toBe(1);
  });
});

/** Counts how often anything is read of it. */
class CountedIdentity {
  static reads = 0;
  readonly #id: string;
  constructor(id: string) {
    this.#id = id;
  }
  get scheme(): string {
    CountedIdentity.reads++;
    return 'told';
  }
  get id(): string {
    CountedIdentity.reads++;
    return this.#id;
  }
}

describe('A35: the identities of a connection', () => {
  const known = (...ids: readonly string[]): AuthOutcome => ({ kind: 'done', identities: ids.map((id) => ({ scheme: 'told', id })) });
  const tooMany = `-4 ${ErrorCode.AuthFailed}`;

  it('are bounded in number: one too many is answered AuthFailed, and ends that connection only', () => {
    const server = new Host('told', { identitiesPerCnxnMax: 3 });
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

  it('are bounded in bytes, as they travel between servers', () => {
    // The address takes 8 bytes of lengths, 2 of scheme and 9 of id; the others 8, 4, and what is left.
    const server = new Host('told', { identityBytesPerCnxnMax: 19 + 12 + 30 });
    server.connect(1);
    server.provider.outcome = known('é'.repeat(15));
    server.auth(1, 'fits');
    server.provider.outcome = known('');
    server.auth(1, 'does not');
    expect(server.heard(1)).toEqual(['-4 0', tooMany]);
    expect(server.closed).toEqual(['1: too many identities']);
  });

  it('are bounded by what servers take from each other where that is less', () => {
    const server = new Host('told', { juteMaxBuffer: 30, juteMaxBufferExtra: 20 });
    server.connect(1);
    server.provider.outcome = known('x'.repeat(20));
    server.auth(1, 'too long');
    expect(server.heard(1)).toEqual([tooMany]);
  });

  it('may be shown again as often as a client likes', () => {
    const server = new Host('told', { identitiesPerCnxnMax: 2 });
    server.connect(1);
    server.provider.outcome = known('a');
    for (let i = 0; i < 3; i++) server.auth(1, 'a');
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual(['-4 0', '-4 0', '-4 0', '100 0 ip:127.0.0.1 told:a']);
  });

  it('are looked up, not searched: a further one costs the same however many there are', () => {
    const server = new Host('told');
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

describe('an exchange of tokens', () => {
  it('goes from token to token and ends with an identity', () => {
    const server = new Host('sasl');
    server.connect(1);
    server.provider.outcome = { kind: 'continue', reply: Buffer.from('challenge') };
    server.sasl(1, 200, '');
    server.provider.outcome = { kind: 'done', identities: [{ scheme: 'sasl', id: 'anna' }], reply: Buffer.from('welcome') };
    server.sasl(1, 201, 'response');
    server.whoAmI(1, 100);
    expect(server.heard(1)).toEqual(['200 0 challenge', '201 0 welcome', '100 0 ip:127.0.0.1 sasl:anna']);
    expect(server.provider.asked.map(({ credentials }) => credentials)).toEqual(['', 'response']);
  });

  it('is over at once, with nobody known, where no mechanism is set up', () => {
    const server = new Host();
    server.connect(1);
    server.sasl(1, 200, 'token');
    expect(server.heard(1)).toEqual(['200 0 null']);
  });

  it('is not reached by an auth request that names it', () => {
    const server = new Host('sasl');
    server.connect(1);
    server.auth(1, 'token', 'sasl');
    expect(server.provider.asked).toEqual([]);
    expect(server.closed).toEqual(['1: authentication failed']);
  });
});
