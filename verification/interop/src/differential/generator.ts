/**
 * Generates the random stream: a few clients with their own sessions, a small common tree, every
 * opcode with valid and invalid arguments, watches everywhere.
 *
 * A correct server has only one way to answer the stream. Writers take turns, one client's requests
 * may be pipelined, and only reads run on several connections at once. Requests that the protocol
 * answers early (auth, sasl), and requests that may end the connection, are sent alone. A small
 * pool of paths makes most requests hit an existing znode.
 *
 * Never sent: a createTTL with a negative ttl and no ttl flag. A 3.9.5 server logs it, ends, and
 * ends again at every restart.
 */
import { OpCode, Xid } from '@tskeeper/protocol';

import type { Random } from '../random.ts';
import { type AclEntry, creatorAcl, type Fields, handshakeBody, openAcl, opName, readAcl, record, type WirePath } from '@tskeeper/harness';
import type { Op, Quirk, SessionChoice, Step } from './step.ts';

export const clientCount = 6;
/** The client with the super user's identity, so that no znode stays locked forever. */
const superClient = 0;
/**
 * Longer than any run: a session that expired by the clock would end at a different point in each
 * server.
 */
const longTimeOut = 600_000;

const digestUsers = ['ann:secret', 'bob:hidden'];

const names = ['a', 'b', 'c', 'd'];
const oddPaths: readonly WirePath[] = [
  '',
  '/',
  'a',
  'no/slash',
  '/a/',
  '//a',
  '/a//b',
  '/.',
  '/..',
  '/a/./b',
  '/a/../b',
  '/.a',
  '/...',
  '/a\u0000b',
  '/\u0001',
  '/a\u001f',
  '/\u007f',
  '/\u009f',
  '/\u00a0',
  '/\ue000',
  '/\uf8ff',
  '/\ufff0',
  '/ünï/ç',
  '/\u{1f600}',
  '/zookeeper',
  '/zookeeper/quota',
  '/zookeeper/config',
  '/zookeeper/a',
  '/zookeeper/quota/zzz',
  Buffer.from([0x2f, 0xff]),
  Buffer.from([0x2f, 0x61, 0xc3]),
];

/**
 * base64(sha1("ann:secret")) and the like need not be right for a server to store them; only the
 * form is checked.
 */
const someDigest: readonly AclEntry[] = [{ perms: 31, scheme: 'digest', id: 'carol:sZJgBXmrUGpVRN3eGDQI7Bi+eMI=' }];
const acls: readonly (readonly [number, readonly AclEntry[] | null])[] = [
  [60, openAcl],
  [4, creatorAcl],
  [3, readAcl],
  [2, someDigest],
  [2, [...readAcl, ...creatorAcl]],
  [2, [{ perms: 31, scheme: 'ip', id: '127.0.0.1' }]],
  [1, [{ perms: 31, scheme: 'ip', id: '127.0.0.0/8' }]],
  [1, [{ perms: 31, scheme: 'ip', id: '10.0.0.0/33' }]],
  [1, [{ perms: 31, scheme: 'ip', id: 'nowhere' }]],
  [1, [{ perms: 31, scheme: 'ip', id: '192.168.1.1' }, ...readAcl]],
  [1, [{ perms: 0, scheme: 'world', id: 'anyone' }]],
  [1, [{ perms: 255, scheme: 'world', id: 'anyone' }]],
  [1, [{ perms: 5, scheme: 'world', id: 'anyone' }]],
  [1, [...openAcl, ...openAcl, ...readAcl]],
  [1, [{ perms: 31, scheme: 'world', id: 'someone' }]],
  [1, [{ perms: 31, scheme: 'digest', id: 'nocolon' }]],
  [1, [{ perms: 31, scheme: 'nosuch', id: 'x' }]],
  [1, [{ perms: 31, scheme: 'super', id: '' }]],
  [1, [{ perms: 31, scheme: null, id: 'x' }]],
  [1, []],
  [1, null],
];

export interface GeneratorOptions {
  /**
   * Only requests for which a Java server computes its own tree digest correctly: a create whose
   * flags and opcode disagree on containers makes it log one digest and reach another.
   */
  readonly exactDigests?: boolean;
  /** No create2 inside a multi: 3.9 logs it as such, and 3.8.0 cannot read that from the log. */
  readonly readableBy38?: boolean;
  /**
   * For servers of an ensemble: no requests that ZooKeeper cannot decode, does not know, or fails
   * without a result. One server answers them all; a leader proposes them with a zxid that it has
   * already used, and commits nothing from then on.
   */
  readonly ensembleSafe?: boolean;
  /**
   * For servers led by ZooKeeper: no setACL. A leader validates by the ACLs it has applied, and the
   * follower that forwarded the setACL may have applied and answered it before.
   */
  readonly withoutSetAcl?: boolean;
}

interface Choices {
  /** Inside a multi: nothing that has no meaning there. */
  readonly inMulti: boolean;
}

export class Generator {
  readonly #random: Random;
  readonly #options: GeneratorOptions;
  /** Paths chosen by the servers, that is of sequential znodes, newest last. */
  readonly #sequentialPaths: string[] = [];
  /** The latest zxid in a reply of the first server; zxids in expectations are relative to it. */
  #lastZxid = 0;
  /** Opcodes requested so far, by name. */
  readonly counts = new Map<string, number>();

  constructor(random: Random, options: GeneratorOptions = {}) {
    this.#random = random;
    this.#options = options;
  }

  /** Records the path that a create has returned. */
  sequentialCreated(path: string): void {
    this.#sequentialPaths.push(path);
    if (this.#sequentialPaths.length > 64) this.#sequentialPaths.shift();
  }

  zxidSeen(zxid: number): void {
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
  }

  /**
   * The first steps: every client gets a session, some get identities, and the tree gets its first
   * level.
   */
  initialSteps(): Step[] {
    const steps: Step[] = [];
    for (let client = 0; client < clientCount; client++) steps.push(this.#newSession(client), ...this.identities(client));
    const floor = names.map((name) => this.#op(OpCode.create, `create /${name}`, record.create(`/${name}`, null, openAcl, 0)));
    steps.push({ kind: 'sequential', client: superClient, ops: floor });
    return steps;
  }

  /** The identities that a client adds whenever it has connected. */
  identities(client: number): Step[] {
    const ops: Op[] = [];
    if (client === superClient) ops.push(this.#auth('digest', Buffer.from('super:secret')));
    if (client === 1 || client === 3) ops.push(this.#auth('digest', Buffer.from(digestUsers[0]!)));
    if (client === 2 || client === 3) ops.push(this.#auth('digest', Buffer.from(digestUsers[1]!)));
    return ops.length === 0 ? [] : [{ kind: 'sequential', client, ops }];
  }

  /** The usual reconnect of a client whose connection has ended. */
  reattach(client: number): Step[] {
    return [{ ...this.#newSession(client), session: 'same', lastZxidSeen: 'seen' }, ...this.identities(client)];
  }

  newSession(client: number): Step[] {
    return [this.#newSession(client), ...this.identities(client)];
  }

  /** A round of about `size` requests, ending with at most one step that may close a connection. */
  round(size: number): Step[] {
    const random = this.#random;
    const steps: Step[] = [];
    for (let left = size; left > 0;) {
      const client = random.below(clientCount);
      const kind = random.weighted([
        [5, 'sequential'],
        [4, 'pipelined'],
        [1, 'concurrent'],
        [0.6, 'quota'],
        [0.1, 'large'],
      ] as const);
      if (kind === 'sequential') {
        const ops = this.#many(1 + random.below(8), () => this.#request({ pipelined: false }));
        steps.push({ kind, client, ops });
        left -= ops.length;
      } else if (kind === 'pipelined') {
        const ops = this.#many(2 + random.below(random.chance(0.05) ? 200 : 30), () => this.#request({ pipelined: true }));
        if (random.chance(0.3) && this.#options.withoutSetAcl !== true) ops.push(this.#setACL());
        steps.push({ kind, client, ops });
        left -= ops.length;
      } else if (kind === 'concurrent') {
        const parts = Array.from({ length: clientCount }, (_, reader) => ({
          client: reader,
          ops: this.#many(1 + random.below(5), () => this.#read()),
        }));
        steps.push({ kind, parts });
        left -= parts.reduce((sum, part) => sum + part.ops.length, 0);
      } else if (kind === 'quota') {
        const ops = this.#quota();
        steps.push({ kind: 'sequential', client, ops });
        left -= ops.length;
      } else {
        steps.push(this.#large(client));
        left -= 1;
      }
    }
    steps.push(...this.#roundEnd());
    return steps;
  }

  /** One event of a connection or a session, or one odd request, at the end of a round. */
  #roundEnd(): Step[] {
    const random = this.#random;
    const client = random.below(clientCount);
    const odd = this.#options.ensembleSafe === true ? 0 : 1;
    const kind = random.weighted([
      [20, 'nothing'],
      [6, 'close'],
      [8, 'cut'],
      [4, 'move'],
      [3, 'refused'],
      [4, 'probe'],
      [4 * odd, 'undecodable'],
      [2 * odd, 'null-path'],
      [2 * odd, 'null-acl-id'],
      [2 * odd, 'unknown-opcode'],
      [1 * odd, 'check-alone'],
      [1 * odd, 'delete-container'],
      [2 * odd, 'multi-type'],
      [2, 'bad-auth'],
      [2, 'sasl'],
      [3, 'auth'],
      [2, 'frame'],
    ] as const);
    switch (kind) {
      case 'nothing':
        return [];
      case 'close':
        return [{ kind, client }, ...this.newSession(client)];
      case 'cut': {
        const back = this.reattach(client);
        return [{ kind, client }, ...back, { kind: 'sequential', client, ops: [this.#setWatches()] }];
      }
      case 'move':
        return this.reattach(client);
      case 'refused':
        return [{ ...this.#newSession(client), session: random.pick<SessionChoice>(['wrong-passwd', 'short-passwd', 'unknown']) }];
      case 'probe':
        return [this.#probe()];
      case 'frame':
        return [this.#frame(client)];
      case 'auth':
        return [{ kind: 'sequential', client, ops: [this.#auth('ip', Buffer.from('x')), this.#auth('digest', Buffer.from('dora:x'))] }];
      case 'sasl':
        return [{ kind: 'last', client, op: this.#op(OpCode.sasl, 'sasl token=2B', record.pathOnly(Buffer.from('hi'))) }];
      case 'bad-auth':
        return [{ kind: 'last', client, op: this.#auth(random.pick(['nosuch', 'world', 'sasl', '']), Buffer.from('a:b')) }];
      case 'undecodable':
      case 'null-path':
      case 'null-acl-id':
      case 'unknown-opcode':
      case 'check-alone':
      case 'delete-container':
      case 'multi-type':
        return [{ kind: 'last', client, op: this.#quirk(kind) }];
      default:
        return kind satisfies never;
    }
  }

  #newSession(client: number): Step & { kind: 'handshake' } {
    const readOnly = this.#random.weighted([
      [6, false],
      [1, true],
      [1, undefined],
    ] as const);
    return { kind: 'handshake', client, session: 'new', timeOut: longTimeOut, readOnly, protocolVersion: 0, lastZxidSeen: 'zero' };
  }

  #probe(): Step {
    const random = this.#random;
    const timeOut = random.pick([0, 1, -1, 3999, 4000, 4001, 40_000, 2147483647, -2147483648]);
    const readOnly = random.pick([true, false, undefined]);
    const protocolVersion = random.pick([0, 1, -1]);
    const passwd = random.pick([undefined, null, Buffer.alloc(0), Buffer.alloc(5, 1), Buffer.alloc(40, 2)]);
    const future = random.chance(0.15);
    const cut = random.chance(0.15) ? 1 + random.below(40) : 0;
    const behind = random.chance(0.1) ? Buffer.from('tail') : Buffer.alloc(0);
    return {
      kind: 'probe',
      text: `handshake timeOut=${timeOut} readOnly=${readOnly} version=${protocolVersion} passwd=${passwd?.length ?? 'none'} ${future ? 'future zxid ' : ''}cut=${cut} behind=${behind.length}`,
      body: (view) => {
        const lastZxidSeen = future ? view.zxid(this.#lastZxid) + 1_000_000 : 0;
        const body = handshakeBody({ timeOut, readOnly, protocolVersion, lastZxidSeen, ...(passwd === undefined ? {} : { passwd }) });
        return cut > 0 ? body.subarray(0, Math.max(0, body.length - cut)) : Buffer.concat([body, behind]);
      },
    };
  }

  #frame(client: number): Step {
    const { text, length, bytes } = this.#random.pick([
      { text: 'an empty frame', length: 0, bytes: Buffer.alloc(0) },
      { text: 'a frame of 3 bytes', length: 3, bytes: Buffer.from('abc') },
      { text: 'a frame of 7 bytes', length: 7, bytes: Buffer.alloc(7) },
      { text: 'a negative length', length: -1, bytes: Buffer.alloc(0) },
      { text: 'a length of jute.maxbuffer + 1', length: 1_048_576, bytes: Buffer.alloc(16) },
      { text: 'the largest length', length: 2147483647, bytes: Buffer.alloc(16) },
    ]);
    return { kind: 'frame', client, text, length, bytes };
  }

  #many(count: number, make: () => Op): Op[] {
    return Array.from({ length: count }, make);
  }

  #op(type: number, text: string, fields: Fields, more: { xid?: number; cutBytes?: number; quirk?: Quirk } = {}): Op {
    const name = opName(type);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    return { type, text, fields: () => fields, ...more };
  }

  #auth(scheme: string, auth: Buffer): Op {
    return this.#op(OpCode.auth, `auth ${scheme}:${auth.toString()}`, record.auth(scheme, auth), { xid: Xid.auth });
  }

  #poolPath(): string {
    const random = this.#random;
    if (this.#sequentialPaths.length > 0 && random.chance(0.12)) return random.pick(this.#sequentialPaths);
    const depth = random.weighted([
      [2, 1],
      [5, 2],
      [3, 3],
      [1, 4],
    ] as const);
    return Array.from({ length: depth }, () => `/${random.pick(names)}`).join('');
  }

  #path(): WirePath {
    return this.#random.chance(0.02) ? this.#random.pick(oddPaths) : this.#poolPath();
  }

  #data(): Buffer | null {
    const random = this.#random;
    if (random.chance(0.1)) return null;
    const length = random.chance(0.02) ? random.below(5000) : random.below(24);
    return Buffer.alloc(length, 97 + random.below(26));
  }

  /**
   * In a multi the list itself is never null, which makes the whole request undecodable to
   * ZooKeeper; see #quirk.
   */
  #acl(inMulti = false): readonly AclEntry[] | null {
    const acl = this.#random.weighted(acls);
    return acl === null && inMulti ? [] : acl;
  }

  #version(): number {
    return this.#random.weighted([
      [12, -1],
      [4, 0],
      [2, 1],
      [1, 2],
      [1, 3],
      [0.3, -2],
      [0.3, 2147483647],
      [0.3, -2147483648],
    ] as const);
  }

  #create({ inMulti }: Choices): Op {
    const random = this.#random;
    const { exactDigests = false, readableBy38 = false } = this.#options;
    const type = random.weighted([
      [14, OpCode.create],
      [inMulti && readableBy38 ? 0 : 8, OpCode.create2],
      [3, OpCode.createContainer],
      [4, OpCode.createTTL],
    ] as const);
    const data = this.#data();
    const acl = this.#acl(inMulti);
    const odd = random.chance(0.05);
    if (type === OpCode.createTTL) {
      const flags = odd ? random.pick([-1, 0, 1, 2, 3, 4, 7, 99]) : random.pick([5, 5, 6]);
      const ttlFlag = flags === 5 || flags === 6;
      const someTtl = random.pick([1n, 1000n, 100_000n, (1n << 40n) - 1n, 1n << 40n, 0n]);
      const ttl = ttlFlag && odd ? -5n : someTtl;
      const path = this.#createPath(flags === 6);
      return this.#op(
        type,
        `${opName(type)} ${show(path)} flags=${flags} ttl=${ttl} ${showAcl(acl)}`,
        record.createTTL(path, data, acl, flags, ttl),
      );
    }
    const usual = type === OpCode.createContainer ? [4] : [0, 0, 0, 1, 1, 2, 2, 3];
    const oddFlags = exactDigests ? [-1, 5, 6, 7, 99] : [-1, 0, 2, 4, 5, 6, 7, 99];
    const flags = odd ? random.pick(inMulti ? [-1, 7, 99] : oddFlags) : random.pick(usual);
    const path = this.#createPath(flags === 2 || flags === 3);
    return this.#op(type, `${opName(type)} ${show(path)} flags=${flags} ${showAcl(acl)}`, record.create(path, data, acl, flags));
  }

  #createPath(sequential: boolean): WirePath {
    const path = this.#path();
    if (!sequential || typeof path !== 'string' || this.#random.chance(0.3)) return path;
    return `${path}${this.#random.pick(['/', '/s-', '-'])}`;
  }

  #delete(): Op {
    const path = this.#path();
    const version = this.#version();
    return this.#op(OpCode.delete, `delete ${show(path)} version=${version}`, record.pathAndInt(path, version));
  }

  #setData(): Op {
    const path = this.#path();
    const data = this.#data();
    const version = this.#version();
    return this.#op(
      OpCode.setData,
      `setData ${show(path)} ${data?.length ?? 'null'} version=${version}`,
      record.setData(path, data, version),
    );
  }

  #check(): Op {
    const path = this.#path();
    const version = this.#version();
    return this.#op(OpCode.check, `check ${show(path)} version=${version}`, record.pathAndInt(path, version));
  }

  #setACL(): Op {
    const path = this.#path();
    const acl = this.#acl();
    const version = this.#version();
    return this.#op(OpCode.setACL, `setACL ${show(path)} ${showAcl(acl)} version=${version}`, record.setACL(path, acl, version));
  }

  #multi(): Op {
    const random = this.#random;
    const parts = this.#many(random.chance(0.05) ? 0 : 1 + random.below(6), () =>
      random.weighted([
        [5, () => this.#create({ inMulti: true })],
        [3, () => this.#delete()],
        [4, () => this.#setData()],
        [3, () => this.#check()],
      ])(),
    );
    return this.#grouped(OpCode.multi, parts);
  }

  #multiRead(): Op {
    const random = this.#random;
    const parts = this.#many(random.below(6), () => {
      const type = random.pick([OpCode.getData, OpCode.getChildren]);
      const path = this.#path();
      return this.#op(type, `${opName(type)} ${show(path)}`, record.pathAndWatch(path, random.chance(0.2)));
    });
    return this.#grouped(OpCode.multiRead, parts);
  }

  #grouped(type: number, parts: readonly Op[], quirk?: Quirk): Op {
    const view = { zxid: (zxid: number) => zxid };
    const fields = record.multi(parts.map((part) => ({ type: part.type, fields: part.fields(view) })));
    return this.#op(type, `${opName(type)} [${parts.map((part) => part.text).join('; ')}]`, fields, quirk === undefined ? {} : { quirk });
  }

  #read(): Op {
    const random = this.#random;
    const type = random.weighted([
      [7, OpCode.exists],
      [8, OpCode.getData],
      [4, OpCode.getChildren],
      [4, OpCode.getChildren2],
      [3, OpCode.getACL],
      [1, OpCode.getEphemerals],
      [1, OpCode.getAllChildrenNumber],
      [1, OpCode.whoAmI],
      [1, OpCode.ping],
      [1, OpCode.checkWatches],
      [2, OpCode.removeWatches],
      [3, OpCode.addWatch],
      [3, OpCode.multiRead],
      [1, OpCode.setWatches],
    ] as const);
    const path = this.#path();
    const named = `${opName(type)} ${show(path)}`;
    switch (type) {
      case OpCode.exists:
      case OpCode.getData:
      case OpCode.getChildren:
      case OpCode.getChildren2: {
        const watch = random.chance(0.4);
        return this.#op(type, `${named} watch=${watch}`, record.pathAndWatch(path, watch));
      }
      case OpCode.getACL:
      case OpCode.getAllChildrenNumber:
        return this.#op(type, named, record.pathOnly(path));
      case OpCode.getEphemerals: {
        const prefix = random.pick<WirePath>([path, '/', '', null, '  ', '/a', '/z']);
        return this.#op(type, `${opName(type)} ${show(prefix)}`, record.pathOnly(prefix));
      }
      case OpCode.whoAmI:
        return this.#op(type, 'whoAmI', record.nothing());
      case OpCode.ping:
        return this.#op(type, 'ping', record.nothing(), { xid: Xid.ping });
      case OpCode.checkWatches:
      case OpCode.removeWatches: {
        const watcherType = random.pick([1, 2, 3, 3, 4, 5, 0, 6, -1]);
        return this.#op(type, `${named} type=${watcherType}`, record.pathAndInt(path, watcherType));
      }
      case OpCode.addWatch: {
        const mode = random.pick([0, 0, 1, 1, 1, 2, -1]);
        const at = mode === 1 && random.chance(0.1) ? '/' : path;
        return this.#op(type, `${opName(type)} ${show(at)} mode=${mode}`, record.pathAndInt(at, mode));
      }
      case OpCode.multiRead:
        return this.#multiRead();
      case OpCode.setWatches:
        return this.#setWatches();
      default:
        return type satisfies never;
    }
  }

  #setWatches(): Op {
    const random = this.#random;
    const type = random.pick([OpCode.setWatches, OpCode.setWatches2]);
    const list = (): WirePath[] => Array.from({ length: random.below(4) }, () => this.#path());
    const lists = Array.from({ length: type === OpCode.setWatches ? 3 : 5 }, list);
    const relative = random.chance(0.1) ? 0 : Math.max(0, this.#lastZxid - random.below(20));
    const text = `${opName(type)} relative=${relative} ${lists.map((paths) => `[${paths.map(show).join(' ')}]`).join(' ')}`;
    return {
      ...this.#op(type, text, record.nothing(), { xid: Xid.setWatches }),
      fields: (view) => record.setWatches(view.zxid(relative), lists),
    };
  }

  /**
   * A setACL is never followed by a pipelined write: until it is applied, ZooKeeper may validate
   * later writes by the old or the new ACL.
   */
  #request({ pipelined }: { pipelined: boolean }): Op {
    return this.#random.weighted([
      [28, () => this.#create({ inMulti: false })],
      [12, () => this.#delete()],
      [12, () => this.#setData()],
      [pipelined || this.#options.withoutSetAcl === true ? 0 : 6, () => this.#setACL()],
      [7, () => this.#multi()],
      [1, () => this.#sync()],
      [0.3, () => this.#reconfig()],
      [38, () => this.#read()],
    ])();
  }

  #sync(): Op {
    const path = this.#path();
    return this.#op(OpCode.sync, `sync ${show(path)}`, record.pathOnly(path));
  }

  #reconfig(): Op {
    const leaving = this.#random.pick([null, '', '1', 'x']);
    return this.#op(OpCode.reconfig, `reconfig leaving=${leaving}`, record.reconfig('', leaving, null, -1));
  }

  /**
   * Quotas below /q. Sent alone and in turn: a quota is checked against what is applied, so a
   * pipeline could be answered in more than one way.
   */
  #quota(): Op[] {
    const random = this.#random;
    const top = `/q${random.below(2)}`;
    const limits = random.pick([
      'count=3,bytes=-1',
      'count=-1,bytes=10',
      'count=2,bytes=20=;byteHardLimit=40;countHardLimit=5',
      'count=-1,bytes=-1=;byteHardLimit=30;countHardLimit=-1',
      'count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=4',
    ]);
    const quota = `/zookeeper/quota${top}`;
    const make = (path: string, data: string | null): Op =>
      this.#op(OpCode.create, `create ${path} ${data}`, record.create(path, data === null ? null : Buffer.from(data), openAcl, 0));
    const look = (path: string): Op => this.#op(OpCode.getData, `getData ${path}`, record.pathAndWatch(path, random.chance(0.2)));
    const drop = (path: string): Op => this.#op(OpCode.delete, `delete ${path}`, record.pathAndInt(path, -1));
    const child = `${top}/${random.pick(names)}`;
    const set = (path: string): Op => {
      const data = this.#data();
      return this.#op(OpCode.setData, `setData ${path} ${data?.length ?? 'null'}`, record.setData(path, data, -1));
    };
    return random.pick<() => Op[]>([
      () => [
        make(top, 'x'),
        make(quota, null),
        make(`${quota}/zookeeper_limits`, limits),
        make(`${quota}/zookeeper_stats`, 'count=0,bytes=0'),
      ],
      () => [make(child, 'data'), look(`${quota}/zookeeper_stats`)],
      () => [set(child), look(`${quota}/zookeeper_stats`)],
      () => [make(`${child}/x`, '12345'), set(top), look(`${quota}/zookeeper_stats`)],
      () => [drop(`${child}/x`), drop(child), look(`${quota}/zookeeper_stats`)],
      () => [this.#grouped(OpCode.multi, [make(child, 'm'), set(child)]), look(`${quota}/zookeeper_stats`)],
      () => [
        this.#op(OpCode.setData, `setData limits ${limits}`, record.setData(`${quota}/zookeeper_limits`, Buffer.from(limits), -1)),
        look(`${quota}/zookeeper_stats`),
      ],
      () => [drop(`${quota}/zookeeper_limits`), drop(`${quota}/zookeeper_stats`), drop(quota)],
    ])();
  }

  /** Data about as large as a frame may be. The frame is 28 bytes longer than path and data. */
  #large(client: number): Step {
    const random = this.#random;
    const path = this.#poolPath();
    const room = 1_048_575 - 20 - Buffer.byteLength(path);
    const length = random.pick([100_000, 500_000, room - 1, room, room + 1]);
    const op = this.#op(OpCode.setData, `setData ${path} ${length} bytes`, record.setData(path, Buffer.alloc(length, 120), -1));
    if (length > room) return { kind: 'last', client, op };
    const shrink = this.#op(OpCode.setData, `setData ${path} 1 byte`, record.setData(path, Buffer.from('x'), -1));
    return { kind: 'sequential', client, ops: [op, shrink] };
  }

  #quirk(kind: Quirk): Op {
    const random = this.#random;
    switch (kind) {
      case 'unknown-opcode': {
        const type = random.pick([0, 10, 23, 50, 99, 108, 500, -1, -12, 2147483647]);
        return this.#op(type, `opcode ${type}`, record.pathOnly('/a'), { quirk: kind });
      }
      case 'check-alone':
        return { ...this.#check(), quirk: kind };
      case 'delete-container': {
        // Only where a Java server has to reject it as well: if it deleted the node, the two trees
        // would diverge.
        const path = random.pick(['/nosuch', '/nosuch/x', '/', '/zookeeper', 'x']);
        return this.#op(OpCode.deleteContainer, `deleteContainer ${path}`, record.pathOnly(path), { quirk: kind });
      }
      case 'null-acl-id': {
        const acl = [{ perms: 31, scheme: 'world', id: null }];
        const path = this.#poolPath();
        if (random.chance(0.5))
          return this.#op(OpCode.setACL, `setACL ${path} ${showAcl(acl)}`, record.setACL(path, acl, -1), { quirk: kind });
        return this.#op(OpCode.create, `create ${path} ${showAcl(acl)}`, record.create(path, null, acl, 0), { quirk: kind });
      }
      case 'undecodable': {
        if (random.chance(0.1)) {
          const path = this.#poolPath();
          return this.#grouped(
            OpCode.multi,
            [this.#op(OpCode.create, `create ${path} acl=null`, record.create(path, null, null, 0))],
            kind,
          );
        }
        const op = random.weighted([
          [3, () => this.#create({ inMulti: false })],
          [1, () => this.#delete()],
          [1, () => this.#setData()],
          [1, () => this.#setACL()],
          [1, () => this.#multi()],
          [3, () => this.#read()],
        ])();
        if (random.chance(0.5)) return { ...op, text: `${op.text}, cut`, cutBytes: 1 + random.below(16), quirk: kind };
        // A text or vector that claims to be longer than the frame, or has an impossible length.
        const length = random.pick([2147483647, -2, 1_000_000, 3_000_000]);
        const lie = Buffer.alloc(8);
        lie.writeInt32BE(length, 0);
        return { ...op, text: `${opName(op.type)} with a length of ${length}`, fields: () => record.bytes(lie), quirk: kind };
      }
      case 'null-path': {
        const type = random.pick([
          OpCode.create,
          OpCode.delete,
          OpCode.setData,
          OpCode.exists,
          OpCode.getData,
          OpCode.getACL,
          OpCode.getChildren2,
          OpCode.sync,
          OpCode.addWatch,
          OpCode.removeWatches,
          OpCode.getAllChildrenNumber,
        ]);
        const fields: Record<number, Fields> = {
          [OpCode.create]: record.create(null, null, openAcl, 0),
          [OpCode.delete]: record.pathAndInt(null, -1),
          [OpCode.setData]: record.setData(null, null, -1),
          [OpCode.addWatch]: record.pathAndInt(null, 0),
          [OpCode.removeWatches]: record.pathAndInt(null, 3),
          [OpCode.exists]: record.pathAndWatch(null, true),
          [OpCode.getData]: record.pathAndWatch(null, true),
          [OpCode.getChildren2]: record.pathAndWatch(null, true),
        };
        return this.#op(type, `${opName(type)} null`, fields[type] ?? record.pathOnly(null), { quirk: kind });
      }
      case 'multi-type': {
        const stranger = this.#op(OpCode.getData, 'getData /a', record.pathAndWatch('/a', false));
        const type = random.pick([OpCode.multi, OpCode.multiRead]);
        const parts = type === OpCode.multi ? [this.#setData(), stranger] : [stranger, this.#setData()];
        return this.#grouped(type, parts, kind);
      }
      default:
        return kind satisfies never;
    }
  }
}

function show(path: WirePath): string {
  if (path === null) return 'null';
  return typeof path === 'string' ? JSON.stringify(path) : `0x${path.toString('hex')}`;
}

function showAcl(acl: readonly AclEntry[] | null): string {
  if (acl === openAcl) return 'open';
  return acl === null ? 'acl=null' : `acl=${acl.map((entry) => `${entry.scheme}:${entry.id}:${entry.perms}`).join(',')}`;
}
