/** The client's part of the zoo: a session machine that breaks a promise to its program. Its program is the one of the stories. */
import type { Mutant } from './mutant.ts';

const machine = 'packages/client/src/session/session-machine.ts';

export const clientMutants: Readonly<Record<string, Mutant>> = {
  'client-forgets-watches': {
    what: 'the client does not set its watches anew after a reconnect',
    from: 'ZOOKEEPER-706, P18',
    file: machine,
    replace: 'this.#restoreWatches();\n',
    by: '\n',
  },
  'client-says-not-sent': {
    what: 'a call that was sent and lost its connection is said not to have been sent',
    from: 'C2-20, P13',
    file: 'packages/client/src/session/outbox.ts',
    replace: "outcome: request.order <= this.#orderTaken ? 'unknown' : 'notSent'",
    by: "outcome: 'notSent'",
  },
  'client-answers-the-next': {
    what: 'an answer is taken for that to the next call in the line',
    from: 'P3',
    file: machine,
    replace: 'if (!request.withdrawn) this.#out.answered(request, err, reader, zxid);\n    this.#outbox.answered();',
    by: 'this.#outbox.answered();\n    this.#out.answered(this.#outbox.next ?? request, err, reader, zxid);',
  },
  'client-resends-writes': {
    what: 'calls that had no answer when the connection broke are sent again over the next',
    from: 'C2-20, P13',
    file: machine,
    replace: 'this.#out.failed(request, new Refusal(errno, outcome, reason, { cause }));',
    by: '{ this.#outbox.keep(request); void [outcome, errno, reason, cause]; }',
  },
  'client-forgets-last-zxid': {
    what: 'the client comes back as one that has seen nothing, so that a server behind its last answer serves it',
    from: 'C2-8, P7',
    file: machine,
    replace: 'lastZxidSeen: this.#lastZxid,',
    by: 'lastZxidSeen: 0,',
  },
  'client-begins-anew': {
    what: 'the client asks for a new session at each reconnect, and tells its program that the old one has expired',
    from: 'C2-8, C2-14',
    file: machine,
    replace: 'sessionId: this.#knownToQuorum ? this.#sessionId : 0n,',
    by: 'sessionId: this.#connectedMs === 0 ? this.#sessionId : 0n,',
  },
  'client-loses-calls': {
    what: 'calls that wait for a server are forgotten when the session ends',
    from: 'C2-2, P35',
    file: machine,
    replace: "const refusal = why ?? this.#ended('notSent', reason);\n    this.#failKept(refusal);",
    by: "const refusal = why ?? this.#ended('notSent', reason);",
  },
  'client-pings-late': {
    what: 'pings wait for two thirds of the time-out instead of a third',
    from: 'C2-19, P22',
    file: 'packages/client/src/session/timings.ts',
    replace: 'const half = Math.floor(readTimeoutMs(sessionTimeoutMs) / 2);',
    by: 'const half = Math.floor(readTimeoutMs(sessionTimeoutMs) * 0.95);',
  },
  'client-tells-events-late': {
    what: 'an event is told behind the answers that have arrived after it',
    from: 'P14',
    file: 'packages/client/src/session/session.ts',
    replace: 'void Promise.resolve().then(nothing).then(listener);',
    by: 'void Promise.resolve().then(nothing).then(nothing).then(nothing).then(nothing).then(nothing).then(nothing).then(nothing).then(listener);',
  },
};
