/** Mutants of local sessions: how they live, and how one becomes global. */
import type { Mutant } from './mutant.ts';

export const localSessionMutants: Readonly<Record<string, Mutant>> = {
  'upgrade-after-the-create': {
    description: 'the createSession of a local session is ordered after the ephemeral that needs it',
    origin: 'ZOOKEEPER-2926, P36',
    symbol: 'LocalSessions.refusesEphemeral',
    original: 'this.#sequencer.openSession(origin, timeoutMs, now);',
    replacement: 'queueMicrotask(() => this.#sequencer.openSession(origin, timeoutMs, now));',
  },
  'upgraded-session-expires-locally': {
    description: 'a session that became global is still due in the queue of local sessions',
    origin: 'ZOOKEEPER-3471, P21',
    symbol: 'SessionTracker.upgrade',
    original: 'this.#localExpiry.remove(slot);',
    replacement: '',
  },
  'ephemeral-before-others-missed': {
    description: 'only the last create of a multi decides whether the session must become global',
    origin: 'ZOOKEEPER-2725, A33',
    symbol: 'hasEphemeralCreate',
    original: 'found = isEphemeral(flags) || found;',
    replacement: 'found = isEphemeral(flags);',
  },
  'local-session-resumed-by-leader': {
    description: 'a leader tells a learner that a session lives which is a local one of the leader',
    origin: 'ZOOKEEPER-3863, P36',
    symbol: 'Server.validateSession',
    original: 'this.#tracker.findLiveGlobal(high, low)',
    replacement: 'this.#tracker.findLive(high, low)',
  },
  'ended-session-taken-for-local': {
    description: 'a leader takes a global session that has ended for a local session of a learner, and performs its late write',
    origin: 'LeaderSessionTracker of ZooKeeper, P13',
    symbol: 'ForeignSessions.mayExist',
    original: ' && this.#ended.find(high, low) === -1',
    replacement: '',
  },
  'creation-counts-as-move': {
    description: 'a session that becomes global counts as moved, so a leader refuses the create that was waiting after its createSession',
    origin: 'A33, P36',
    symbol: 'SessionTracker.openAwaitingCreate',
    original: 'this.#owners.set(slot, owner);',
    replacement: 'this.setOwner(slot, owner);',
  },
  'local-close-overtakes-writes': {
    description: 'the closeSession of a local session is answered before its earlier writes',
    origin: 'P5',
    symbol: 'Admission.#start',
    original: 'this.#localSessions.closeRequested(cnxn.slot);\n          this.#sessionQueue.read(request, reader);',
    replacement: 'this.#localSessions.answerClose(request);',
  },
  'local-refusal-called-expired': {
    description: 'a learner passes on the error with which its leader refuses an ephemeral of a local session in a multi',
    origin: 'FinalRequestProcessor of ZooKeeper, A33',
    symbol: 'refusalOf',
    original: 'return { ...txn, txns:',
    replacement: 'return txn.kind === "multi" ? txn : { ...txn, txns:',
  },
};
