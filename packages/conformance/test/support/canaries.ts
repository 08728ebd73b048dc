/**
 * For each check without its own bug in `wrongnesses.ts`: the bug of `mutations.ts` that it has to
 * detect, or several, each of which it has to detect. The bug is one that the title of the check
 * forbids.
 */
import type { Client } from '@tskeeper/client';
import type { LocalSessionMode } from '../../src/index.ts';
import type { mutations } from './mutations.ts';

type Bug = keyof typeof mutations;

/** Bugs of a standalone server. */
export const canaries: Readonly<Record<string, Bug | readonly Bug[]>> = {
  'create.persistent': 'czxid of the Stat of creates is too large by one',
  'create.outlives-its-session': 'creates make ephemerals of all',
  'create.without-stat': 'creates answer the path of the parent',
  'create.ephemeral': 'creates make no ephemerals',
  'create.ttl': 'ephemeralOwner of every Stat is too large by one',
  'create.flags': 'creates with unknown flags are persistent',
  'create.refusals': 'refusals of creates are NoAuth',
  'create.race': 'NodeExists of creates is success',
  'sequence.counts-creates': 'creates answer a path that is one number too large',
  'sequence.cversion': 'cversion of every Stat is too large by one',
  'sequence.across-clients': 'creates answer a path that is one number too large',
  'sequence.in-multi': 'paths within a multi have a slash at the end',
  'data.bytes': 'creates lose the last byte',
  'data.large': 'getData loses the last byte',
  'data.frame-too-long': 'a length that no frame has is skipped',
  'versions.delete': 'versions are not compared',
  'versions.set-acl': 'aversion of every Stat is too large by one',
  'versions.begin-anew': 'version of the Stat of creates is too large by one',
  'stat.set-data': 'mtime of the Stat of setData is too large by one',
  'stat.not-of-the-parent': 'every request counts as a change of the Stat of exists',
  'stat.multi': 'mzxid of every Stat is too large by one',
  'stat.refusal-changes-nothing': 'every request counts as a change of the Stat of exists',
  'stat.zxids-grow': 'zxids of every Stat are those of the znode before',
  'delete.order-of-judgement': 'refusals of deletes are BadArguments',
  'delete.reserved': 'refusals of deletes are BadVersion',
  'delete.someone-elses-ephemeral': 'delete is answered as done, and not done',
  'reads.exists': 'version of the Stat of exists is too large by one',
  'reads.data-with-version': 'version of the Stat of getData is too large by one',
  'reads.children': 'getChildren leaves the first child out',
  'reads.children-without-stat': 'getChildren lists paths',
  'reads.number-of-descendants': 'getAllChildrenNumber counts the znode itself',
  'reads.linearizable': 'getData answers what it answered before',
  'reads.sync': 'sync answers another path',
  'errors.no-node': 'NoNode is SystemError',
  'errors.numbers': 'refusals of creates are NoAuth',
  'paths.legal': 'getChildren lists paths',
  'paths.server-changes': 'BadArguments is NoNode',
  'acl.default-and-change': 'setACL grants everything',
  'acl.exists': 'creates grant everything',
  'acl.write-create-delete-admin': 'setACL grants everything',
  'acl.not-inherited': 'creates take the ACL of the parent',
  'acl.digest': 'auth is not shown to the server',
  'acl.auth': 'getACL says that everything is granted',
  'acl.masked': 'getACL says that everything is granted',
  'acl.ip': 'creates grant everything',
  'acl.invalid': 'InvalidACL is BadArguments',
  'acl.no-list': 'creates grant everything',
  'auth.refused': 'auth takes every scheme',
  'auth.frames': 'auth takes every scheme',
  'auth.after-a-reconnect': 'auth is shown to the server on the first connection only',
  'multi.results': 'Stats within a multi have a version too large by one',
  'multi.create-stat': 'Stats within a multi have a version too large by one',
  'multi.modes': 'multi makes persistent znodes only',
  'multi.failures': 'errors within a multi are SystemError',
  'multi.undone-parts': 'multi leaves its checks out',
  'multi.seen-at-once': [
    'multi is split into its operations',
    'of two znodes the first is read late',
    'of two znodes the second is read late',
  ],
  'multi.empty': 'multi answers one result too many',
  'multi.illegal-part': 'MarshallingError is BadArguments',
  'multi-read.results': 'data within a multiRead are lost',
  'multi-read.no-watch': 'an event follows each reply to multiRead',
  'multi-read.no-writes': 'MarshallingError is BadArguments',
  'watches-once.refused-read': 'a read that is refused sets a watch',
  'watches-once.several': 'NodeDeleted is not sent',
  'watches-once.multi': 'events come in reversed pairs',
  'watches-once.not-readable': 'creates grant everything',
  'watches-staying.persistent': 'only the first event of a connection is sent',
  'watches-staying.recursive': 'no watch is recursive',
  'watches-staying.ephemerals-of-a-session': 'only the first event of a connection is sent',
  'watches-staying.several-modes': 'NodeCreated is not sent',
  'watches-staying.zxid': 'events have zxid 1',
  'watches-staying.unknown-mode': 'MarshallingError is BadArguments',
  'watches-removal.by-type': [
    'removeWatches removes all types',
    'removeWatches is answered as done, and not done',
    'removeWatches only checks them',
  ],
  'watches-removal.any': ['removeWatches is answered as done, and not done', 'removeWatches only checks them'],
  'watches-removal.of-others': 'removeWatches removes those of other sessions',
  'watches-removal.persistent': 'removeWatches is answered as done, and not done',
  'watches-removal.persistent-by-type': 'removeWatches removes all types',
  'watches-restored.staying': 'watches that stay are not restored',
  'watches-restored.many': 'only the first request to restore watches is carried out',
  'watches-restored.frames': 'setWatches is answered with the xid of another request',
  'sessions.ids': 'sessions have id 7',
  'sessions.refused-frame': 'refused handshakes have a password',
  'sessions.two-handles': 'each connection gets a new session',
  'sessions.reconnect': 'each connection gets a new session',
  'sessions.expiry': ['sessions that have ended are resumed', 'time-outs are granted four times as long as they are kept'],
  'sessions.ended': 'closeSession is answered as done, and not done',
  'chroot.paths': 'creates answer the path of the parent',
  'chroot.events': 'NodeCreated has the path of the parent',
  'chroot.ephemerals': 'getEphemerals lists one too many',
  'chroot.missing': 'NoNode is SystemError',
  'order.fifo': 'getData answers what it answered before',
  'order.headers': 'zxids of replies fall',
  'order.never-back': 'reads go back in time',
  'order.one-order-for-all': 'exists answers what it answered before',
  'opcodes.undecodable': ['a read that ends too early costs the connection', 'a read that ends too early is carried out'],
  'config.read': 'getConfig has data',
  'config.below-a-chroot': 'getConfig has other data each time',
  'config.reconfig-refused': 'refusals of reconfig are SystemError',
};

/** A bug of one server of an ensemble; `server` is its index. */
interface EnsembleCanary {
  readonly check: string;
  readonly server: number;
  readonly bug: Bug;
}

/** Bugs of one server of an ensemble. */
export const ensembleCanaries: readonly EnsembleCanary[] = [
  { check: 'create.ttl-switched-off', server: 0, bug: 'Unimplemented is BadArguments' },
  { check: 'ensemble.ephemerals', server: 0, bug: 'ephemeralOwner of every Stat is too large by one' },
  { check: 'ensemble.sequence', server: 1, bug: 'creates answer a path that is one number too large' },
  { check: 'ensemble.multi', server: 0, bug: 'multi is split into its operations' },
  { check: 'ensemble.multi', server: 1, bug: 'of two znodes the first is read late' },
  { check: 'ensemble.multi', server: 1, bug: 'of two znodes the second is read late' },
  { check: 'ensemble.expiry', server: 1, bug: 'each connection gets a new session' },
  { check: 'ensemble.client-goes-on', server: 1, bug: 'each connection gets a new session' },
];

/**
 * Checks of local sessions, how the ensemble really is, and how a server that should be so is taken
 * for wrong.
 */
export const localSessionCanaries: readonly {
  readonly check: string;
  readonly wrong: string;
  readonly expected: LocalSessionMode;
  readonly actual: LocalSessionMode;
}[] = [
  {
    check: 'local-sessions.own-server-only',
    wrong: 'a local session is resumed at every server',
    expected: 'enabled',
    actual: 'disabled',
  },
  {
    check: 'local-sessions.first-ephemeral',
    wrong: 'a local session is not refused an ephemeral',
    expected: 'enabled',
    actual: 'upgradable',
  },
  {
    check: 'local-sessions.first-ephemeral',
    wrong: 'a local session does not become global',
    expected: 'upgradable',
    actual: 'enabled',
  },
];

/** Bugs of a server with a super user. */
export const superCanaries: Readonly<Record<string, Bug>> = {
  'acl.super': 'auth is not shown to the server',
};

/** A wrong client: the methods that differ from those of the correct one. */
interface ClientCanary {
  readonly wrong: string;
  readonly methods: (right: Client) => Partial<Client>;
}

/**
 * Bugs of what a client does by itself, so that no server could make the check fail as its title
 * says.
 */
export const clientCanaries: Readonly<Record<string, ClientCanary>> = {
  'paths.client': {
    wrong: 'the path of exists goes to the server unread, which has no such znode',
    methods: () => ({ exists: () => Promise.resolve(null) }),
  },
  'watches-removal.by-listener': {
    wrong: 'removeWatches takes away all listeners',
    methods: (right) => ({ removeWatches: (path, options) => right.removeWatches(path, { type: options?.type ?? 'any' }) }),
  },
};

/**
 * Checks that a standalone server cannot pass, so that a wrong one would prove nothing. The canary of
 * `config.reconfig`, which needs an ensemble, is in verification/interop/src/conformance/run.ts.
 */
export const withoutCanary: readonly string[] = ['config.reconfig'];
