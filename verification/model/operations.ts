/**
 * Streams of operations that are likely to cause trouble: few paths, so that they collide; several
 * identities, wrong versions, ephemeral parents, quotas, watches of every kind, multis that mix
 * valid and invalid parts.
 *
 * An action is made from a random source and a few hints and is complete in itself, so a stream can
 * be cut anywhere and the rest is still meaningful; that lets fast-check shrink a failing stream.
 */
import { type Arbitrary, array, nat } from 'fast-check';
import { featuresPath, OpCode } from '@tskeeper/protocol';
import type { AclEntry, Data, KeeperStep, Operation, ReadStep, Stat, WriteStep } from '@tskeeper/simulator';
import { digestId } from '@tskeeper/simulator';
import { encodeRequest } from '@tskeeper/harness';

/** sfc32: small, fast and random enough. */
export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = 0x9e3779b9;
    this.#c = Math.floor(seed / 4294967296) | 0;
    for (let i = 0; i < 12; i++) this.uint32();
  }

  uint32(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0;
    return t >>> 0;
  }

  below(limit: number): number {
    return this.uint32() % limit;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  /** One of the choices, with a probability by its weight. */
  weighted<T>(choices: readonly (readonly [number, T])[]): T {
    let at = this.below(choices.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, choice] of choices) {
      at -= weight;
      if (at < 0) return choice;
    }
    throw new Error('no choice was made');
  }
}

/** The super user of every server that receives these streams. */
export const superPassword = 'super:secret';
export const superDigest = digestId(superPassword);

export interface Profile {
  /**
   * Omit requests that make Apache ZooKeeper 3.9.5 stop, or answer after a NullPointerException.
   */
  readonly javaSafe: boolean;
  /** Number of connections. */
  readonly slots: number;
}

/** What the driver has learned from the server so far. */
export interface Hints {
  /** Paths created with a sequence number, or otherwise useful; none below /zookeeper. */
  readonly paths: string[];
  zxid: number;
  /** While the tree is large: leaves, so that deletes become likely. */
  leaves: readonly string[];
}

export type Action =
  | { readonly kind: 'request'; readonly slot: number; readonly operation: Operation }
  /** The connection is closed; the session stays, and the slot's next action resumes it. */
  | { readonly kind: 'disconnect'; readonly slot: number }
  /** A second connection resumes the slot's session while the first still has it. */
  | { readonly kind: 'takeOver'; readonly slot: number; readonly rightPassword: boolean };

const names = ['a', 'b', 'c'] as const;
const quotaData = [
  'count=3,bytes=-1',
  'count=-1,bytes=40',
  'count=-1,bytes=-1=;byteHardLimit=60;countHardLimit=4',
  'count=2,bytes=10=;byteHardLimit=200;countHardLimit=-1',
  '',
];
/** Java's parser fails on a key without a value, and so does every write below that quota. */
const quotaDataWithHoles = [...quotaData, 'count=,bytes=7=;countHardLimit=2'];
const oddPaths = [
  'x',
  '//a',
  '/a/',
  '/a//b',
  '/a/../b',
  '/a/./b',
  '/..',
  '/a\0b',
  '/a/b\u0001',
  '/\u007f',
  '/a/\ufffd',
  '/a/\ue000',
  '/.a',
  '/...',
  '/\u00e9\u4e2d',
  '/a/ b',
  '/a%:,=',
];
const systemPaths = ['/', '', '/zookeeper', '/zookeeper/quota', '/zookeeper/config', '/zookeeper/quota/a', '/zookeeper/own'];

export function randomPath(random: Prng, hints: Hints): string {
  return random.weighted<() => string>([
    [
      60,
      () =>
        Array.from({ length: 1 + random.below(random.chance(20) ? 5 : 3) })
          .map(() => `/${random.pick(names)}`)
          .join(''),
    ],
    [12, () => (hints.paths.length > 0 ? random.pick(hints.paths) : '/a')],
    [5, () => random.pick(systemPaths)],
    [5, () => random.pick(oddPaths)],
    [2, () => '/d'.repeat(1 + random.below(40))],
  ])();
}

function randomData(random: Prng): Data {
  return random.weighted<() => Data>([
    [5, () => null],
    [10, () => ''],
    [60, () => 'v'.repeat(1 + random.below(30))],
    [10, () => String.fromCharCode(0, 255, 128, random.below(256))],
    [2, () => 'x'.repeat(random.below(5000))],
  ])();
}

const open: AclEntry = { perms: 31, scheme: 'world', id: 'anyone' };
const goodAcls: readonly (readonly AclEntry[])[] = [
  [{ perms: 1, scheme: 'world', id: 'anyone' }],
  [{ perms: 15, scheme: 'world', id: 'anyone' }],
  [{ perms: 0, scheme: 'world', id: 'anyone' }],
  [{ perms: 255, scheme: 'world', id: 'anyone' }],
  [{ perms: 31, scheme: 'auth', id: '' }],
  [
    { perms: 5, scheme: 'auth', id: 'whoever' },
    { perms: 16, scheme: 'world', id: 'anyone' },
  ],
  [{ perms: 31, scheme: 'digest', id: digestId('alice:secret') }],
  [
    { perms: 31, scheme: 'digest', id: digestId('bob:pw') },
    { perms: 1, scheme: 'world', id: 'anyone' },
  ],
  [{ perms: 31, scheme: 'ip', id: '127.0.0.1' }],
  [{ perms: 31, scheme: 'ip', id: '127.0.0.0/8' }],
  [
    { perms: 31, scheme: 'ip', id: '10.0.0.0/8' },
    { perms: 1, scheme: 'ip', id: '0.0.0.0/0' },
  ],
  [{ perms: 31, scheme: 'ip', id: '127.0.0.2/30' }],
  [
    { perms: 31, scheme: 'ip', id: '::1' },
    { perms: 17, scheme: 'ip', id: 'fe80::/10' },
  ],
  [open, open, { perms: 1, scheme: 'digest', id: 'a:b:' }, open],
];
const badAcls: readonly (readonly AclEntry[])[] = [
  [],
  [{ perms: 31, scheme: 'world', id: 'bob' }],
  [{ perms: 31, scheme: 'ip', id: '300.1.1.1' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3' }],
  [{ perms: 31, scheme: 'ip', id: '1.2.3.4/33' }],
  [{ perms: 31, scheme: 'ip', id: '1::2::3' }],
  [{ perms: 31, scheme: 'ip', id: '::1/129' }],
  [{ perms: 31, scheme: 'digest', id: 'nobody' }],
  [{ perms: 31, scheme: 'digest', id: 'a:b:c' }],
  [{ perms: 31, scheme: 'super', id: '' }],
  [open, { perms: 31, scheme: 'nosuch', id: 'x' }],
];
const nullAcls: readonly (readonly AclEntry[])[] = [
  [{ perms: 31, scheme: null, id: 'anyone' }],
  [{ perms: 31, scheme: 'world', id: null }],
  [open, { perms: 31, scheme: null, id: null }],
];

function randomAcl(random: Prng, profile: Profile): readonly AclEntry[] | null {
  return random.weighted<() => readonly AclEntry[] | null>([
    [75, () => [open]],
    [18, () => random.pick(goodAcls)],
    [4, () => random.pick(badAcls)],
    [1, () => null],
    [profile.javaSafe ? 0 : 1, () => random.pick(nullAcls)],
  ])();
}

function randomVersion(random: Prng): number {
  return random.weighted([
    [45, -1],
    [30, 0],
    [15, 1],
    [8, 2],
    [1, -2],
    [1, 0x7fffffff],
  ]);
}

function maybeNull(random: Prng, path: string): string | null {
  return random.below(300) === 0 ? null : path;
}

function randomCreate(random: Prng, profile: Profile, hints: Hints): WriteStep {
  const path = maybeNull(random, random.chance(8) ? `${randomPath(random, hints)}/` : randomPath(random, hints));
  const fields = { path, data: randomData(random), acl: randomAcl(random, profile) };
  const flags = random.weighted([
    [40, 0],
    [22, 1],
    [14, 2],
    [8, 3],
    [4, 4],
    [2, 5],
    [1, 6],
    [1, random.pick([7, -1, 100])],
  ]);
  return random.weighted<() => WriteStep>([
    [45, () => ({ kind: 'create', ...fields, flags })],
    [35, () => ({ kind: 'create2', ...fields, flags })],
    [8, () => ({ kind: 'createContainer', ...fields, flags: random.pick([4, 4, 4, 0, 1, 2, 3, flags]) })],
    [
      10,
      () => {
        const mode = random.pick([5, 5, 6, flags]);
        const ttls = [1, 1000, 3_600_000, 2 ** 40 - 1, 2 ** 40, 0, -1, -5];
        const ttl = random.pick(ttls);
        // A negative ttl on a mode without one passes Java's checks and then ends the process.
        const deadly = profile.javaSafe && mode !== 5 && mode !== 6 && ttl < 0;
        return { kind: 'createTTL', ...fields, flags: mode, ttl: deadly ? 1 : ttl };
      },
    ],
  ])();
}

function randomWriteStep(random: Prng, profile: Profile, hints: Hints): WriteStep {
  const path = (): string | null => maybeNull(random, randomPath(random, hints));
  return random.weighted<() => WriteStep>([
    [40, () => randomCreate(random, profile, hints)],
    [30, () => ({ kind: 'delete', path: path(), version: randomVersion(random) })],
    [25, () => ({ kind: 'setData', path: path(), data: randomData(random), version: randomVersion(random) })],
    [15, () => ({ kind: 'check', path: path(), version: randomVersion(random) })],
  ])();
}

/** A write of ClickHouse Keeper, or a check of its own: any of them may be a step of a multi. */
function randomKeeperStep(random: Prng, profile: Profile, hints: Hints): KeeperStep {
  const path = maybeNull(random, randomPath(random, hints));
  const version = randomVersion(random);
  return random.weighted<() => KeeperStep>([
    [
      30,
      () => {
        const flags = random.pick([0, 0, 0, 1, 1, 2, 4, 7]);
        return { kind: 'createIfNotExists', path, data: randomData(random), acl: randomAcl(random, profile), flags };
      },
    ],
    [12, () => ({ kind: 'tryRemove', path, version })],
    [12, () => ({ kind: 'checkNotExists', path, version })],
    [12, () => ({ kind: 'removeRecursive', path, limit: random.pick([0, 1, 2, 3, 5, 1000, 0xffffffff]) })],
    [12, () => ({ kind: 'checkStat', path, version: random.pick([-1, -1, version]), stat: randomStat(random, hints) })],
  ])();
}

/** Most fields are -1, which means any value. */
function randomStat(random: Prng, hints: Hints): Stat {
  const number = (): number =>
    random.weighted([
      [10, -1],
      [1, 0],
      [1, 1],
      [1, 2],
    ]);
  const zxid = (): number => (random.chance(90) ? -1 : random.below(hints.zxid + 1));
  return {
    czxid: zxid(),
    mzxid: zxid(),
    ctime: -1,
    mtime: -1,
    version: number(),
    cversion: number(),
    aversion: number(),
    ephemeralOwner: random.pick([-1n, -1n, -1n, 0n]),
    dataLength: number(),
    numChildren: number(),
    pzxid: zxid(),
  };
}

function randomReadStep(random: Prng, hints: Hints): ReadStep {
  return {
    kind: random.pick(['getData', 'getChildren'] as const),
    path: maybeNull(random, randomPath(random, hints)),
    watch: random.chance(50),
  };
}

function randomMulti(random: Prng, profile: Profile, hints: Hints): Operation {
  const steps: (WriteStep | ReadStep)[] = [];
  const withKeeper = !profile.javaSafe && random.chance(30);
  const count = random.weighted([
    [3, 0],
    [20, 1],
    [30, 2],
    [30, 3],
    [15, 6],
  ]);
  for (let i = 0; i < count; i++) {
    const step =
      random.below(100) === 0
        ? randomReadStep(random, hints)
        : withKeeper && random.chance(50)
          ? randomKeeperStep(random, profile, hints)
          : randomWriteStep(random, profile, hints);
    // Java takes a null ACL inside a multi for a malformed record, and a step without a path for a
    // fatal error.
    const harmless = !profile.javaSafe || (step.path !== null && !('acl' in step && step.acl === null));
    if (harmless) steps.push(step);
  }
  return { kind: 'multi', steps };
}

/** Creates the znodes of quotas, with valid data: other data ends a Java server. */
function randomQuota(random: Prng, profile: Profile): Operation {
  const limitsData = profile.javaSafe ? quotaData : quotaDataWithHoles;
  const base = `/zookeeper/quota${random.pick(['/a', '/b', '/a/b', '/c', '/d'])}`;
  const limits = `${base}/zookeeper_limits`;
  const stats = `${base}/zookeeper_stats`;
  const acl = [open];
  return random.weighted<() => Operation>([
    [3, () => ({ kind: 'create', path: base, data: '', acl, flags: 0 })],
    [3, () => ({ kind: 'create', path: limits, data: random.pick(limitsData), acl, flags: 0 })],
    [3, () => ({ kind: 'create2', path: stats, data: 'count=0,bytes=0', acl, flags: 0 })],
    [2, () => ({ kind: 'setData', path: limits, data: random.pick(limitsData), version: -1 })],
    [1, () => ({ kind: 'setData', path: stats, data: 'count=1,bytes=1', version: randomVersion(random) })],
    [2, () => ({ kind: 'getData', path: stats, watch: random.chance(20) })],
    [2, () => ({ kind: 'delete', path: limits, version: -1 })],
    [1, () => ({ kind: 'delete', path: stats, version: -1 })],
    [1, () => ({ kind: 'delete', path: base, version: -1 })],
  ])();
}

function randomPaths(random: Prng, hints: Hints): string[] {
  return Array.from({ length: random.below(4) }, () => randomPath(random, hints));
}

function randomWatchOperation(random: Prng, hints: Hints): Operation {
  // Near the root, where other operations set watches.
  const path = (): string => (random.chance(70) ? random.pick(['/', '/a', '/b', '/a/a', '/a/b']) : randomPath(random, hints));
  const lists = {
    dataWatches: randomPaths(random, hints),
    existWatches: randomPaths(random, hints),
    childWatches: randomPaths(random, hints),
  };
  const relativeZxid = random.pick([0, 1, 2 ** 50, hints.zxid, Math.max(0, hints.zxid - 20)]);
  return random.weighted<() => Operation>([
    [10, () => ({ kind: 'addWatch', path: path(), mode: 0 })],
    [8, () => ({ kind: 'addWatch', path: path(), mode: 1 })],
    [1, () => ({ kind: 'addWatch', path: path(), mode: random.pick([2, -1]) })],
    [6, () => ({ kind: 'checkWatches', path: path(), type: random.pick([1, 2, 3, 4, 5, 0, 6]) })],
    [14, () => ({ kind: 'removeWatches', path: path(), type: random.pick([1, 2, 3, 3, 4, 5, 0, 6]) })],
    [3, () => ({ kind: 'setWatches', relativeZxid, ...lists })],
    [
      3,
      () => ({
        kind: 'setWatches2',
        relativeZxid,
        ...lists,
        persistentWatches: randomPaths(random, hints),
        persistentRecursiveWatches: random.chance(30) ? randomPaths(random, hints) : [],
      }),
    ],
  ])();
}

function randomRead(random: Prng, hints: Hints): Operation {
  const path = (): string | null => maybeNull(random, randomPath(random, hints));
  const watch = random.chance(40);
  return random.weighted<() => Operation>([
    [10, () => ({ kind: 'exists', path: path(), watch })],
    [10, () => ({ kind: 'getData', path: path(), watch })],
    [6, () => ({ kind: 'getChildren', path: path(), watch })],
    [6, () => ({ kind: 'getChildren2', path: path(), watch })],
    [20, () => randomPage(random, hints, random.chance(70) ? random.pick(['/', '/a', '/b', '/a/b']) : path(), watch)],
    [4, () => ({ kind: 'filteredList', path: random.pick(['/', '/a', '/b', path()]), watch, filter: random.pick([0, 1, 1, 2, 2, 3, -1]) })],
    [
      4,
      () => ({
        kind: 'filteredListWithStatsAndData',
        path: random.pick(['/', '/a', '/b', path()]),
        watch,
        filter: random.pick([0, 0, 1, 2, 3, -1]),
        withStat: random.chance(50),
        withData: random.chance(50),
      }),
    ],
    [3, () => ({ kind: 'listRecursive', path: random.pick(['/', '/a', path()]), limit: random.pick([0, 1_000_000, 0xffffffff]) })],
    [2, () => ({ kind: 'getData', path: random.pick([featuresPath, '/keeper/api_version', '/keeper/feature_flags', '/keeper']), watch })],
    [4, () => ({ kind: 'getACL', path: path() })],
    [3, () => ({ kind: 'getAllChildrenNumber', path: path() })],
    [3, () => ({ kind: 'getEphemerals', prefixPath: random.pick([null, '', ' ', '/', '/a', '/b/c', 'x']) })],
    [2, () => ({ kind: 'sync', path: randomPath(random, hints) })],
    [1, () => ({ kind: 'whoAmI' })],
    [1, () => ({ kind: 'ping' })],
    [4, () => ({ kind: 'multiRead', steps: Array.from({ length: random.below(4) }, () => randomReadStep(random, hints)) })],
  ])();
}

/** Positions before, at and after children, with names that exist, once existed, or never did. */
function randomPage(random: Prng, hints: Hints, path: string | null, watch: boolean): Operation {
  const name = random
    .pick([...hints.paths, '/zookeeper'])
    .split('/')
    .at(-1)!;
  return {
    kind: random.pick(['getChildrenPage', 'getChildrenDataPage']),
    path,
    watch,
    afterZxid: random.pick([-1, -1, 0, random.below(hints.zxid + 1), random.below(hints.zxid + 1)]),
    afterName: random.pick([null, '', name, name, 'b', 'a/b', '\uFFFF']),
    untilZxid: random.pick([-1, -1, random.below(hints.zxid + 1)]),
    countMax: random.pick([0, -1, 1, 2, 3, 1000]),
    bytesMax: random.pick([0, -1, 1, 10, 100, 300, 1 << 30]),
  };
}

/** Several children of one parent in one txn, in no order. */
function randomSiblings(random: Prng): Operation {
  const parent = random.pick(['', '/a', '/b', '/a/b']);
  const create = (): WriteStep => ({
    kind: 'create',
    path: `${parent}/${random.pick(['m', 'k', 'é', 'z'])}`,
    data: 'x'.repeat(random.below(40)),
    acl: [open],
    flags: 2,
  });
  return { kind: 'multi', steps: Array.from({ length: 2 + random.below(5) }, create) };
}

function randomAuth(random: Prng): Operation {
  return random.weighted<() => Operation>([
    [8, () => ({ kind: 'auth', scheme: 'digest', auth: random.pick(['alice:secret', 'bob:pw', 'carol', ':x', '']) })],
    [3, () => ({ kind: 'auth', scheme: 'digest', auth: superPassword })],
    [2, () => ({ kind: 'auth', scheme: 'ip', auth: 'anything' })],
    [1, () => ({ kind: 'auth', scheme: random.pick(['nosuch', 'world', 'super']), auth: '' })],
    [1, () => ({ kind: 'auth', scheme: 'digest', auth: null })],
  ])();
}

const frameHeadBytes = 12;

/** A request whose record lacks its last bytes. */
export function cutShort(operation: Operation, random: Prng): Operation {
  const frame = encodeRequest(0, operation);
  const record = frame.subarray(frameHeadBytes);
  return { kind: 'undecodable', opCode: frame.readInt32BE(8), bytes: record.toString('latin1', 0, random.below(record.length)) };
}

export function randomOperation(random: Prng, profile: Profile, hints: Hints): Operation {
  if (hints.leaves.length > 0 && random.chance(40)) return { kind: 'delete', path: random.pick(hints.leaves), version: -1 };
  return random.weighted<() => Operation>([
    [400, () => withoutBareCheck(randomWriteStep(random, profile, hints))],
    [
      60,
      () => ({
        kind: 'setACL',
        path: maybeNull(random, randomPath(random, hints)),
        acl: randomAcl(random, profile),
        version: randomVersion(random),
      }),
    ],
    [90, () => randomMulti(random, profile, hints)],
    [profile.javaSafe ? 0 : 50, () => randomKeeperStep(random, profile, hints)],
    [10, () => randomSiblings(random)],
    [250, () => randomRead(random, hints)],
    [90, () => randomWatchOperation(random, hints)],
    [60, () => randomQuota(random, profile)],
    [30, () => randomAuth(random)],
    [6, () => ({ kind: 'reconfig', joiningServers: null, leavingServers: '3', newMembers: null, curConfigId: -1 })],
    [4, () => ({ kind: 'sasl', token: 'x' })],
    [4, () => ({ kind: 'unknown', opCode: random.pick([0, 10, 23, 99, 108, 499, 508, 999, -3, -100]) })],
    [4, () => ({ kind: 'check', path: '/a', version: -1 })],
    [6, () => ({ kind: 'deleteContainer', path: randomPath(random, hints) })],
    [4, () => ({ kind: 'multiRead', steps: [randomWriteStep(random, { ...profile, javaSafe: true }, hints)] })],
    [12, () => cutShort(randomDecodable(random, profile, hints), random)],
    [6, () => ({ kind: 'closeSession' })],
  ])();
}

/** `check` belongs in multis; outside it is answered Unimplemented, so it occurs only rarely. */
function withoutBareCheck(step: WriteStep): WriteStep {
  return step.kind === 'check' ? { kind: 'delete', path: step.path, version: step.version } : step;
}

function randomDecodable(random: Prng, profile: Profile, hints: Hints): Operation {
  const operation = random.chance(60) ? withoutBareCheck(randomWriteStep(random, profile, hints)) : randomRead(random, hints);
  return operation.kind === 'ping' || operation.kind === 'whoAmI' ? { kind: 'undecodable', opCode: OpCode.getData, bytes: '' } : operation;
}

export function randomAction(random: Prng, profile: Profile, hints: Hints): Action {
  const slot = random.below(profile.slots);
  return random.weighted<() => Action>([
    [300, () => ({ kind: 'request', slot, operation: randomOperation(random, profile, hints) })],
    [1, () => ({ kind: 'disconnect', slot })],
    [1, () => ({ kind: 'takeOver', slot, rightPassword: random.chance(70) })],
  ])();
}

/** One action from one number: a stream of numbers shrinks by dropping some. */
export function actionFrom(seed: number, profile: Profile, hints: Hints): Action {
  return randomAction(new Prng(seed), profile, hints);
}

export function seedStreams(maxLength: number): Arbitrary<number[]> {
  return array(nat(), { maxLength, size: 'max' });
}
