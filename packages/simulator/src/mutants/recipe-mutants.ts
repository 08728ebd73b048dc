/**
 * Mutants of the recipes: errors that are easily made with a place in a wait queue and with what it
 * guards.
 */
import { caughtBy, type Mutant } from './mutant.ts';

const line = 'packages/recipes/src/line/line.ts';
const held = 'packages/recipes/src/line/held.ts';
const contender = 'packages/recipes/src/line/contender.ts';
const election = 'packages/recipes/src/elections/election.ts';
const acquire = 'packages/recipes/src/line/acquire.ts';
const sharedLock = 'packages/recipes/src/locks/shared-lock.ts';
const entrance = 'packages/recipes/src/barriers/entrance.ts';
const exit = 'packages/recipes/src/barriers/exit.ts';
const simpleBarrier = 'packages/recipes/src/barriers/simple-barrier.ts';
const protection = 'packages/client/src/calls/protection.ts';

export const recipeMutants: Readonly<Record<string, Mutant>> = Object.fromEntries([
  ...caughtBy('locks', {
    'guid-left-out': {
      what: 'the znode in the wait queue is created without a guid',
      from: 'C1-23',
      file: 'packages/recipes/src/waiting/make-own.ts',
      replace: 'protection: true,',
      by: 'protection: false,',
    },
    'guid-not-looked-for': {
      what: 'a create whose reply was lost is repeated without looking for its znode',
      from: 'C1-23, B52',
      file: protection,
      replace: 'if (mayBeThere) {',
      by: 'if (mayBeThere && !isOwn) {',
    },
    'guid-not-cleared-up': {
      what: 'an aborted create that took effect leaves its znode in the wait queue',
      from: 'B52',
      file: protection,
      replace: 'void clearUp(session, lookFor, znodes);',
      by: 'void clearUp;',
    },
    'sequences-as-text': {
      what: 'sequence numbers are compared as text',
      from: 'ZOOKEEPER-2931',
      file: contender,
      replace: 'compareSequences(one.sequence, other.sequence)',
      by: '(void compareSequences, one.name.slice(-11) < other.name.slice(-11) ? -1 : 1)',
    },
    'sequences-as-numbers': {
      what: 'sequence numbers are compared as plain numbers, which overflow',
      from: 'C1-19',
      file: contender,
      replace: 'compareSequences(one.sequence, other.sequence)',
      by: '(void compareSequences, one.sequence - other.sequence)',
    },
    'guids-sort-the-line': {
      what: 'a wait queue is sorted by whole names, guids first',
      from: 'ZOOKEEPER-2931',
      file: contender,
      replace: 'compareSequences(one.sequence, other.sequence)',
      by: '(void compareSequences, one.name < other.name ? -1 : 1)',
    },
    'watches-the-first': {
      what: 'all waiters watch the holder and wake up together',
      from: 'C1-20',
      file: line,
      replace: 'line[own - 1];',
      by: 'own === 0 ? undefined : line[0];',
    },
    'turn-not-looked-up': {
      what: 'a waiter takes its turn when its predecessor is gone, without listing the queue again',
      from: 'C1-19',
      file: line,
      replace: 'await nextEvent(this.zk, blocker.path, signal);',
      by: 'await nextEvent(this.zk, blocker.path, signal);\n      return;',
    },
    'stays-when-it-gives-up': {
      what: 'a waiter that gives up leaves its znode in the wait queue',
      from: 'C1-23',
      file: acquire,
      replace: 'await place.leave();\n    throw error;',
      by: 'throw error;',
    },
    'stays-when-it-has-tried': {
      what: 'a failed try leaves its znode in the wait queue',
      from: 'C1-23',
      file: acquire,
      replace: 'if (!isFree) await place.leave();',
      by: 'void place;',
    },
    'delete-tried-once': {
      what: 'a znode that could not be deleted for lack of a server stays in the wait queue',
      from: 'C1-20',
      file: line,
      replace: '{ guaranteed: true }',
      by: '{ guaranteed: false }',
    },
    'writes-without-check': {
      what: 'writes through a hold are not fenced',
      from: 'C1-21',
      file: 'packages/recipes/src/line/fenced.ts',
      replace: '[...ops, ...paths.map((path) => op.check(path))]',
      by: '(void op, [...ops])',
    },
    'session-counted-on-for-ever': {
      what: 'a hold stays suspended as long as there is no connection',
      from: 'C1-21',
      file: held,
      replace: 'zk.clock.after(zk.sessionLeftMs,',
      by: 'zk.clock.after(zk.sessionLeftMs * 100,',
    },
    'broken-by-hand-unheard': {
      what: 'a holder does not notice that its znode was deleted',
      from: 'C1-22',
      file: 'packages/recipes/src/line/own-watch.ts',
      replace: "if (event.type === 'NodeDeleted') this.#gone();",
      by: "if (event.type === 'NodeDeleted') return;",
    },
    'hold-over-and-suspended': {
      what: 'a removed listener still receives events in transit: a released hold becomes suspended, and then lost or held again',
      from: 'found here: lost and suspended',
      file: 'packages/client/src/client-view.ts',
      replace: 'if (listeners.has(own)) listener(event);',
      by: 'listener(event);',
    },
    'token-of-the-session': {
      what: 'the fencing token is the session id, which does not order the holders',
      from: 'C1-21',
      file: held,
      replace: 'this.fencingToken = place.czxid;',
      by: 'this.fencingToken = place.zk.sessionId;',
    },
    'consent-without-release': {
      what: 'a holder that agrees to release does not release',
      from: 'C1-30',
      file: acquire,
      replace: 'await held.release();',
      by: 'void held;',
    },
  }),
  ...caughtBy('shared-locks', {
    'reader-beside-writers': {
      what: 'a reader enters although a writer is before it in the wait queue',
      from: 'C1-24',
      file: sharedLock,
      replace: 'all.slice(0, own).findLast(({ kind }) => kind === names.write)',
      by: 'all.slice(0, Math.min(own, 1)).findLast(({ kind }) => kind === names.write)',
    },
    'writer-beside-readers': {
      what: 'a writer waits for writers only',
      from: 'C1-25',
      file: sharedLock,
      replace: 'data, ahead: nextAhead, what: `shared lock ${path} for writing`',
      by: 'data, ahead: (void nextAhead, writerAhead), what: `shared lock ${path} for writing`',
    },
    'reader-watches-the-first-writer': {
      what: 'a reader watches the first of the writers before it instead of the last',
      from: 'C1-24',
      file: sharedLock,
      replace: 'findLast(',
      by: 'find(',
    },
    'reader-watches-whoever-is-ahead': {
      what: 'a reader waits for its predecessor, even if that is a reader',
      from: 'C1-24',
      file: sharedLock,
      replace: 'const writerAhead: Ahead = (all, own) =>',
      by: 'const writerAhead: Ahead = (all, own) => own > 0 && all[own - 1]!.kind === names.read ? all[own - 1] :',
    },
  }),
  ...caughtBy('semaphores', {
    'lease-too-many': {
      what: 'a semaphore grants one lease too many',
      from: 'B14',
      file: 'packages/recipes/src/locks/semaphore.ts',
      replace: 'return at < size;',
      by: 'return at <= size;',
    },
    'leases-kept-in-vain': {
      what: 'a waiter that gives up leaves its semaphore znode in place',
      from: 'B14',
      file: 'packages/recipes/src/locks/semaphore.ts',
      replace: 'if (!has) await Promise.all(places.map((place) => place.leave()));',
      by: 'void has;',
    },
  }),
  ...caughtBy('multi-locks', {
    'locks-in-any-order': {
      what: 'several locks are acquired in the order in which they are named, so two processes can deadlock',
      from: 'B13',
      file: 'packages/recipes/src/locks/multi-lock.ts',
      replace: 'parts.toSorted((one, other) => (one.path < other.path ? -1 : 1))',
      by: '[...parts]',
    },
    'locks-kept-when-one-fails': {
      what: 'when one of several locks cannot be acquired, the others are kept',
      from: 'B13',
      file: 'packages/recipes/src/locks/multi-lock.ts',
      replace: 'await releaseAll(holds);\n      throw error;',
      by: 'throw error;',
    },
  }),
  ...caughtBy('priority-locks', {
    'urgent-reader-beside-a-writer': {
      what: 'a reader with priority enters although a writer holds the lock',
      from: 'C1-41',
      file: 'packages/recipes/src/locks/priority-lock.ts',
      replace: 'read: ((line, own) => line.slice(0, own).findLast(isWriter)) satisfies Ahead,',
      by: 'read: (() => undefined) satisfies Ahead,',
    },
  }),
  ...caughtBy('set-partitions', {
    'work-goes-on-without-lock': {
      what: 'a process working on an item does not notice that it lost the lock',
      from: 'B25',
      file: 'packages/recipes/src/groups/partition-claim.ts',
      replace: 'for (const { signal } of [this.#back, held]) {',
      by: 'for (const { signal } of [this.#back]) {',
    },
  }),
  ...caughtBy('elections', {
    'acknowledged-by-another': {
      what: 'a leader takes the acknowledgement of its predecessor for its own',
      from: 'C1-40',
      file: 'packages/recipes/src/elections/leadership.ts',
      replace: "while (!(await this.#settles(own, 'NodeExists', options))) {",
      by: "while (!(await this.#settles(own, 'NodeExists', options))) {\n      return;",
    },
    'onlooker-deaf-behind-reread': {
      what: 'an observer of an election misses what happens right after a reconnect',
      from: 'C1-40',
      file: election,
      replace:
        "for await (const { zk, event } of watchOf(this.#source, this.path, signal)) {\n      if (event.type === 'NodeDataChanged') continue;",
      by: "let isDeaf = false;\n    for await (const { zk, event } of watchOf(this.#source, this.path, signal)) {\n      const wasDeaf = isDeaf;\n      isDeaf = event.type === 'Reread';\n      if (wasDeaf || event.type === 'NodeDataChanged') continue;",
    },
    'onlooker-believes-any-word': {
      what: "an observer of an election takes the acknowledgement of an earlier leader for the current one's",
      from: 'C1-40',
      file: election,
      replace: 'new TextDecoder().decode(acknowledged ?? undefined) === first.name;',
      by: 'new TextDecoder().decode(acknowledged ?? undefined) !== this.path;',
    },
    'onlooker-goes-back': {
      what: "an observer of an election reads the acknowledgement after the leader's znode, so a leader seems not to have acknowledged",
      from: 'found here: the word behind the leader',
      file: election,
      replace:
        'const acknowledged = await dataOf(zk, acknowledgedPath(this.path), signal);\n      const leader = await dataOf(zk, first.path, signal);',
      by: 'const leader = await dataOf(zk, first.path, signal);\n      const acknowledged = await dataOf(zk, acknowledgedPath(this.path), signal);',
    },
    'onlooker-tells-the-past': {
      what: 'an observer of an election reports a leader that was gone when it was read',
      from: 'C1-40',
      file: election,
      replace: 'if (leader === undefined) continue;',
      by: 'if (leader === undefined) return { path: first.path, data: null, acknowledged: false };',
    },
  }),
  ...caughtBy('gates', {
    'gate-open-at-any-event': {
      what: 'a process that waits for a barrier continues at the first event of any kind',
      from: 'C1-6',
      file: 'packages/recipes/src/barriers/barrier.ts',
      replace: 'while (await nextEvent(zk, this.path, signal));',
      by: 'await nextEvent(zk, this.path, signal);',
    },
  }),
  ...caughtBy('gatherings', {
    'gathering-one-short': {
      what: 'a simple barrier opens when one participant is missing',
      from: 'C0-3',
      file: simpleBarrier,
      replace: 'children.length >= this.size ||',
      by: 'children.length >= this.size - 1 ||',
    },
    'gathering-left-alone': {
      what: 'a participant leaves a simple barrier without waiting for the others',
      from: 'C0-5',
      file: simpleBarrier,
      replace: '      await this.#untilEmpty(zk, signal);\n',
      by: '      void signal;\n      void (() => this.#untilEmpty(zk, signal));\n',
    },
    'gathering-full-unsaid': {
      what: 'a participant that sees a simple barrier full does not record it, and a slow one waits for ever',
      from: 'C0-7',
      file: simpleBarrier,
      replace: 'if (stat.version === 0) await this.#sayFull(zk, signal);',
      by: 'void (() => this.#sayFull(zk, signal));',
    },
  }),
  ...caughtBy('barriers', {
    'round-begun-by-hearsay': {
      what: 'a round begins with the participants of the last listing, without checking that they still exist',
      from: 'C1-8',
      file: entrance,
      replace: 'readyData(waiting), { acl }), ...checks]',
      by: 'readyData(waiting), { acl }), ...checks.slice(0, 0)]',
    },
    'stale-ready-opens': {
      what: 'a stale `ready` from before a crash opens the next round',
      from: 'C1-13',
      file: entrance,
      replace: 'await this.clearAway(czxid);\n    return undefined;',
      by: 'void czxid;\n    return openers;',
    },
    'late-and-unmarked': {
      what: 'a latecomer also counts for the next round',
      from: 'C1-9',
      file: entrance,
      replace: '[mark, ...checks]',
      by: '(void mark, [...checks])',
    },
    'waits-for-those-who-come': {
      what: 'a leaving participant also waits for those that wait to enter, which wait for it',
      from: 'found here: a latecomer and one that waits',
      file: exit,
      replace: 'return version !== 0 ||',
      by: 'return true || version !== 0 ||',
    },
    'leaves-alone': {
      what: 'a participant that is not the lowest leaves without waiting',
      from: 'C1-10',
      file: exit,
      replace: 'await this.#next(next, signal);',
      by: 'if (next !== own) return;\n      await this.#next(next, signal);',
    },
    'ready-taken-early': {
      what: 'the first participant to leave deletes `ready`',
      from: 'C1-13',
      file: exit,
      replace: 'place.isLast = this.isLast(names);',
      by: 'place.isLast = true;',
    },
    'entrance-given-up-in-part': {
      what: 'a participant that gives up waiting leaves its znode and is counted',
      from: 'B4',
      file: entrance,
      replace: 'await place.leave();\n    throw error;',
      by: 'throw error;',
    },
  }),
]);
