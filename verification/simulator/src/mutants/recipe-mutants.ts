/**
 * Mutants of the recipes: errors that are easily made with a place in a wait queue and with what it
 * guards.
 */
import { detectedBy, type Mutant } from './mutant.ts';

export const recipeMutants: Readonly<Record<string, Mutant>> = Object.fromEntries([
  ...detectedBy('locks', {
    'guid-left-out': {
      description: 'the znode in the wait queue is created without a guid',
      origin: 'C1-23',
      symbol: 'createOwnZnode',
      original: 'protection: true,',
      replacement: 'protection: false,',
    },
    'guid-not-looked-for': {
      description: 'a create whose reply was lost is repeated without looking for its znode',
      origin: 'C1-23, B52',
      symbol: 'createProtected',
      original: 'if (mayExist) {',
      replacement: 'if (mayExist && !isGenerated) {',
    },
    'guid-not-cleared-up': {
      description: 'an aborted create that took effect leaves its znode in the wait queue',
      origin: 'B52',
      symbol: 'createProtected',
      original: 'void deleteInBackgroundByGuid(session, findOwn, znodes);',
      replacement: 'void deleteInBackgroundByGuid;',
    },
    'sequences-as-text': {
      description: 'sequence numbers are compared as text',
      origin: 'ZOOKEEPER-2931',
      symbol: 'contendersIn',
      original: 'compareSequences(one.sequence, other.sequence)',
      replacement: '(void compareSequences, one.name.slice(-11) < other.name.slice(-11) ? -1 : 1)',
    },
    'sequences-as-numbers': {
      description: 'sequence numbers are compared as plain numbers, which overflow',
      origin: 'C1-19',
      symbol: 'contendersIn',
      original: 'compareSequences(one.sequence, other.sequence)',
      replacement: '(void compareSequences, one.sequence - other.sequence)',
    },
    'guids-sort-the-queue': {
      description: 'a wait queue is sorted by whole names, guids first',
      origin: 'ZOOKEEPER-2931',
      symbol: 'contendersIn',
      original: 'compareSequences(one.sequence, other.sequence)',
      replacement: '(void compareSequences, one.name < other.name ? -1 : 1)',
    },
    'herd-effect': {
      description: 'all waiters watch the holder and wake up together',
      origin: 'C1-20',
      symbol: 'previousContender',
      original: 'line[own - 1];',
      replacement: 'own === 0 ? undefined : line[0];',
    },
    'predecessor-gone-taken-as-turn': {
      description: 'a waiter takes its turn when its predecessor is gone, without listing the queue again',
      origin: 'C1-19',
      symbol: 'QueueNode.waitForTurn',
      original: 'await waitForEvent(this.zk, blocker.path, signal);',
      replacement: 'await waitForEvent(this.zk, blocker.path, signal);\n      return;',
    },
    'waiter-znode-left-on-timeout': {
      description: 'a waiter that gives up leaves its znode in the wait queue',
      origin: 'C1-23',
      symbol: 'acquireInSession',
      original: 'await node.leave();\n    throw error;',
      replacement: 'throw error;',
    },
    'waiter-znode-left-on-try': {
      description: 'a failed try leaves its znode in the wait queue',
      origin: 'C1-23',
      symbol: 'tryAcquireInSession',
      original: 'if (!isFree) await node.leave();',
      replacement: 'void node;',
    },
    'release-not-retried': {
      description: 'a znode that could not be deleted for lack of a server stays in the wait queue',
      origin: 'C1-20',
      symbol: 'QueueNode.leave',
      original: '{ guaranteed: true }',
      replacement: '{ guaranteed: false }',
    },
    'hold-writes-unfenced': {
      description: 'writes through a hold are not fenced',
      origin: 'C1-21',
      symbol: 'fencedMulti',
      original: '[...ops, ...paths.map((path) => op.check(path))]',
      replacement: '(void op, [...ops])',
    },
    'suspended-hold-never-lost': {
      description: 'a hold stays suspended as long as there is no connection',
      origin: 'C1-21',
      symbol: 'Hold.#suspend',
      original: 'zk.clock.after(zk.sessionRemainingMs,',
      replacement: 'zk.clock.after(zk.sessionRemainingMs * 100,',
    },
    'deleted-hold-unnoticed': {
      description: 'a holder does not notice that its znode was deleted',
      origin: 'C1-22',
      symbol: 'OwnZnodeWatch.#onEvent',
      original: "if (event.type === 'NodeDeleted') this.#reportDeleted();",
      replacement: "if (event.type === 'NodeDeleted') return;",
    },
    'removed-listener-still-called': {
      description: 'a removed listener still receives events in transit: a released hold becomes suspended, and then lost or held again',
      origin: 'found here: lost and suspended',
      symbol: 'ViewListeners.add',
      original: 'if (listeners.has(ownListener)) listener(event);',
      replacement: 'listener(event);',
    },
    'fencing-token-is-session-id': {
      description: 'the fencing token is the session id, which does not order the holders',
      origin: 'C1-21',
      symbol: 'Hold.constructor',
      original: 'this.fencingToken = node.czxid;',
      replacement: 'this.fencingToken = node.zk.sessionId;',
    },
    'revocation-without-release': {
      description: 'a holder that agrees to release does not release',
      origin: 'C1-30',
      symbol: 'Revocation.#releaseAfterConsent',
      original: 'await hold.release();',
      replacement: 'void hold;',
    },
  }),
  ...detectedBy('shared-locks', {
    'reader-beside-writers': {
      description: 'a reader enters although a writer is before it in the wait queue',
      origin: 'C1-24',
      symbol: 'ReadWriteLock.constructor',
      original: 'all.slice(0, own).findLast(({ prefix }) => prefix === prefixes.write)',
      replacement: 'all.slice(0, Math.min(own, 1)).findLast(({ prefix }) => prefix === prefixes.write)',
    },
    'writer-beside-readers': {
      description: 'a writer waits for writers only',
      origin: 'C1-25',
      symbol: 'ReadWriteLock.constructor',
      original: 'data,\n      findBlocker: previousContender,\n      what: `shared lock ${path} for writing`',
      replacement: 'data, findBlocker: (void previousContender, findWriterAhead), what: `shared lock ${path} for writing`',
    },
    'reader-watches-the-first-writer': {
      description: 'a reader watches the first of the writers before it instead of the last',
      origin: 'C1-24',
      symbol: 'ReadWriteLock.constructor',
      original: 'findLast(',
      replacement: 'find(',
    },
    'reader-watches-predecessor': {
      description: 'a reader waits for its predecessor, even if that is a reader',
      origin: 'C1-24',
      symbol: 'ReadWriteLock.constructor',
      original: 'const findWriterAhead: FindBlocker = (all, own) =>',
      replacement: 'const findWriterAhead: FindBlocker = (all, own) => own > 0 && all[own - 1]!.prefix === prefixes.read ? all[own - 1] :',
    },
  }),
  ...detectedBy('semaphores', {
    'semaphore-one-too-many': {
      description: 'a semaphore grants one lease too many',
      origin: 'B14',
      symbol: 'isAmongFirst',
      original: 'return at < size;',
      replacement: 'return at <= size;',
    },
    'semaphore-znode-left-on-timeout': {
      description: 'a waiter that gives up leaves its semaphore znode in place',
      origin: 'B14',
      symbol: 'Semaphore.#createLeases',
      original: 'if (!areGranted) await Promise.all(places.map((node) => node.leave()));',
      replacement: 'void areGranted;',
    },
  }),
  ...detectedBy('multi-locks', {
    'multi-lock-unordered': {
      description: 'several locks are acquired in the order in which they are named, so two processes can deadlock',
      origin: 'B13',
      symbol: 'MultiLock.constructor',
      original: 'locks.toSorted((one, other) => (one.path < other.path ? -1 : 1))',
      replacement: '[...locks]',
    },
    'multi-lock-kept-when-one-fails': {
      description: 'when one of several locks cannot be acquired, the others are kept',
      origin: 'B13',
      symbol: 'MultiLock.#acquireAllInSession',
      original: 'await releaseAll(holds);\n      throw error;',
      replacement: 'throw error;',
    },
  }),
  ...detectedBy('priority-locks', {
    'urgent-reader-beside-a-writer': {
      description: 'a reader with priority enters although a writer holds the lock',
      origin: 'C1-41',
      symbol: 'findHolderBlocker',
      original: 'read: ((line, own) => line.slice(0, own).findLast(isWriter)) satisfies FindBlocker,',
      replacement: 'read: (() => undefined) satisfies FindBlocker,',
    },
  }),
  ...detectedBy('set-partitions', {
    'work-goes-on-without-lock': {
      description: 'a process working on an item does not notice that it lost the lock',
      origin: 'B25',
      symbol: 'PartitionClaim.#workUnderLock',
      original: 'for (const { signal } of [this.#releaseController, hold]) {',
      replacement: 'for (const { signal } of [this.#releaseController]) {',
    },
  }),
  ...detectedBy('elections', {
    'leader-inherits-acknowledgement': {
      description: 'a leader takes the acknowledgement of its predecessor for its own',
      origin: 'C1-40',
      symbol: 'Leadership.acknowledge',
      original: "while (!(await this.#tryWrite(own, 'NodeExists', options))) {",
      replacement: "while (!(await this.#tryWrite(own, 'NodeExists', options))) {\n      return;",
    },
    'leader-observer-misses-change-after-reconnect': {
      description: 'an observer of an election misses what happens right after a reconnect',
      origin: 'C1-40',
      symbol: 'Election.#observe',
      original:
        "for await (const { zk, event } of watchAcrossSessions(this.#source, this.path, signal)) {\n      if (event.type === 'NodeDataChanged') continue;",
      replacement:
        "let isDeaf = false;\n    for await (const { zk, event } of watchAcrossSessions(this.#source, this.path, signal)) {\n      const wasDeaf = isDeaf;\n      isDeaf = event.type === 'Reread';\n      if (wasDeaf || event.type === 'NodeDataChanged') continue;",
    },
    'leader-observer-believes-earlier-acknowledgement': {
      description: "an observer of an election takes the acknowledgement of an earlier leader for the current one's",
      origin: 'C1-40',
      symbol: 'Election.#leaderInSession',
      original: 'new TextDecoder().decode(acknowledged ?? undefined) === first.name;',
      replacement: 'new TextDecoder().decode(acknowledged ?? undefined) !== this.path;',
    },
    'leader-observer-loses-acknowledgement': {
      description:
        "an observer of an election reads the acknowledgement after the leader's znode, so a leader seems not to have acknowledged",
      origin: 'found here: the word after the leader',
      symbol: 'Election.#leaderInSession',
      original:
        'const acknowledged = await dataOf(zk, acknowledgedPath(this.path), signal);\n      const leader = await dataOf(zk, first.path, signal);',
      replacement:
        'const leader = await dataOf(zk, first.path, signal);\n      const acknowledged = await dataOf(zk, acknowledgedPath(this.path), signal);',
    },
    'leader-observer-reports-gone-leader': {
      description: 'an observer of an election reports a leader that was gone when it was read',
      origin: 'C1-40',
      symbol: 'Election.#leaderInSession',
      original: 'if (leader === undefined) continue;',
      replacement: 'if (leader === undefined) return { path: first.path, data: null, acknowledged: false };',
    },
  }),
  ...detectedBy('barriers', {
    'barrier-opens-at-any-event': {
      description: 'a process that waits for a barrier continues at the first event of any kind',
      origin: 'C1-6',
      symbol: 'Barrier.wait',
      original: 'while (await waitForEvent(zk, this.path, signal));',
      replacement: 'await waitForEvent(zk, this.path, signal);',
    },
  }),
  ...detectedBy('simple-barriers', {
    'simple-barrier-one-short': {
      description: 'a simple barrier opens when one participant is missing',
      origin: 'C0-3',
      symbol: 'SimpleBarrier.#untilFull',
      original: 'children.length >= this.size ||',
      replacement: 'children.length >= this.size - 1 ||',
    },
    'simple-barrier-left-alone': {
      description: 'a participant leaves a simple barrier without waiting for the others',
      origin: 'C0-5',
      symbol: 'SimpleBarrier.#enterIn',
      original: 'await this.#untilEmpty(zk, signal);',
      replacement: 'void signal;\n      void (() => this.#untilEmpty(zk, signal));',
    },
    'simple-barrier-full-not-announced': {
      description: 'a participant that sees a simple barrier full does not record it, and a slow one waits forever',
      origin: 'C0-7',
      symbol: 'SimpleBarrier.#untilFull',
      original: 'if (stat.version === 0) await this.#markFull(zk, signal);',
      replacement: 'void (() => this.#markFull(zk, signal));',
    },
  }),
  ...detectedBy('double-barriers', {
    'double-barrier-begun-unverified': {
      description: 'a round begins with the participants of the last listing, without checking that they still exist',
      origin: 'C1-8',
      symbol: 'BarrierEntry.tryOpen',
      original: 'readyData(waiting), { acl }), ...checks]',
      replacement: 'readyData(waiting), { acl }), ...checks.slice(0, 0)]',
    },
    'double-barrier-stale-ready-opens': {
      description: 'a stale `ready` from before a crash opens the next round',
      origin: 'C1-13',
      symbol: 'BarrierEntry.tryEnter',
      original: 'await this.removeStaleReady(czxid);\n    return undefined;',
      replacement: 'void czxid;\n    return openers;',
    },
    'double-barrier-latecomer-unmarked': {
      description: 'a latecomer also counts for the next round',
      origin: 'C1-9',
      symbol: 'BarrierEntry.markEntered',
      original: '[mark, ...checks]',
      replacement: '(void mark, [...checks])',
    },
    'double-barrier-leaver-waits-for-entrants': {
      description: 'a leaving participant also waits for those that wait to enter, which wait for it',
      origin: 'found here: a latecomer and one that waits',
      symbol: 'BarrierExit.isInside',
      original: 'return version !== 0 ||',
      replacement: 'return true || version !== 0 ||',
    },
    'double-barrier-leaves-alone': {
      description: 'a participant that is not the lowest leaves without waiting',
      origin: 'C1-10',
      symbol: 'BarrierExit.run',
      original: 'await this.#waitFor(next, signal);',
      replacement: 'if (next !== own) return;\n      await this.#waitFor(next, signal);',
    },
    'double-barrier-ready-deleted-early': {
      description: 'the first participant to leave deletes `ready`',
      origin: 'C1-13',
      symbol: 'BarrierExit.run',
      original: 'node.isLastOpener = this.isLastOpener(names);',
      replacement: 'node.isLastOpener = true;',
    },
    'double-barrier-znode-left-on-timeout': {
      description: 'a participant that gives up waiting leaves its znode and is counted',
      origin: 'B4',
      symbol: 'enterBarrier',
      original: 'await node.leave();\n    throw error;',
      replacement: 'throw error;',
    },
  }),
]);
