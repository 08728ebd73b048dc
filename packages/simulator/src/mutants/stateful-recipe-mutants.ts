/**
 * Mutants of recipes that depend on more than a place in a wait queue: values, leases, candidates,
 * persistent znodes, caches and events.
 */
import { detectedBy, type Mutant } from './mutant.ts';

const atomicNumber = 'packages/recipes/src/values/atomic-number.ts';
const sharedValue = 'packages/recipes/src/values/shared-value.ts';
const lease = 'packages/recipes/src/leases/lease.ts';
const heldLease = 'packages/recipes/src/leases/held-lease.ts';
const persistentNode = 'packages/recipes/src/nodes/persistent-node.ts';
const mirror = 'packages/recipes/src/caches/cache-updater.ts';
const eventHandle = 'packages/recipes/src/events/event-handle.ts';
const migrations = 'packages/recipes/src/models/migrations.ts';
const candidate = 'packages/recipes/src/elections/leader-latch.ts';

export const statefulRecipeMutants: Readonly<Record<string, Mutant>> = Object.fromEntries([
  ...detectedBy('values', {
    'number-written-unversioned': {
      description: 'a number is written even if it was changed since it was read',
      origin: 'B19',
      file: atomicNumber,
      original: 'op.setData(this.path, data, { version: found.version })',
      replacement: 'op.setData(this.path, data)',
    },
    'number-lost-reply-retried': {
      description: 'a change of a number whose reply was lost counts as a conflict and is repeated',
      origin: 'B19',
      file: atomicNumber,
      original: 'await this.#markers.get(zk).write([op.setData(this.path, data, { version: found.version })]);',
      replacement:
        'await this.#markers.get(zk).write([]).catch(() => undefined);\n      await zk.setData(this.path, data, { ...retryForever, idempotent: true, version: found.version });\n      void op;',
    },
    'number-cas-unconditional': {
      description: 'compareAndSet of a number sets it whatever its value',
      origin: 'B19',
      file: atomicNumber,
      original: '(before === expected ? value : undefined)',
      replacement: '(before === expected || before !== before - 1 ? value : undefined)',
    },
    'range-too-long': {
      description: 'a range of numbers hands out one number more than it has',
      origin: 'B19',
      file: 'packages/recipes/src/values/cached-atomic-number.ts',
      original: 'this.#range.issued === this.#size',
      replacement: 'this.#range.issued > this.#size',
    },
    'value-cas-unconditional': {
      description: 'compareAndSet of a value sets it whatever its version',
      origin: 'B18',
      file: sharedValue,
      original: 'isAsExpected = now?.version === expected?.stat.version && now?.czxid === expected?.stat.czxid;',
      replacement: 'isAsExpected = now?.czxid === expected?.stat.czxid || expected === undefined;',
    },
  }),
  ...detectedBy('leases', {
    'lease-end-unnoticed': {
      description: 'the holder of a lease does not notice that its time is up',
      origin: 'B24',
      file: heldLease,
      original: "() => this.#lose('its time is over')",
      replacement: '() => undefined',
    },
    'lease-failed-renewal-ignored': {
      description: 'a lease that could not be renewed lasts as if it had been renewed',
      origin: 'B24',
      file: heldLease,
      original: '    const askedAtMs = source.clock.now().elapsedMs;\n    try {',
      replacement: '    const askedAtMs = source.clock.now().elapsedMs;\n    this.#startTimer(askedAtMs);\n    try {',
    },
    'lease-taken-while-held': {
      description: 'a lease is taken even while another process holds it',
      origin: 'B24',
      file: lease,
      original: 'now.holder !== holder && now.endMs > nowMs)',
      replacement: 'now.holder !== holder && now.endMs > nowMs && now.version < 0)',
    },
    'lease-unfenced': {
      description: 'writes through a lease are not fenced',
      origin: 'B24',
      file: heldLease,
      original: 'await fencedMulti(zk, make(this.#version), [this.path], options);',
      replacement:
        'await fencedMulti(zk, (recordOpIndex === 0 ? make(this.#version) : make(this.#version).slice(0, recordOpIndex)) as unknown as Ops, [], options);',
    },
    'lease-predecessor-znode-left': {
      description: 'a process that takes a lease leaves the znode of the previous holder, which keeps writing',
      origin: 'B24',
      file: lease,
      original: '...others.map(({ path }) => op.delete(path)), ',
      replacement: '...others.slice(others.length).map(({ path }) => op.delete(path)), ',
    },
  }),
  ...detectedBy('persistent-nodes', {
    'persistent-node-in-one-session': {
      description: 'a persistent node is kept in the first session only',
      origin: 'B23',
      file: persistentNode,
      original: 'this.#keeping = this.#keepInSession(zk);',
      replacement: 'if (this.#stopFollowing === undefined) this.#keeping = this.#keepInSession(zk);',
    },
    'persistent-node-not-recreated': {
      description: 'a persistent node that was deleted is not recreated',
      origin: 'B23',
      file: persistentNode,
      original: 'if (!this.#hasEnded) continue;',
      replacement: 'if (!this.#hasEnded) break;',
    },
    'persistent-node-of-another-session': {
      description: 'an ephemeral of another session counts as the persistent node',
      origin: 'B23',
      file: 'packages/recipes/src/nodes/node-creator.ts',
      original: 'stat.ephemeralOwner === zk.sessionId) {',
      replacement: 'stat.ephemeralOwner !== 0n) {',
    },
    'persistent-node-data-lost-during-create': {
      description: 'data set while a persistent node is being created are not written',
      origin: 'B23',
      file: persistentNode,
      original: 'made = await this.#creator.create(zk, () => this.#content);',
      replacement:
        'made = await this.#creator.create(zk, () => this.#content).then((each) => each && { ...each, content: this.#content });',
    },
    'persistent-node-data-compared-by-value': {
      description: 'setting the data with which a persistent node was created does not write them',
      origin: 'B23',
      file: persistentNode,
      original: 'made.content === content',
      replacement: 'made.content.data === content.data',
    },
    'persistent-node-left-when-closed': {
      description: 'a persistent node stays after it is closed',
      origin: 'B23',
      file: persistentNode,
      original: 'await deleteNode(made);',
      replacement: 'void deleteNode;',
    },
    'group-member-change-unnoticed': {
      description: 'an observer of a group does not notice that a member changed its data, or is another one with that name',
      origin: 'B2',
      file: 'packages/recipes/src/groups/group.ts',
      original: '`${path}/${stat.mzxid}`',
      replacement: '(void stat, path)',
    },
    'group-members-not-reported-when-read': {
      description: 'an observer of a group is not notified when all members have been read, at first or after a reconnect',
      origin: 'B2',
      file: 'packages/recipes/src/caches/observe-cache.ts',
      original: 'if (!isSynced && !wasInStep) continue;',
      replacement: 'if (isSynced && !wasInStep) continue;',
    },
    'discovery-round-robin-stuck': {
      description: 'the round-robin strategy always uses the same instance',
      origin: 'B26',
      file: 'packages/recipes/src/discovery/strategies.ts',
      original: 'next = at + 1;',
      replacement: 'next = at;',
    },
    'discovery-instances-never-refreshed': {
      description: 'the instances of a service stay those of the first listing',
      origin: 'B26',
      file: 'packages/recipes/src/discovery/service-provider.ts',
      original: 'return this.#cache.instances.filter(',
      replacement: 'return (((this.#cache as any).first ??= this.#cache.instances) as readonly ServiceInstance<Payload>[]).filter(',
    },
  }),
  ...detectedBy('caches', {
    'cache-keeps-the-deleted': {
      description: 'a cache does not show that a znode was deleted',
      origin: 'B20',
      file: mirror,
      original: 'if (this.#isIncluded(event.path)) this.#onDeleted(event.path, event.zxid);',
      replacement: 'if (event.zxid === 0n) this.#onDeleted(event.path, event.zxid);',
    },
    'cache-misses-deletion-while-disconnected': {
      description: 'a cache does not show that a znode was deleted during a disconnection',
      origin: 'B20',
      file: mirror,
      original: 'this.contents.retainChildren(path, children);',
      replacement: '',
    },
    'cache-data-never-refreshed': {
      description: 'a cache does not read a znode again when it changes',
      origin: 'B20',
      file: mirror,
      original: "(type === 'NodeCreated' ? stat.czxid : stat.mzxid) >= zxid",
      replacement: 'type !== undefined',
    },
    'cache-ready-too-early': {
      description: 'a cache reports that it is complete when only its first znode has been read',
      origin: 'B20',
      file: mirror,
      original: 'if (this.#pendingResync.size > 0 || this.#isSynced) return;',
      replacement: 'if (this.#isSynced) return;\n    this.#pendingResync.clear();\n    this.#reads.end();',
    },
  }),
  ...detectedBy('events', {
    'event-taken-by-another-passes': {
      description: 'a waiter that finds the event taken passes too',
      origin: 'C1-41',
      file: eventHandle,
      original: 'return false;\n      }',
      replacement: 'return true;\n      }',
    },
    'event-taken-twice': {
      description: 'a waiter that took an event without a reply takes it again',
      origin: 'C1-41',
      file: eventHandle,
      original: 'return data !== null && new TextDecoder().decode(data) === consumedMark;',
      replacement: 'return data !== null && data.length > consumedMark.length;',
    },
    'event-lost-reply-passes': {
      description: 'a waiter without a reply passes, whether the event is taken or not',
      origin: 'C1-41',
      file: eventHandle,
      original: 'return data !== null && new TextDecoder().decode(data) === consumedMark;',
      replacement: 'return data === null || data.length <= consumedMark.length;',
    },
    'event-set-twice': {
      description: 'setting an auto-reset event again after a lost reply sets it a second time, though a waiter has already passed',
      origin: 'found here: set twice',
      file: eventHandle,
      original: 'await marks.write([op.create(this.#setPath, null, { acl })], signal);',
      replacement: "await zk.create(this.#setPath, null, { acl, parents: 'container', idempotent: true, ...retryForever, signal });",
    },
    'event-passes-unset': {
      description: 'a waiter passes when the event is not set',
      origin: 'C1-41',
      file: eventHandle,
      original: '(stat) => stat !== null,',
      replacement: '(stat) => stat === null,',
    },
  }),
  ...detectedBy('migrations', {
    'migration-recorded-in-own-txn': {
      description: 'a migration is recorded in a separate txn',
      origin: 'B28',
      file: migrations,
      original: 'await hold.multi([...ops, recording], { ...retryForever, signal });',
      replacement:
        'await hold.multi([...ops], { ...retryForever, signal });\n        await hold.multi([recording], { ...retryForever, signal });',
    },
    'migration-lost-reply-rejected': {
      description: 'a migration whose reply was lost is repeated and fails',
      origin: 'B28',
      file: migrations,
      original: 'if (await isRecorded(hold, record, signal)) return;',
      replacement: 'void isRecorded;',
    },
    'migration-unfenced': {
      description: 'a process that lost the lock continues to migrate',
      origin: 'B28',
      file: migrations,
      original: 'await hold.multi([...ops, recording], { ...retryForever, signal });',
      replacement: 'await hold.client.multi([...ops, recording], { ...retryForever, signal });',
    },
  }),
  ...detectedBy('candidates', {
    'candidate-of-one-session': {
      description: 'a candidate takes part in its first session only',
      origin: 'B16',
      file: candidate,
      original: 'await this.#contendInSession(zk);',
      replacement: 'await this.#contendInSession(zk).then(() => new Promise(() => undefined));',
    },
    'candidate-removed-for-good': {
      description: 'a candidate whose znode was deleted does not take part again',
      origin: 'B16',
      file: candidate,
      original: 'if (!isLeadershipLoss(error)) throw error;',
      replacement: 'throw error;',
    },
    'candidate-resigns-before-work-ends': {
      description: 'a closed candidate lets the next one lead while its own work still runs',
      origin: 'B16',
      file: candidate,
      original: 'await this.#currentWork;\n',
      replacement: 'void this.#currentWork;\n',
    },
    'candidate-works-on': {
      description: 'the work of a candidate is not notified that the leadership is lost',
      origin: 'B16',
      file: candidate,
      original: '[leadership.signal, this.signal, signal]',
      replacement: '[this.signal, signal]',
    },
  }),
]);
