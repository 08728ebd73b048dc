/**
 * Sends a stream of actions to a running server, one at a time, and compares every reply and every
 * watch event with the model.
 *
 * One action is answered before the next is sent, so the order of writes is known. Events for other
 * connections may still be pending then; they are compared when that connection next receives a
 * reply, since a connection preserves the order.
 */
import { connect } from 'node:net';
import { difference, show } from '../model/compare.ts';
import type { ConnectRequest, ConnectResponse, Message, Operation } from '@tskeeper/simulator';
import { type Action, type Hints, Prng, type Profile, randomAction, superPassword } from '../model/operations.ts';
import { type ModelOutput, type ModelOptions, ReferenceModel } from '@tskeeper/simulator';
import { TimeMapping } from '../model/times.ts';
import { type Endpoint, OperationClient } from '@tskeeper/harness';

export interface LockstepOptions {
  readonly endpoint: Endpoint;
  readonly model: Partial<ModelOptions>;
  readonly profile: Profile;
  readonly seed: number;
  readonly actions: number;
  /** Changes what the server sent, so that a test can check that this is detected. */
  readonly spoil?: (message: Message, at: number) => Message;
}

export interface LockstepReport {
  readonly actions: number;
  readonly messages: number;
  /**
   * How often each kind of request had each result: proof that the stream covers what it should.
   */
  readonly outcomes: ReadonlyMap<string, number>;
  /** The first difference between server and model, or undefined. */
  readonly wrong: string | undefined;
}

interface Slot {
  client: OperationClient | undefined;
  cnxn: number;
  session: ConnectResponse | undefined;
  expected: ModelOutput[];
}

const sessionTimeoutMs = 60_000;
/** More znodes than this slow the stream down without benefit. */
const crowdedAt = 120;

/** Carries a difference from the middle of a stream to its report. */
class Parted extends Error {}

export class Lockstep {
  readonly #options: LockstepOptions;
  readonly #model: ReferenceModel;
  readonly #times = new TimeMapping();
  readonly #slots: Slot[] = [];
  readonly #hints: Hints = { paths: [], zxid: 0, leaves: [] };
  readonly #outcomes = new Map<string, number>();
  readonly #recent: string[] = [];
  #cnxns = 0;
  #messages = 0;
  #actions = 0;

  constructor(options: LockstepOptions) {
    this.#options = options;
    this.#model = new ReferenceModel(options.model);
    for (let i = 0; i < options.profile.slots + 1; i++) {
      this.#slots.push({ client: undefined, cnxn: 0, session: undefined, expected: [] });
    }
  }

  async run(): Promise<LockstepReport> {
    const random = new Prng(this.#options.seed);
    let wrong: string | undefined;
    try {
      while (this.#actions < this.#options.actions) {
        this.#hints.zxid = this.#model.zxid;
        this.#hints.leaves = this.#model.znodeCount > crowdedAt ? this.#model.leaves() : [];
        await this.#act(randomAction(random, this.#options.profile, this.#hints));
      }
      await this.#readEverything();
      for (const slot of this.#slots) if (slot.client) await this.#request(slot, { kind: 'closeSession' });
    } catch (error) {
      if (!(error instanceof Parted)) throw error;
      wrong = `seed ${this.#options.seed}, action ${this.#actions}: ${error.message}\nbefore it:\n${this.#recent.join('\n')}`;
    } finally {
      for (const slot of this.#slots) slot.client?.destroy();
    }
    return { actions: this.#actions, messages: this.#messages, outcomes: this.#outcomes, wrong };
  }

  async #act(action: Action): Promise<void> {
    this.#actions++;
    const slot = this.#slots[action.slot]!;
    this.#remember(`slot ${action.slot}`, action.kind === 'request' ? action.operation : action);
    await this.#ensureConnected(slot);
    if (action.kind === 'request') {
      await this.#request(slot, action.operation);
    } else if (action.kind === 'disconnect') {
      await this.#request(slot, { kind: 'ping' });
      slot.client!.destroy();
      slot.client = undefined;
      this.#model.disconnected(slot.cnxn);
    } else {
      await this.#takeOver(slot, action.rightPassword);
    }
  }

  #remember(where: string, what: unknown): void {
    this.#recent.push(`  ${where} ${JSON.stringify(what, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}`);
    if (this.#recent.length > 12) this.#recent.shift();
  }

  async #request(slot: Slot, operation: Operation): Promise<void> {
    const client = slot.client!;
    const xid = client.send(operation);
    const sentXid = operation.kind === 'ping' ? client.lastXid : xid;
    this.#expect(this.#model.perform(this.#model.admit(slot.cnxn, sentXid, operation, this.#times.tick(Date.now()))));
    const messages = await client.receive(xid);
    const last = messages.at(-1);
    if (last?.kind === 'reply') {
      const outcome = `${operation.kind} ${last.err}`;
      this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
      const path = last.body?.path;
      if (operation.kind.startsWith('create') && typeof path === 'string' && !path.startsWith('/zookeeper')) {
        this.#hints.paths.push(path);
        if (this.#hints.paths.length > 20) this.#hints.paths.shift();
      }
    }
    await this.#check(slot, messages);
    if (operation.kind === 'closeSession') slot.session = undefined;
  }

  /** Connects a slot, to its old session if it had one. */
  async #ensureConnected(slot: Slot): Promise<void> {
    if (slot.client !== undefined) return;
    const { client, cnxn, connected } = await this.#connect(slot, slot.session?.passwd ?? '\0'.repeat(16));
    slot.client = client;
    slot.cnxn = cnxn;
    slot.session = connected;
    await this.#check(slot, [connected]);
  }

  async #connect(slot: Slot, passwd: string): Promise<{ client: OperationClient; cnxn: number; connected: ConnectResponse }> {
    const request: ConnectRequest = {
      protocolVersion: 0,
      lastZxidSeen: this.#model.zxid,
      timeOut: sessionTimeoutMs,
      sessionId: slot.session?.sessionId ?? 0n,
      passwd,
      readOnly: false,
    };
    const client = await OperationClient.open(this.#options.endpoint);
    const cnxn = ++this.#cnxns;
    await client.handshake(request);
    if (client.session === undefined) throw new Parted('the server closed a connection instead of answering its handshake');
    this.#model.connect(cnxn, '127.0.0.1');
    if (slot.client === undefined) slot.cnxn = cnxn;
    this.#expect(this.#model.handshake(cnxn, request, client.session.sessionId), cnxn, slot);
    return { client, cnxn, connected: client.session };
  }

  async #takeOver(slot: Slot, rightPassword: boolean): Promise<void> {
    const old = slot.client!;
    const { client, cnxn, connected } = await this.#connect(slot, rightPassword ? slot.session!.passwd! : 'x'.repeat(16));
    const forNew = slot.expected.filter((one) => one.cnxn === cnxn);
    slot.expected = slot.expected.filter((one) => one.cnxn !== cnxn);
    await this.#check(slot, await old.untilClosed(), old);
    slot.expected = forNew;
    slot.client = client;
    slot.cnxn = cnxn;
    await this.#check(slot, [connected]);
    if (rightPassword) slot.session = connected;
  }

  /**
   * Records what connections must receive. `cnxn` may be a connection of `slot` that is not yet its
   * own.
   */
  #expect(heard: ModelOutput[], cnxn?: number, slotOfCnxn?: Slot): void {
    for (const one of heard) {
      const slot = one.cnxn === cnxn ? slotOfCnxn : this.#slots.find((candidate) => candidate.client && candidate.cnxn === one.cnxn);
      slot?.expected.push(one);
    }
  }

  async #check(slot: Slot, heardSoFar: Message[], client = slot.client!): Promise<void> {
    let messages = heardSoFar;
    const { expected } = slot;
    slot.expected = [];
    const ends = expected.at(-1)?.message.kind === 'closed';
    if (ends) {
      messages = [...messages, ...(await client.untilClosed()), { kind: 'closed' }];
      if (slot.client === client) slot.client = undefined;
      client.destroy();
    }
    const { spoil } = this.#options;
    if (spoil !== undefined) messages = messages.map((message, at) => spoil(message, this.#messages + at));
    this.#messages += messages.length;
    const translated = expected.map((one, at) => ({ ...one, message: this.#times.translate(one.message, messages[at]) }));
    const wrong = difference(translated, messages);
    if (wrong !== undefined) throw new Parted(`${wrong}\n  all received: ${messages.map(show).join('\n                 ')}`);
  }

  /** The whole tree at the end, read by the super user. */
  async #readEverything(): Promise<void> {
    const slot = this.#slots.at(-1)!;
    await this.#ensureConnected(slot);
    await this.#request(slot, { kind: 'auth', scheme: 'digest', auth: superPassword });
    for (const path of this.#model.contents().keys()) {
      this.#remember('at the end', path);
      await this.#request(slot, { kind: 'getData', path, watch: false });
      await this.#request(slot, { kind: 'getACL', path });
      await this.#request(slot, { kind: 'getChildren2', path, watch: false });
    }
    await this.#compareDigest(slot);
  }

  /**
   * Servers remember the tree digest at every 128th zxid, so create one and compare the tree at
   * that zxid.
   */
  async #compareDigest(slot: Slot): Promise<void> {
    while (this.#model.zxid % 128 !== 0) await this.#request(slot, { kind: 'setData', path: '/zookeeper', data: 'x', version: -1 });
    for (const path of this.#model.contents().keys()) await this.#request(slot, { kind: 'exists', path, watch: false });
    const answer = await fourLetterWord(this.#options.endpoint, 'hash');
    const shown = answer.trim().split('\n').at(-1);
    const wanted = `${this.#model.zxid.toString(16)}: ${this.#model.digest((tick) => this.#times.real(tick) ?? tick)}`;
    if (shown !== wanted) throw new Parted(`tree digest\n  expected ${wanted}\n  hash     ${shown}`);
  }
}

export function fourLetterWord({ host, port }: Endpoint, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ host, port }, () => socket.write(word));
    socket.on('data', (chunk) => {
      answer += chunk.toString('utf8');
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}
