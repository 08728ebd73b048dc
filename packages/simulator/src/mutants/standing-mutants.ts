/** The part of the zoo of what stands or falls by more than a place in a line: values, leases, candidates, kept znodes, caches and events. */
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
      what: 'a number is written, also when it was changed since it was read',
      from: 'B19',
      file: atomicNumber,
      replace: 'op.setData(this.path, data, { version: found.version })',
      by: 'op.setData(this.path, data)',
    },
    'number-without-mark': {
      what: 'a change of a number whose answer was lost is taken for one that lost, and is made again',
      from: 'B19',
      file: atomicNumber,
      replace: 'await this.#marks.of(zk).write([op.setData(this.path, data, { version: found.version })]);',
      by: 'await this.#marks.of(zk).write([]).catch(() => undefined);\n      await zk.setData(this.path, data, { ...untilTheEnd, idempotent: true, version: found.version });\n      void op;',
    },
    'number-set-whatever-it-is': {
      what: 'a number that is compared and set is set, whatever it is',
      from: 'B19',
      file: atomicNumber,
      replace: '(before === expected ? value : undefined)',
      by: '(before === expected || before !== before - 1 ? value : undefined)',
    },
    'range-too-long': {
      what: 'a range of numbers is given out with one number more than it has',
      from: 'B19',
      file: 'packages/recipes/src/values/cached-number.ts',
      replace: 'this.#range.given === this.#size',
      by: 'this.#range.given > this.#size',
    },
    'value-set-whatever-it-is': {
      what: 'a value that is compared and set is set, whatever it is',
      from: 'B18',
      file: sharedValue,
      replace: 'isAsExpected = now?.version === expected?.stat.version && now?.czxid === expected?.stat.czxid;',
      by: 'isAsExpected = now?.czxid === expected?.stat.czxid || expected === undefined;',
    },
  }),
  ...caughtBy('leases', {
    'lease-without-end': {
      what: 'who holds a lease does not hear that its time is over',
      from: 'B24',
      file: heldLease,
      replace: "() => this.#lose('its time is over')",
      by: '() => undefined',
    },
    'lease-renewed-without-word': {
      what: 'a lease that could not be renewed lasts as if it had been',
      from: 'B24',
      file: heldLease,
      replace: '    const askedAtMs = source.clock.now().elapsedMs;\n    try {',
      by: '    const askedAtMs = source.clock.now().elapsedMs;\n    this.#runFrom(askedAtMs);\n    try {',
    },
    'lease-not-looked-at': {
      what: 'a lease is taken, whoever has it and for how long',
      from: 'B24',
      file: lease,
      replace: 'now.holder !== holder && now.endMs > nowMs)',
      by: 'now.holder !== holder && now.endMs > nowMs && now.version < 0)',
    },
    'lease-unfenced': {
      what: 'what is written by a lease is not fenced',
      from: 'B24',
      file: heldLease,
      replace: 'await fenced(zk, make(this.#version), [this.path], options);',
      by: 'await fenced(zk, (at === 0 ? make(this.#version) : make(this.#version).slice(0, at)) as unknown as Ops, [], options);',
    },
    'lease-of-the-past-stays': {
      what: 'who takes a lease leaves the znode of the one before it, who goes on writing',
      from: 'B24',
      file: lease,
      replace: '...others.map(({ path }) => op.delete(path)), ',
      by: '...others.slice(others.length).map(({ path }) => op.delete(path)), ',
    },
  }),
  ...caughtBy('kept-znodes', {
    'kept-in-one-session': {
      what: 'a znode is kept in the first session only',
      from: 'B23',
      file: persistentNode,
      replace: 'this.#serving = this.#serve(zk);',
      by: 'if (this.#unfollow === undefined) this.#serving = this.#serve(zk);',
    },
    'kept-until-it-is-deleted': {
      what: 'a kept znode that somebody has deleted is not made again',
      from: 'B23',
      file: persistentNode,
      replace: 'if (!this.#isOver) continue;',
      by: 'if (!this.#isOver) break;',
    },
    'kept-of-another-session': {
      what: 'an ephemeral of another session is taken for the znode that is kept',
      from: 'B23',
      file: 'packages/recipes/src/nodes/node-maker.ts',
      replace: 'stat.ephemeralOwner === zk.sessionId) {',
      by: 'stat.ephemeralOwner !== 0n) {',
    },
    'kept-with-data-of-before': {
      what: 'data that a kept znode is given while it is being made are not written',
      from: 'B23',
      file: persistentNode,
      replace: 'made = await this.#maker.make(zk, () => this.#content);',
      by: 'made = await this.#maker.make(zk, () => this.#content).then((each) => each && { ...each, content: this.#content });',
    },
    'kept-with-data-by-value': {
      what: 'a kept znode is not given data again that it was made with',
      from: 'B23',
      file: persistentNode,
      replace: 'made.content === content',
      by: 'made.content.data === content.data',
    },
    'kept-when-closed': {
      what: 'a znode that is kept no longer stays',
      from: 'B23',
      file: persistentNode,
      replace: 'await remove(made);',
      by: 'void remove;',
    },
    'members-known-by-name': {
      what: 'who looks on at a group is not told that a member says something else of itself, or is another of that name',
      from: 'B2',
      file: 'packages/recipes/src/groups/group.ts',
      replace: '`${path}/${stat.mzxid}`',
      by: '(void stat, path)',
    },
    'members-untold-when-read': {
      what: 'who looks on at a group is told nothing when all members have been read, first or behind a lost connection',
      from: 'B2',
      file: 'packages/recipes/src/caches/told.ts',
      replace: 'if (!inStep && !wasInStep) continue;',
      by: 'if (inStep && !wasInStep) continue;',
    },
    'one-instance-for-all': {
      what: 'those who use a service in turn use one instance all the time',
      from: 'B26',
      file: 'packages/recipes/src/discovery/strategies.ts',
      replace: 'next = at + 1;',
      by: 'next = at;',
    },
    'instances-of-the-first-look': {
      what: 'the instances of a service are those that were there at the first look',
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
      what: 'a cache does not show that a znode was deleted while there was no connection',
      from: 'B20',
      file: mirror,
      replace: 'this.shown.keepChildren(path, children);',
      by: '',
    },
    'cache-takes-changes-for-known': {
      what: 'a cache does not read what has changed since the znode was made',
      from: 'B20',
      file: mirror,
      replace: "(type === 'NodeCreated' ? stat.czxid : stat.mzxid) >= zxid",
      by: 'type !== undefined',
    },
    'cache-in-step-too-early': {
      what: 'a cache is in step when the first of its znodes has been read',
      from: 'B20',
      file: mirror,
      replace: 'if (this.#toSurvey.size > 0 || this.#isInStep) return;',
      by: 'if (this.#isInStep) return;\n    this.#toSurvey.clear();\n    this.#visits.end();',
    },
  }),
  ...caughtBy('events', {
    'event-taken-by-hearsay': {
      what: 'who finds an event taken goes through as well',
      from: 'C1-41',
      file: eventHandle,
      replace: 'return false;\n      }',
      by: 'return true;\n      }',
    },
    'event-taken-twice': {
      what: 'who has taken an event, and was not answered, takes it again',
      from: 'C1-41',
      file: eventHandle,
      replace: 'return data !== null && new TextDecoder().decode(data) === through;',
      by: 'return data !== null && data.length > through.length;',
    },
    'event-taken-or-not': {
      what: 'who was not answered goes through, whether the event is taken or not',
      from: 'C1-41',
      file: eventHandle,
      replace: 'return data !== null && new TextDecoder().decode(data) === through;',
      by: 'return data === null || data.length <= through.length;',
    },
    'event-set-twice': {
      what: 'who sets an event that lets one through, and was not answered, sets it again, though somebody has gone through by then',
      from: 'found here: set twice',
      file: eventHandle,
      replace: 'await marks.write([op.create(this.#set, null, { acl })], signal);',
      by: "await this.#zk.create(this.#set, null, { acl, parents: 'container', idempotent: true, ...untilTheEnd, signal });",
    },
    'event-let-through-when-it-is-not-set': {
      what: 'who waits goes on when anything happens, and when the event is not set',
      from: 'C1-41',
      file: eventHandle,
      replace: '(stat) => stat !== null,',
      by: '(stat) => stat === null,',
    },
  }),
  ...caughtBy('migrations', {
    'migration-recorded-apart': {
      what: 'a change of the tree is recorded in a txn of its own',
      from: 'B28',
      file: migrations,
      replace: 'await held.multi([...ops, recording], { ...untilTheEnd, signal });',
      by: 'await held.multi([...ops], { ...untilTheEnd, signal });\n        await held.multi([recording], { ...untilTheEnd, signal });',
    },
    'migration-without-answer-refused': {
      what: 'a change of the tree whose answer was lost is made again, and refused',
      from: 'B28',
      file: migrations,
      replace: 'if (await isOurs(held, record, signal)) return;',
      by: 'void isOurs;',
    },
    'migration-unfenced': {
      what: 'who has lost the lock goes on to change the tree',
      from: 'B28',
      file: migrations,
      replace: 'await held.multi([...ops, recording], { ...untilTheEnd, signal });',
      by: 'await this.#zk.multi([...ops, recording], { ...untilTheEnd, signal });',
    },
  }),
  ...caughtBy('candidates', {
    'candidate-of-one-session': {
      what: 'a candidate stands in its first session only',
      from: 'B16',
      file: candidate,
      replace: 'await this.#standIn(zk);',
      by: 'await this.#standIn(zk).then(() => new Promise(() => undefined));',
    },
    'candidate-removed-for-good': {
      what: 'a candidate whose znode somebody has deleted stands no more',
      from: 'B16',
      file: candidate,
      replace: 'if (!isLoss(error)) throw error;',
      by: 'throw error;',
    },
    'candidate-resigns-under-its-work': {
      what: 'a candidate that is closed lets the next one lead while its own work is under way',
      from: 'B16',
      file: candidate,
      replace: 'await this.#working;\n',
      by: 'void this.#working;\n',
    },
    'candidate-works-on': {
      what: 'the work of a candidate is not told that the lead is lost',
      from: 'B16',
      file: candidate,
      replace: '[leadership.signal, this.signal, signal]',
      by: '[this.signal, signal]',
    },
  }),
]);
