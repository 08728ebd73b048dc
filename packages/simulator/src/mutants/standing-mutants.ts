/**
 * Mutants of recipes that depend on more than a place in a wait queue: values, leases, candidates,
 * persistent znodes, caches and events.
 */
import { caughtBy, type Mutant } from './mutant.ts';

const atomicNumber = 'packages/recipes/src/values/atomic-number.ts';
const sharedValue = 'packages/recipes/src/values/shared-value.ts';
const lease = 'packages/recipes/src/leases/lease.ts';
const heldLease = 'packages/recipes/src/leases/held-lease.ts';
const persistentNode = 'packages/recipes/src/nodes/persistent-node.ts';
const mirror = 'packages/recipes/src/caches/mirror.ts';
const eventHandle = 'packages/recipes/src/events/event-handle.ts';
const migrations = 'packages/recipes/src/models/migrations.ts';
const candidate = 'packages/recipes/src/elections/candidate.ts';

export const standingMutants: Readonly<Record<string, Mutant>> = Object.fromEntries([
  ...caughtBy('values', {
    'number-of-any-version': {
      what: 'a number is written even if it was changed since it was read',
      from: 'B19',
      file: atomicNumber,
      replace: 'op.setData(this.path, data, { version: found.version })',
      by: 'op.setData(this.path, data)',
    },
    'number-without-mark': {
      what: 'a change of a number whose reply was lost counts as a conflict and is repeated',
      from: 'B19',
      file: atomicNumber,
      replace: 'await this.#marks.of(zk).write([op.setData(this.path, data, { version: found.version })]);',
      by: 'await this.#marks.of(zk).write([]).catch(() => undefined);\n      await zk.setData(this.path, data, { ...untilTheEnd, idempotent: true, version: found.version });\n      void op;',
    },
    'number-set-whatever-it-is': {
      what: 'compareAndSet of a number sets it whatever its value',
      from: 'B19',
      file: atomicNumber,
      replace: '(before === expected ? value : undefined)',
      by: '(before === expected || before !== before - 1 ? value : undefined)',
    },
    'range-too-long': {
      what: 'a range of numbers hands out one number more than it has',
      from: 'B19',
      file: 'packages/recipes/src/values/cached-number.ts',
      replace: 'this.#range.given === this.#size',
      by: 'this.#range.given > this.#size',
    },
    'value-set-whatever-it-is': {
      what: 'compareAndSet of a value sets it whatever its version',
      from: 'B18',
      file: sharedValue,
      replace: 'isAsExpected = now?.version === expected?.stat.version && now?.czxid === expected?.stat.czxid;',
      by: 'isAsExpected = now?.czxid === expected?.stat.czxid || expected === undefined;',
    },
  }),
  ...caughtBy('leases', {
    'lease-without-end': {
      what: 'the holder of a lease does not notice that its time is up',
      from: 'B24',
      file: heldLease,
      replace: "() => this.#lose('its time is over')",
      by: '() => undefined',
    },
    'lease-renewed-without-word': {
      what: 'a lease that could not be renewed lasts as if it had been renewed',
      from: 'B24',
      file: heldLease,
      replace: '    const askedAtMs = source.clock.now().elapsedMs;\n    try {',
      by: '    const askedAtMs = source.clock.now().elapsedMs;\n    this.#runFrom(askedAtMs);\n    try {',
    },
    'lease-not-looked-at': {
      what: 'a lease is taken even while another process holds it',
      from: 'B24',
      file: lease,
      replace: 'now.holder !== holder && now.endMs > nowMs)',
      by: 'now.holder !== holder && now.endMs > nowMs && now.version < 0)',
    },
    'lease-unfenced': {
      what: 'writes through a lease are not fenced',
      from: 'B24',
      file: heldLease,
      replace: 'await fenced(zk, make(this.#version), [this.path], options);',
      by: 'await fenced(zk, (at === 0 ? make(this.#version) : make(this.#version).slice(0, at)) as unknown as Ops, [], options);',
    },
    'lease-of-the-past-stays': {
      what: 'a process that takes a lease leaves the znode of the previous holder, which keeps writing',
      from: 'B24',
      file: lease,
      replace: '...others.map(({ path }) => op.delete(path)), ',
      by: '...others.slice(others.length).map(({ path }) => op.delete(path)), ',
    },
  }),
  ...caughtBy('kept-znodes', {
    'kept-in-one-session': {
      what: 'a persistent node is kept in the first session only',
      from: 'B23',
      file: persistentNode,
      replace: 'this.#serving = this.#serve(zk);',
      by: 'if (this.#unfollow === undefined) this.#serving = this.#serve(zk);',
    },
    'kept-until-it-is-deleted': {
      what: 'a persistent node that was deleted is not recreated',
      from: 'B23',
      file: persistentNode,
      replace: 'if (!this.#isOver) continue;',
      by: 'if (!this.#isOver) break;',
    },
    'kept-of-another-session': {
      what: 'an ephemeral of another session counts as the persistent node',
      from: 'B23',
      file: 'packages/recipes/src/nodes/node-maker.ts',
      replace: 'stat.ephemeralOwner === zk.sessionId) {',
      by: 'stat.ephemeralOwner !== 0n) {',
    },
    'kept-with-data-of-before': {
      what: 'data set while a persistent node is being created are not written',
      from: 'B23',
      file: persistentNode,
      replace: 'made = await this.#maker.make(zk, () => this.#content);',
      by: 'made = await this.#maker.make(zk, () => this.#content).then((each) => each && { ...each, content: this.#content });',
    },
    'kept-with-data-by-value': {
      what: 'setting the data with which a persistent node was created does not write them',
      from: 'B23',
      file: persistentNode,
      replace: 'made.content === content',
      by: 'made.content.data === content.data',
    },
    'kept-when-closed': {
      what: 'a persistent node stays after it is closed',
      from: 'B23',
      file: persistentNode,
      replace: 'await remove(made);',
      by: 'void remove;',
    },
    'members-known-by-name': {
      what: 'an observer of a group does not notice that a member changed its data, or is another one with that name',
      from: 'B2',
      file: 'packages/recipes/src/groups/group.ts',
      replace: '`${path}/${stat.mzxid}`',
      by: '(void stat, path)',
    },
    'members-untold-when-read': {
      what: 'an observer of a group is not notified when all members have been read, at first or after a reconnect',
      from: 'B2',
      file: 'packages/recipes/src/caches/told.ts',
      replace: 'if (!inStep && !wasInStep) continue;',
      by: 'if (inStep && !wasInStep) continue;',
    },
    'one-instance-for-all': {
      what: 'the round-robin strategy always uses the same instance',
      from: 'B26',
      file: 'packages/recipes/src/discovery/strategies.ts',
      replace: 'next = at + 1;',
      by: 'next = at;',
    },
    'instances-of-the-first-look': {
      what: 'the instances of a service stay those of the first listing',
      from: 'B26',
      file: 'packages/recipes/src/discovery/service-provider.ts',
      replace: 'return this.#cache.instances.filter(',
      by: 'return (((this.#cache as any).first ??= this.#cache.instances) as readonly ServiceInstance<Payload>[]).filter(',
    },
  }),
  ...caughtBy('caches', {
    'cache-keeps-the-deleted': {
      what: 'a cache does not show that a znode was deleted',
      from: 'B20',
      file: mirror,
      replace: 'if (this.#isWanted(event.path)) this.#onDeleted(event.path, event.zxid);',
      by: 'if (event.zxid === 0n) this.#onDeleted(event.path, event.zxid);',
    },
    'cache-keeps-what-went-meanwhile': {
      what: 'a cache does not show that a znode was deleted during a disconnection',
      from: 'B20',
      file: mirror,
      replace: 'this.shown.keepChildren(path, children);',
      by: '',
    },
    'cache-takes-changes-for-known': {
      what: 'a cache does not read a znode again when it changes',
      from: 'B20',
      file: mirror,
      replace: "(type === 'NodeCreated' ? stat.czxid : stat.mzxid) >= zxid",
      by: 'type !== undefined',
    },
    'cache-in-step-too-early': {
      what: 'a cache reports that it is complete when only its first znode has been read',
      from: 'B20',
      file: mirror,
      replace: 'if (this.#toSurvey.size > 0 || this.#isInStep) return;',
      by: 'if (this.#isInStep) return;\n    this.#toSurvey.clear();\n    this.#visits.end();',
    },
  }),
  ...caughtBy('events', {
    'event-taken-by-hearsay': {
      what: 'a waiter that finds the event taken passes too',
      from: 'C1-41',
      file: eventHandle,
      replace: 'return false;\n      }',
      by: 'return true;\n      }',
    },
    'event-taken-twice': {
      what: 'a waiter that took an event without a reply takes it again',
      from: 'C1-41',
      file: eventHandle,
      replace: 'return data !== null && new TextDecoder().decode(data) === through;',
      by: 'return data !== null && data.length > through.length;',
    },
    'event-taken-or-not': {
      what: 'a waiter without a reply passes, whether the event is taken or not',
      from: 'C1-41',
      file: eventHandle,
      replace: 'return data !== null && new TextDecoder().decode(data) === through;',
      by: 'return data === null || data.length <= through.length;',
    },
    'event-set-twice': {
      what: 'setting an auto-reset event again after a lost reply sets it a second time, though a waiter has already passed',
      from: 'found here: set twice',
      file: eventHandle,
      replace: 'await marks.write([op.create(this.#set, null, { acl })], signal);',
      by: "await this.#zk.create(this.#set, null, { acl, parents: 'container', idempotent: true, ...untilTheEnd, signal });",
    },
    'event-let-through-when-it-is-not-set': {
      what: 'a waiter passes when the event is not set',
      from: 'C1-41',
      file: eventHandle,
      replace: '(stat) => stat !== null,',
      by: '(stat) => stat === null,',
    },
  }),
  ...caughtBy('migrations', {
    'migration-recorded-apart': {
      what: 'a migration is recorded in a separate txn',
      from: 'B28',
      file: migrations,
      replace: 'await held.multi([...ops, recording], { ...untilTheEnd, signal });',
      by: 'await held.multi([...ops], { ...untilTheEnd, signal });\n        await held.multi([recording], { ...untilTheEnd, signal });',
    },
    'migration-without-answer-refused': {
      what: 'a migration whose reply was lost is repeated and fails',
      from: 'B28',
      file: migrations,
      replace: 'if (await isOurs(held, record, signal)) return;',
      by: 'void isOurs;',
    },
    'migration-unfenced': {
      what: 'a process that lost the lock continues to migrate',
      from: 'B28',
      file: migrations,
      replace: 'await held.multi([...ops, recording], { ...untilTheEnd, signal });',
      by: 'await this.#zk.multi([...ops, recording], { ...untilTheEnd, signal });',
    },
  }),
  ...caughtBy('candidates', {
    'candidate-of-one-session': {
      what: 'a candidate takes part in its first session only',
      from: 'B16',
      file: candidate,
      replace: 'await this.#standIn(zk);',
      by: 'await this.#standIn(zk).then(() => new Promise(() => undefined));',
    },
    'candidate-removed-for-good': {
      what: 'a candidate whose znode was deleted does not take part again',
      from: 'B16',
      file: candidate,
      replace: 'if (!isLoss(error)) throw error;',
      by: 'throw error;',
    },
    'candidate-resigns-under-its-work': {
      what: 'a closed candidate lets the next one lead while its own work still runs',
      from: 'B16',
      file: candidate,
      replace: 'await this.#working;\n',
      by: 'void this.#working;\n',
    },
    'candidate-works-on': {
      what: 'the work of a candidate is not notified that the leadership is lost',
      from: 'B16',
      file: candidate,
      replace: '[leadership.signal, this.signal, signal]',
      by: '[this.signal, signal]',
    },
  }),
]);
