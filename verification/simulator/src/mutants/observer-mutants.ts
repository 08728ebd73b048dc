/**
 * Mutants of observers: of followers that accept them (zab/observer-master.ts), and of those that
 * keep no log.
 */
import type { Mutant } from './mutant.ts';

export const observerMutants: Readonly<Record<string, Mutant>> = {
  'observer-informed-of-proposals': {
    detector: 'observers',
    description: 'a follower informs its observers of the next txn that was proposed, whichever was committed',
    origin: 'A55',
    symbol: 'Learner.#onCommit',
    original: 'if (next.packet !== undefined) this.#observers?.onCommit(zxid, next.packet, designated);',
    replacement:
      'const later = this.#history.nextProposal;\n      if (next.packet !== undefined) this.#observers?.onCommit(zxid, (later ?? next).packet, designated);',
  },
  'observer-history-ends-early': {
    detector: 'observers',
    description: 'an observer that joins a follower is sent the history up to the commit before the last',
    origin: 'A55',
    symbol: 'ObserverMaster.#startReplicating',
    original: 'return this.committed;',
    replacement: 'return this.committed - 1;',
  },
  'observer-ahead-is-truncated': {
    detector: 'observers',
    description: 'a follower takes from an observer the commits that it does not know of itself yet',
    origin: 'A55',
    symbol: 'ObserverMaster.#onAckEpoch',
    original: 'if (packet.zxid > this.committed && epochOf(packet.zxid) === this.#stages.epoch) this.#ahead.add(learner);\n    else',
    replacement: '',
  },
  'observer-ahead-waits-for-one-more': {
    detector: 'scenarios',
    description: 'an observer that was ahead of its follower is synchronised only when a later txn is committed',
    origin: 'A55',
    symbol: 'ObserverMaster.onCommit',
    original: 'if (learner.lastZxid > zxid) continue;',
    replacement: 'if (learner.lastZxid >= zxid) continue;',
  },
  'observer-touches-not-reported': {
    detector: 'observers',
    description: "a follower keeps the signs of life of its observers' clients for itself",
    origin: 'P21',
    symbol: 'Learner.#onPing',
    original: 'this.#observers?.takeTouched(report);',
    replacement: '',
  },
  'observer-lag-not-reported': {
    detector: 'scenarios',
    description: 'a follower answers a PING as if it had asked its observers before',
    origin: 'P21',
    symbol: 'Learner.#onPing',
    original: 'observersLag(this.#observers?.lagMs(now))',
    replacement: 'null',
  },
  'observer-sync-answered-at-once': {
    detector: 'observers',
    description: 'a follower answers the sync of an observer without its leader',
    origin: 'A55',
    symbol: 'ObserverMaster.#onRequest',
    original: 'if (this.#mayPassOn(learner)) this.#requests.passOnRequest(packet, type, learner);',
    replacement:
      'if (type === 9) return this.onSynced(learner);\n    if (this.#mayPassOn(learner)) this.#requests.passOnRequest(packet, type, learner);',
  },
  'observer-sync-answered-to-the-last': {
    detector: 'observers',
    description: 'a follower sends the answer of a sync to the observer that asked last',
    origin: 'A55',
    symbol: 'RequestQueue.takeSyncAsker',
    original: 'return this.#syncAskers.shift();',
    replacement: 'const last = [...this.#syncAskers.values()].at(-1);\n    this.#syncAskers.shift();\n    return last;',
  },
  'observer-origin-not-named': {
    detector: 'observers',
    description: 'a leader does not distinguish a follower and its observers',
    origin: 'A55',
    symbol: 'RequestQueue.#passOn',
    original: 'if (this.leaderReadsOrigins) {',
    replacement: 'if (bytes.length === 0) {',
  },
  'observers-kept-without-leader': {
    detector: 'scenarios',
    description: 'a follower that has lost its leader keeps its observers, which go on serving',
    origin: 'P10',
    symbol: 'LearningRole.next',
    original: 'this.#observers?.stop();',
    replacement: '',
  },
  'observer-masters-one-only': {
    detector: 'observers',
    description: 'an observer whose follower refuses dials the same one again',
    origin: 'A55',
    symbol: 'ObserverMasters.take',
    original: 'return { sid: this.#order[this.#next++]!, delayMs };',
    replacement: 'return { sid: this.#order[this.#next]!, delayMs };',
  },
  'memory-only-saves-current-epoch': {
    description: 'an observer without a log claims on its disk a history that is in memory only',
    origin: 'P31, A54',
    symbol: 'MemoryOnlyStorage.saveEpoch',
    original: "if (name === 'acceptedEpoch') this",
    replacement: "this.#parts.storage.saveEpoch(name, epoch);\n    if (name === 'never') this",
  },
  'memory-only-forgets-accepted-epoch': {
    description: 'an observer without a log does not save the epoch that it has accepted',
    origin: 'P31, A54',
    symbol: 'MemoryOnlyStorage.saveEpoch',
    original: "if (name === 'acceptedEpoch') this.#parts",
    replacement: "if (name === 'currentEpoch' && epoch < 0) this.#parts",
  },
  'observer-without-log-votes': {
    detector: 'reconfigs',
    description: 'an observer without a log that gets a vote goes on, and acknowledges what is in memory only',
    origin: 'P32, A54',
    symbol: 'EnsembleRuntime.endTurn',
    original: 'this.#peer?.mustKeepLog === true',
    replacement: 'this.#isShutDown',
  },
};
