/** A client that proves its identity by SASL, in virtual time, with a simulated server. */
import { createHash } from 'node:crypto';
import { OpCode as op, operations, Reader, readRequestHeader } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { connect, type ConnectOptions, ConnectOptionsError, KeeperError, type SessionEvent } from '../src/index.ts';
import { fieldsOf, proofs } from './support/digest-server.ts';
import { type ScriptedCnxn, ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, reply } from './support/server-frames.ts';

/** Answers the exchange as ZooKeeper does, and every other request with Ok and no content. */
class DigestServer {
  readonly clock = new ManualClock(1000);
  readonly transport = new ScriptedTransport();
  readonly #passwords: Record<string, string>;
  readonly #phases = new WeakMap<ScriptedCnxn, { done: number; nonce: string; proof?: string }>();
  /** The requests of each connection. */
  readonly asked: string[][] = [];
  mute = false;

  constructor(passwords: Record<string, string>) {
    this.#passwords = passwords;
  }

  options(username: string, password: string, more: ConnectOptions = {}): ConnectOptions {
    return {
      transport: this.transport,
      clock: this.clock,
      random: new SeededRandom(1),
      sessionTimeoutMs: 9000,
      sasl: { mechanism: 'DIGEST-MD5', username, password },
      ...more,
    };
  }

  /** Advances time until the promise settles. */
  async until<T>(promise: Promise<T>): Promise<T> {
    const progress = { done: false };
    const note = () => void (progress.done = true);
    promise.then(note, note);
    for (let turns = 0; !progress.done && turns < 2000; turns++) await this.pass(50);
    return promise;
  }

  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => void setImmediate(resolve));
      for (const cnxn of this.transport.cnxns) if (!cnxn.over) this.#serve(cnxn);
    }
  }

  #serve(cnxn: ScriptedCnxn): void {
    let phase = this.#phases.get(cnxn);
    if (phase === undefined) {
      phase = { done: 0, nonce: createHash('sha1').update(String(this.asked.length)).digest('base64') };
      this.#phases.set(cnxn, phase);
      this.asked.push([]);
      cnxn.sink.connected();
    }
    for (; phase.done < cnxn.sent.length && !cnxn.over; phase.done++) {
      if (phase.done === 0) cnxn.sink.received(connectResponse());
      else this.#answer(cnxn, phase, cnxn.sent[phase.done]!);
    }
  }

  #answer(cnxn: ScriptedCnxn, phase: { nonce: string }, bytes: Buffer): void {
    const asked = this.asked[this.transport.cnxns.indexOf(cnxn)]!;
    for (let at = 0; at < bytes.length; at += 4 + bytes.readInt32BE(at)) {
      const reader = new Reader(bytes, at + 4, at + 4 + bytes.readInt32BE(at));
      const { xid, type } = readRequestHeader(reader);
      asked.push(nameOf(type));
      if (type !== op.sasl) cnxn.sink.received(reply(xid, 1));
      else if (!this.mute) this.#sasl(cnxn, phase.nonce, xid, Buffer.from(operations.sasl.request.read(reader).token!).toString());
    }
  }

  #sasl(cnxn: ScriptedCnxn, nonce: string, xid: number, token: string): void {
    const say = (text: string | null, err = 0) =>
      cnxn.sink.received(
        reply(xid, 0, err, (writer) => operations.sasl.reply.write(writer, { token: text === null ? null : Buffer.from(text) })),
      );
    if (token === '') {
      say(`realm="zk-sasl-md5",nonce="${nonce}",charset=utf-8,algorithm=md5-sess`);
      return;
    }
    const fields = fieldsOf(token);
    const { response, rspauth } = proofs(fields, this.#passwords[fields['username']!] ?? '');
    if (fields['nonce'] === nonce && fields['response'] === response) say(`rspauth=${rspauth}`);
    else say(null, -115);
  }
}

function nameOf(type: number): string {
  return Object.entries(op).find(([, code]) => code === type)![0];
}

describe('A89, B42: DIGEST-MD5 from connect to close', () => {
  it('is proved before everything else, and again after a reconnect, each time with a new nonce', async () => {
    const server = new DigestServer({ bob: 'secret' });
    const zk = await server.until(connect('zk:1', server.options('bob', 'secret', { auth: [{ scheme: 'digest', auth: 'u:p' }] })));
    await server.until(zk.delete('/a'));
    expect(server.asked).toEqual([['sasl', 'sasl', 'auth', 'delete']]);
    server.transport.latest.sink.closed('ECONNRESET');
    await server.until(zk.delete('/a'));
    expect(server.asked[1]).toEqual(['sasl', 'sasl', 'auth', 'delete']);
    await server.until(zk.close());
  });

  it.each([
    ['bob', 'wrong'],
    ['nobody', 'secret'],
  ])('makes connect reject with AuthFailed when %s answers %s', async (username, password) => {
    const server = new DigestServer({ bob: 'secret' });
    const error: unknown = await server.until(connect('zk:1', server.options(username, password))).catch((thrown: unknown) => thrown);
    expect(KeeperError.is(error, 'AuthFailed')).toBe(true);
    expect(error).toMatchObject({ errno: -115, op: 'connect', path: undefined, outcome: 'refused', retryable: false });
    expect((error as Error).message).toBe('KeeperErrorCode = AuthFailed (zk:1 rejected the SASL identity (error -115))');
    expect(server.transport.cnxns).toHaveLength(1);
  });

  it('ends the client when a later server rejects it', async () => {
    const passwords: Record<string, string> = { bob: 'secret' };
    const server = new DigestServer(passwords);
    const zk = await server.until(connect('zk:1', server.options('bob', 'secret')));
    const states: SessionEvent[] = [];
    zk.on('state', (event) => void states.push(event));
    passwords['bob'] = 'changed';
    server.transport.latest.sink.closed('ECONNRESET');
    await expect(server.until(zk.delete('/a'))).rejects.toMatchObject({ code: 'AuthFailed', outcome: 'notSent' });
    expect(states.map(({ state }) => state)).toEqual(['Disconnected', 'AuthFailed']);
    expect([zk.state, zk.endReason]).toEqual(['authFailed', 'authFailed']);
  });

  it('moves to another server when one never answers', async () => {
    const server = new DigestServer({ bob: 'secret' });
    server.mute = true;
    const opening = connect('zk1:1,zk2:1', server.options('bob', 'secret', { connectTimeoutMs: Infinity }));
    while (server.transport.cnxns.length < 2) await server.pass(100);
    expect(server.asked[0]).toEqual(['sasl']);
    server.mute = false;
    const zk = await server.until(opening);
    expect(zk.state).toBe('connected');
    await server.until(zk.close());
  });

  it.each([
    [{ mechanism: 'PLAIN', username: 'bob', password: 'x' }, 'sasl: unknown mechanism "PLAIN"; use DIGEST-MD5 or GSSAPI'],
    [{ mechanism: 'DIGEST-MD5', username: 'bob' }, 'sasl: the mechanism DIGEST-MD5 requires a username and a password'],
    [
      { mechanism: 'GSSAPI' },
      'sasl: the mechanism GSSAPI requires the npm package kerberos, which is not installed; run npm install kerberos',
    ],
  ])('rejects the options %o with a message', async (sasl, words) => {
    const error: unknown = await connect('zk:1', { sasl: sasl as never }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectOptionsError);
    expect((error as Error).message).toBe(words);
  });
});
