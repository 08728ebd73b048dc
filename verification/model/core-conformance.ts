/**
 * Compares the production core with the reference model: every reply, every event, every close, the
 * digests of sampled txns, and the whole tree at the end of each stream.
 *
 * In a 'serial' stream the log answers at once. In a 'delayed' one it answers at random times, so
 * several writes are pending and reads of others see the state before them; the model then executes
 * a request when its effects are due (see reference-model.ts).
 */
import { OpCode, Xid } from '@tskeeper/protocol';
import { difference, show } from './compare.ts';
import { type Append, coreSettings, InProcessCore, type MakeCore } from './in-process.ts';
import type { ConnectRequest, ConnectResponse, Message, Operation } from '@tskeeper/simulator';
import { type Action, actionFrom, type Hints, Prng, superDigest, superPassword } from './operations.ts';
import { type Admitted, type ModelOutput, isWrite, ReferenceModel } from '@tskeeper/simulator';
import { encodeConnect, encodeRequest } from '@tskeeper/harness';

export interface StreamOptions {
  readonly makeCore: MakeCore;
  /** One action each; see `actionFrom`. */
  readonly seeds: readonly number[];
  readonly log: 'serial' | 'delayed';
  /** Changes a message of the core, for the canary. */
  readonly tamper?: (message: Message) => Message;
}

export interface StreamReport {
  readonly operations: number;
  readonly messages: number;
  readonly digests: number;
  readonly outcomes: ReadonlyMap<string, number>;
  /** The first difference between core and model. */
  readonly divergence: string | undefined;
}

const profile = { javaSafe: false, slots: 5 };
const sessionTimeoutMs = 20_000;
const manyZnodes = 100;
const noPassword = '\0'.repeat(16);

type PendingItem =
  | {
      readonly kind: 'request';
      readonly admitted: Admitted;
      readonly zxid: number | undefined;
      /** For a sync: the end of the log when it arrived, of all sessions. */
      readonly behind: number | undefined;
    }
  | { readonly kind: 'handshake'; readonly request: ConnectRequest; readonly zxid: number };

interface Slot {
  cnxn: number | undefined;
  session: ConnectResponse | undefined;
  lastXid: number;
  /** Sent and not yet due, oldest first. */
  waiting: PendingItem[];
}

class Divergence extends Error {}

export function runStream(options: StreamOptions): StreamReport {
  return new Stream(options).run();
}

class Stream {
  readonly #options: StreamOptions;
  readonly #model: ReferenceModel;
  readonly #inProcess: InProcessCore;
  readonly #random: Prng;
  readonly #slots: Slot[];
  readonly #expected = new Map<number, ModelOutput[]>();
  readonly #hints: Hints = { paths: [], zxid: 0, leaves: [] };
  readonly #outcomes = new Map<string, number>();
  readonly #recent: string[] = [];
  /** Txns that no client requested, and the wall clock when they were proposed. */
  readonly #serverTxns = new Map<number, number>();
  #operations = 0;
  #messages = 0;
  #digests = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    // Quotas are checked against what is applied when a write arrives; the model knows that moment
    // only if nothing is pending.
    const enforceQuota = options.log === 'serial';
    const settings = { ...coreSettings, superDigest, enforceQuota };
    this.#model = new ReferenceModel(settings);
    this.#random = new Prng(options.seeds.length + (options.seeds[0] ?? 0));
    this.#inProcess = new InProcessCore(options.makeCore, settings, new Prng(1));
    this.#slots = Array.from({ length: profile.slots + 1 }, () => ({ cnxn: undefined, session: undefined, lastXid: 0, waiting: [] }));
  }

  run(): StreamReport {
    let divergence: string | undefined;
    try {
      for (const seed of this.#options.seeds) {
        this.#advanceTime(this.#random.below(3));
        this.#hints.zxid = this.#model.zxid;
        this.#hints.leaves = this.#model.znodeCount > manyZnodes ? this.#model.leaves() : [];
        this.#act(actionFrom(seed, profile, this.#hints));
        this.#operations++;
      }
      this.#drain();
      this.#readEverything();
    } catch (error) {
      // Any error of the core is a finding, reported with the actions before it.
      const text = error instanceof Divergence ? error.message : String(error instanceof Error ? error.stack : error);
      divergence = `action ${this.#operations}: ${text}\nbefore it:\n${this.#recent.join('\n')}`;
    }
    return { operations: this.#operations, messages: this.#messages, digests: this.#digests, outcomes: this.#outcomes, divergence };
  }

  // --- actions

  #act(action: Action): void {
    const slot = this.#slots[action.slot]!;
    this.#remember(`slot ${action.slot}`, action.kind === 'request' ? action.operation : action.kind);
    if (slot.cnxn === undefined) {
      this.#connect(slot);
      return;
    }
    if (action.kind === 'request') this.#request(slot, action.operation);
    else if (action.kind === 'takeOver') this.#takeOver(slot, action.rightPassword);
    else this.#disconnect(slot);
    if (this.#options.log === 'serial' || this.#random.chance(25)) this.#acknowledgeSome();
    this.#compare();
  }

  #remember(where: string, what: unknown): void {
    this.#recent.push(`  ${where} ${JSON.stringify(what, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}`);
    if (this.#recent.length > 14) this.#recent.shift();
  }

  #connect(slot: Slot): void {
    const request = this.#connectRequest(slot, slot.session?.passwd ?? noPassword);
    const cnxn = this.#inProcess.connect();
    this.#model.connect(cnxn, '127.0.0.1');
    slot.cnxn = cnxn;
    slot.lastXid = 0;
    const before = this.#inProcess.appends.length;
    this.#inProcess.send(cnxn, encodeConnect(request));
    const append = this.#inProcess.appends[before];
    if (append === undefined) this.#expect(this.#model.handshake(cnxn, request, 0n));
    else slot.waiting.push({ kind: 'handshake', request, zxid: append.zxid });
    // A session receives requests only after it is open.
    this.#drain();
    this.#compare();
  }

  #connectRequest(slot: Slot, passwd: string): ConnectRequest {
    const readOnly = this.#random.chance(80) ? { readOnly: false } : {};
    const sessionId = slot.session?.sessionId ?? 0n;
    return { protocolVersion: 0, lastZxidSeen: 0, timeOut: sessionTimeoutMs, sessionId, passwd, ...readOnly };
  }

  #request(slot: Slot, operation: Operation): void {
    // Operations that the connection answers before the queue may overtake earlier ones.
    const overtakes = ['auth', 'sasl', 'unknown', 'check', 'deleteContainer'].includes(operation.kind);
    if (overtakes) this.#drain();
    const cnxn = slot.cnxn!;
    const xid = ++slot.lastXid;
    const admitted = this.#model.admit(cnxn, xid, operation, this.#inProcess.wallMs);
    const before = this.#inProcess.appends.length;
    const answerXid = operation.kind === 'ping' ? Xid.ping : xid;
    this.#inProcess.send(cnxn, encodeRequest(xid, operation), { xid: answerXid, kind: operation.kind });
    const append = this.#inProcess.appends[before];
    if ((append !== undefined) !== isWrite(operation)) throw new Divergence(`a ${operation.kind} ${append ? 'was' : 'was not'} logged`);
    const isSync = operation.kind === 'sync' || (operation.kind === 'undecodable' && operation.opCode === OpCode.sync);
    const behind = isSync ? this.#inProcess.appends.at(-1)?.zxid : undefined;
    slot.waiting.push({ kind: 'request', admitted, zxid: append?.zxid, behind });
    this.#performDue(slot);
    if (operation.kind === 'closeSession') {
      this.#drain();
      slot.session = undefined;
    }
  }

  #disconnect(slot: Slot): void {
    this.#drain();
    this.#compare();
    this.#inProcess.disconnect(slot.cnxn!);
    this.#model.disconnected(slot.cnxn!);
    slot.cnxn = undefined;
    if (this.#random.chance(40)) this.#expire(slot);
  }

  #takeOver(slot: Slot, rightPassword: boolean): void {
    this.#drain();
    const request = this.#connectRequest(slot, rightPassword ? slot.session!.passwd! : 'x'.repeat(16));
    const cnxn = this.#inProcess.connect();
    this.#model.connect(cnxn, '127.0.0.1');
    this.#inProcess.send(cnxn, encodeConnect(request));
    this.#expect(this.#model.handshake(cnxn, request, 0n));
    this.#compareCnxn(slot.cnxn!);
    this.#compareCnxn(cnxn);
    slot.cnxn = rightPassword ? cnxn : undefined;
    slot.lastXid = 0;
  }

  /**
   * Advances time until the session of a closed connection expires, while all others stay active.
   */
  #expire(slot: Slot): void {
    const stepMs = 500;
    let waitedMs = 0;
    for (; slot.session !== undefined; waitedMs += stepMs) {
      if (waitedMs > sessionTimeoutMs + 2 * coreSettings.tickTimeMs) throw new Divergence(`a session was not expired after ${waitedMs} ms`);
      this.#advanceTime(stepMs);
      for (const other of this.#slots) if (other.cnxn !== undefined) this.#request(other, { kind: 'ping' });
      this.#drain();
      this.#compare();
    }
    if (waitedMs < sessionTimeoutMs) throw new Divergence(`a session was expired after ${waitedMs} ms already`);
  }

  /** What the server does by itself as time passes goes through the log as well. */
  #advanceTime(ms: number): void {
    this.#inProcess.advance(ms);
    const before = this.#inProcess.appends.length;
    this.#inProcess.settle();
    for (const append of this.#inProcess.appends.slice(before)) this.#serverTxns.set(append.zxid, this.#inProcess.wallMs);
    if (this.#options.log === 'serial') this.#drain();
  }

  #performServerTxn(append: Append, wallMs: number): void {
    if (append.type === OpCode.deleteContainer) {
      if (!this.#model.sweepCandidates(wallMs).includes(append.path!)) throw new Divergence(`${append.path} was reaped too early`);
      this.#expect(this.#model.sweep(append.path!));
      this.#count('reaped', 0);
      return;
    }
    const slot = this.#slots.find(({ cnxn, session }) => cnxn === undefined && session?.sessionId === append.session);
    if (append.type !== OpCode.closeSession || slot === undefined) throw new Divergence(`a txn of type ${append.type} without a request`);
    this.#expect(this.#model.expire(append.session));
    this.#count('expired', 0);
    slot.session = undefined;
  }

  // --- the log, and what is due after its answer

  #acknowledgeSome(): void {
    let count = this.#options.log === 'serial' ? Infinity : 1 + this.#random.below(4);
    while (count-- > 0 && this.#inProcess.appends.length > 0) this.#acknowledgeOne();
  }

  #drain(): void {
    while (this.#inProcess.appends.length > 0) this.#acknowledgeOne();
  }

  #acknowledgeOne(): void {
    const append = this.#inProcess.appends[0]!;
    const ownAccordMs = this.#serverTxns.get(append.zxid);
    if (ownAccordMs !== undefined) {
      this.#inProcess.acknowledge(append.zxid);
      this.#performServerTxn(append, ownAccordMs);
      this.#checkDigest(append);
      for (const each of this.#slots) this.#performDue(each);
      return;
    }
    const slot = this.#slots.find(({ waiting }) => waiting[0]?.zxid === append.zxid);
    if (slot === undefined) throw new Divergence(`no request for the txn of type ${append.type} at zxid ${append.zxid}`);
    this.#inProcess.acknowledge(append.zxid);
    const due = slot.waiting.shift()!;
    if (due.kind === 'handshake') {
      const given = this.#inProcess.takeReceived(slot.cnxn!)[0];
      if (given?.kind !== 'connected') throw new Divergence(`a new session was answered by ${show(given)}`);
      slot.session = given;
      const [wanted] = this.#model.handshake(slot.cnxn!, due.request, given.sessionId);
      const wrong = difference([wanted!], [given]);
      if (wrong !== undefined) throw new Divergence(wrong);
    } else {
      this.#perform(due.admitted);
    }
    this.#checkDigest(append);
    for (const each of this.#slots) this.#performDue(each);
  }

  /**
   * Reads are due as soon as no earlier write of their session is pending, and syncs when the log
   * has written everything before them.
   */
  #performDue(slot: Slot): void {
    for (let due = slot.waiting[0]; due?.kind === 'request' && due.zxid === undefined; due = slot.waiting[0]) {
      if (due.behind !== undefined && (this.#inProcess.appends[0]?.zxid ?? Infinity) <= due.behind) return;
      slot.waiting.shift();
      this.#perform(due.admitted);
    }
  }

  #perform(admitted: Admitted): void {
    const heard = this.#model.perform(admitted);
    this.#expect(heard);
    for (const { message } of heard) {
      if (message.kind !== 'reply') continue;
      this.#count(admitted.operation.kind, message.err);
      const path = message.body?.path;
      if (admitted.operation.kind.startsWith('create') && typeof path === 'string' && !path.startsWith('/zookeeper')) {
        this.#hints.paths.push(path);
        if (this.#hints.paths.length > 20) this.#hints.paths.shift();
      }
    }
  }

  #count(what: string, err: number): void {
    const outcome = `${what} ${err}`;
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
  }

  /**
   * A txn has the digest of the tree after it is applied, and a rejection has none. Computing it
   * from scratch is slow, so only some are checked.
   */
  #checkDigest({ zxid, digest, type }: Append): void {
    if (type === OpCode.error) {
      if (digest !== undefined) throw new Divergence(`the refusal at zxid ${zxid} has a tree digest`);
      return;
    }
    if (digest === undefined) throw new Divergence(`the txn at zxid ${zxid} has no tree digest`);
    if (zxid % 16 !== 0) return;
    this.#digests++;
    const wanted = this.#model.digest();
    if (digest !== wanted)
      throw new Divergence(`tree digest in the txn of type ${type} at zxid ${zxid}: expected ${wanted}, logged ${digest}`);
  }

  // --- comparing

  #expect(heard: readonly ModelOutput[]): void {
    for (const one of heard) this.#expected.set(one.cnxn, [...(this.#expected.get(one.cnxn) ?? []), one]);
  }

  #compare(): void {
    for (const slot of this.#slots) {
      if (slot.cnxn === undefined) continue;
      const closed = this.#compareCnxn(slot.cnxn);
      if (closed) slot.cnxn = undefined;
    }
  }

  /** Returns whether the connection is closed. */
  #compareCnxn(cnxn: number): boolean {
    const expected = this.#expected.get(cnxn) ?? [];
    this.#expected.delete(cnxn);
    let heard = this.#inProcess.takeReceived(cnxn);
    const { tamper } = this.#options;
    if (tamper !== undefined) heard = heard.map(tamper);
    this.#messages += heard.length;
    const wrong = difference(expected, heard);
    if (wrong !== undefined) throw new Divergence(`${wrong}\n  all received: ${heard.map(show).join('\n                 ')}`);
    if (!this.#inProcess.closing.has(cnxn)) return false;
    this.#inProcess.disconnect(cnxn);
    return true;
  }

  #readEverything(): void {
    const slot = this.#slots.at(-1)!;
    this.#connect(slot);
    this.#request(slot, { kind: 'auth', scheme: 'digest', auth: superPassword });
    for (const path of this.#model.contents().keys()) {
      for (const kind of ['getData', 'getACL', 'getChildren2'] as const) this.#request(slot, { kind, path, watch: false });
      this.#compare();
    }
  }
}
