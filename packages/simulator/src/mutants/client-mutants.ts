/**
 * Mutants of the client library: a session machine that breaks a promise to its program. The
 * program is that of the runs.
 */
import type { Mutant } from './mutant.ts';

const machine = 'packages/client/src/session/session-machine.ts';

export const clientMutants: Readonly<Record<string, Mutant>> = {
  'client-forgets-watches': {
    what: 'the client does not restore its watches after a reconnect',
    from: 'ZOOKEEPER-706, P18',
    file: machine,
    replace: 'this.#restoreWatches();\n',
    by: '\n',
  },
  'client-says-not-sent': {
    what: 'the client reports notSent for a call that was sent and lost its connection',
    from: 'C2-20, P13',
    file: 'packages/client/src/session/outbox.ts',
    replace: "outcome: request.order <= this.#orderTaken ? 'unknown' : 'notSent'",
    by: "outcome: 'notSent'",
  },
  'client-answers-the-next': {
    what: 'the client takes a reply for that of the next call in its queue',
    from: 'P3',
    file: machine,
    replace: 'if (!request.withdrawn) this.#out.answered(request, err, reader, zxid);\n    this.#outbox.answered();',
    by: 'this.#outbox.answered();\n    this.#out.answered(this.#outbox.next ?? request, err, reader, zxid);',
  },
  'client-resends-writes': {
    what: 'the client sends calls that had no reply when the connection broke again over the next connection',
    from: 'C2-20, P13',
    file: machine,
    replace: 'this.#out.failed(request, new Refusal(errno, outcome, reason, { cause }));',
    by: '{ this.#outbox.keep(request); void [outcome, errno, reason, cause]; }',
  },
  'client-forgets-last-zxid': {
    what: 'the client reconnects with lastZxidSeen 0, so a server older than its last reply serves it',
    from: 'C2-8, P7',
    file: machine,
    replace: 'lastZxidSeen: this.#lastZxid,',
    by: 'lastZxidSeen: 0,',
  },
  'client-begins-anew': {
    what: 'the client requests a new session at each reconnect and reports that the old one expired',
    from: 'C2-8, C2-14',
    file: machine,
    replace: 'sessionId: this.#knownToQuorum ? this.#sessionId : 0n,',
    by: 'sessionId: this.#connectedMs === 0 ? this.#sessionId : 0n,',
  },
  'client-loses-calls': {
    what: 'calls that wait for a server are never settled when the session ends',
    from: 'C2-2, P35',
    file: machine,
    replace: "const refusal = why ?? this.#ended('notSent', reason);\n    this.#failKept(refusal);",
    by: "const refusal = why ?? this.#ended('notSent', reason);",
  },
  'client-pings-late': {
    what: 'the client pings after two thirds of the session timeout instead of a third',
    from: 'C2-19, P22',
    file: 'packages/client/src/session/timings.ts',
    replace: 'const half = Math.floor(readTimeoutMs(sessionTimeoutMs) / 2);',
    by: 'const half = Math.floor(readTimeoutMs(sessionTimeoutMs) * 0.95);',
  },
  'client-tells-events-late': {
    what: 'the client delivers an event after replies that arrived later',
    from: 'P14',
    file: 'packages/client/src/session/session.ts',
    replace: 'void Promise.resolve().then(nothing).then(listener);',
    by: 'void Promise.resolve().then(nothing).then(nothing).then(nothing).then(nothing).then(nothing).then(nothing).then(nothing).then(listener);',
  },
};
