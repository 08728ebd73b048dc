/**
 * Mutants of the client library: a session machine that breaks a promise to its program. The
 * program is that of the runs.
 */
import type { Mutant } from './mutant.ts';

export const clientMutants: Readonly<Record<string, Mutant>> = {
  'client-forgets-watches': {
    description: 'the client does not restore its watches after a reconnect',
    origin: 'ZOOKEEPER-706, P18',
    symbol: 'SessionRestore.start',
    original: 'this.#restoreWatches(lastZxid);',
    replacement: '',
  },
  'client-claims-not-sent': {
    description: 'the client reports notSent for a call that was sent and lost its connection',
    origin: 'C2-20, P13',
    symbol: 'Outbox.dropPending',
    original: "outcome: request.ordinal <= this.#ordinalTaken ? 'unknown' : 'notSent'",
    replacement: "outcome: 'notSent'",
  },
  'client-matches-next-reply': {
    description: 'the client takes a reply for that of the next call in its queue',
    origin: 'P3',
    symbol: 'ReplyMatcher.#onRequestReply',
    original: 'if (!request.isCancelled) this.#output.calls.answered(request, err, reader, zxid);\n    this.#outbox.answered();',
    replacement: 'this.#outbox.answered();\n    this.#output.calls.answered(this.#outbox.nextPending ?? request, err, reader, zxid);',
  },
  'client-resends-writes': {
    description: 'the client sends calls that had no reply when the connection broke again over the next connection',
    origin: 'C2-20, P13',
    symbol: 'SessionMachine.#failPending',
    original: 'this.#output.calls.failed(request, new RequestFailure(errno, outcome, reason, { cause }));',
    replacement: '{ this.#outbox.addWaiting(request); void [outcome, errno, reason, cause]; }',
  },
  'client-forgets-last-zxid': {
    description: 'the client reconnects with lastZxidSeen 0, so a server older than its last reply serves it',
    origin: 'C2-8, P7',
    symbol: 'NegotiatedSession.writeHandshake',
    original: 'lastZxidSeen: this.#lastZxid,',
    replacement: 'lastZxidSeen: 0,',
  },
  'client-new-session-on-reconnect': {
    description: 'the client requests a new session at each reconnect and reports that the old one expired',
    origin: 'C2-8, C2-14',
    symbol: 'NegotiatedSession.writeHandshake',
    original: 'sessionId: this.#isKnownToQuorum ? this.#id : 0n,',
    replacement: 'sessionId: this.#lastZxid === 0 ? this.#id : 0n,',
  },
  'client-loses-calls': {
    description: 'calls that wait for a server are never settled when the session ends',
    origin: 'C2-2, P35',
    symbol: 'SessionMachine.#finish',
    original: 'const refusal = why ?? this.#end.failure(reason);\n    this.#failWaiting(refusal);',
    replacement: 'const refusal = why ?? this.#end.failure(reason);',
  },
  'client-pings-late': {
    description: 'the client pings after two thirds of the session timeout instead of a third',
    origin: 'C2-19, P22',
    symbol: 'pingAfterMs',
    original: 'const half = Math.floor(readTimeoutMs(sessionTimeoutMs) / 2);',
    replacement: 'const half = Math.floor(readTimeoutMs(sessionTimeoutMs) * 0.95);',
  },
  'client-event-after-reply': {
    description: 'the client delivers an event after replies that arrived later',
    origin: 'P14',
    symbol: 'EventDelivery.inOrder',
    original: 'void Promise.resolve().then(noop).then(listener);',
    replacement: 'void Promise.resolve().then(noop).then(noop).then(noop).then(noop).then(noop).then(noop).then(noop).then(listener);',
  },
};
