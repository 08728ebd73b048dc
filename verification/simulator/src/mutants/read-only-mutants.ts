/** Mutants of read-only mode, at the server and at its clients. */
import type { Mutant } from './mutant.ts';

export const readOnlyMutants: Readonly<Record<string, Mutant>> = {
  'read-only-mode-begins-early': {
    description: 'a server that looks for a leader serves in read-only mode after a tick instead of two seconds',
    origin: 'A34, P36',
    symbol: 'ReadOnlyMode.constructor',
    original: 'Math.max(delayMsMin, state.options.core.tickTimeMs)',
    replacement: 'Math.min(delayMsMin, state.options.core.tickTimeMs)',
  },
  'read-only-mode-outlives-election': {
    description: 'the read-only server of the next leader is not stopped',
    origin: 'A34, P36',
    symbol: 'LookingRole.next',
    original: 'this.#readOnlyMode?.stop(now);',
    replacement: "if (election.outcome.state !== 'leading') this.#readOnlyMode?.stop(now);",
  },
  'read-only-server-answers-sync': {
    description: 'a read-only server answers a sync, as if it knew what the ensemble has committed',
    origin: 'A34, P8',
    symbol: 'core/request/read-only-requests/isRefused',
    original: ' || opCode === OpCode.sync',
    replacement: '',
  },
  'read-only-server-does-not-know-multi': {
    description: 'a read-only server treats a multi as an unknown operation',
    origin: 'A34, P36',
    symbol: 'core/request/read-only-requests/isRefused',
    original: 'isWrite(opCode)',
    replacement: '(isWrite(opCode) && opCode !== OpCode.multi)',
  },
  'read-only-server-serves-others': {
    description: 'a read-only server turns away only clients that are too old to know of such servers',
    origin: 'A34, P36',
    symbol: 'Handshakes.request',
    original: 'isReadOnly && request.readOnly !== true',
    replacement: 'isReadOnly && request.readOnly === undefined',
  },
  'read-only-server-seems-to-have-quorum': {
    description: 'a read-only server does not say in the handshake that it is one',
    origin: 'A34, P36',
    symbol: 'Handshakes.#accept',
    original: 'this.#sequencer.isReadOnly)',
    replacement: 'false)',
  },
  'read-only-server-declares-sessions-expired': {
    description: 'a read-only server declares expired what its state does not have, as ZooKeeper does',
    origin: 'A34, P23',
    symbol: 'Handshakes.#canJudge',
    original: "if (this.#options.localSessions !== 'disabled') return id >= this.#firstSessionId && id < this.#nextSessionId;",
    replacement: '',
  },
  'read-only-server-goes-back': {
    description: 'a read-only server serves a client that has seen a later zxid',
    origin: 'A34, P7',
    symbol: 'Handshakes.request',
    original: 'if (request.lastZxidSeen > this.#replica.lastZxid) {',
    replacement: 'if (!isReadOnly && request.lastZxidSeen > this.#replica.lastZxid) {',
  },
  'client-keeps-local-session': {
    description: 'a client presents the session that a read-only server has opened to servers with a quorum',
    origin: 'A34, B39',
    symbol: 'NegotiatedSession.writeHandshake',
    original: 'sessionId: this.#isKnownToQuorum ? this.#id : 0n,',
    replacement: 'sessionId: this.#id,',
  },
};
