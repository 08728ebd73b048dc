/**
 * The session machine with random events, name look-ups and list changes: it keeps its order,
 * settles every request, and works again when servers answer.
 */
import { OpCode } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { expect, it } from 'vitest';
import type { ServerAddress } from '../../src/index.ts';
import { HostProvider } from '../../src/session/host-provider.ts';
import { SessionMachine } from '../../src/session/session-machine.ts';
import { type MachineOutput, NamedRequest, outputsTo } from '../support/machine-rig.ts';
import { connectResponse, pong, reply } from '../support/server-frames.ts';

type Attempt = 'none' | 'service' | 'name' | 'dial' | 'open' | 'session';

/** Faster than `expect`, which would take most of the time. */
function must(isSo: boolean, belief: string): void {
  if (!isSo) throw new Error(`it does not hold that it ${belief}`);
}

class Story {
  readonly random: SeededRandom;
  readonly machine: SessionMachine<NamedRequest>;
  nowMs = 0;
  /** What the machine has asked for; only that is answered. */
  #attempt: Attempt = 'none';
  /** Answers that the server owes, oldest first. */
  #owed: Buffer[] = [];
  #submitted = 0;
  readonly #open = new Set<number>();
  /** Requests lost with a connection during the current input. */
  #lost: number[] = [];
  #lastSent = 0;
  moves = 0;

  constructor(seed: number) {
    const random = new SeededRandom(seed);
    this.random = random;
    const begin = (attempt: Attempt) => {
      must(this.#attempt === 'none', 'makes one attempt at a time');
      this.#attempt = attempt;
      this.#owed = [];
    };
    const out: MachineOutput = {
      resolveSrv: () => begin('service'),
      resolve: () => begin('name'),
      dial: () => begin('dial'),
      probe: () => undefined,
      send: (bytes) => this.#sent(bytes),
      closeCnxn: () => {
        must(this.#attempt !== 'none', 'hangs up what there is');
        this.#attempt = 'none';
      },
      answered: ({ name }) => this.#settled(name),
      failed: ({ name }) => {
        this.#settled(name);
        this.#lost.push(Number(name));
      },
      authenticated: () => undefined,
      authFailed: () => undefined,
      event: () => undefined,
      connectionFailed: () => undefined,
      state: () => undefined,
      startSasl: () => undefined,
      continueSasl: () => undefined,
      restoreWatches: () => [],
    };
    const hasService = random.below(3) === 0;
    this.machine = new SessionMachine(
      {
        sessionTimeoutMs: 9000,
        readOnly: false,
        packetBytesMax: 1000,
        session: undefined,
        auth: [],
        expireLocally: false,
        yieldSession: false,
        srvName: hasService ? '_zk._tcp.test' : undefined,
        resolvesNames: random.below(2) === 0,
        sasl: false,
        waitForFirstConnection: false,
        requestTimeoutMs: undefined,
      },
      new HostProvider(hasService ? [] : this.#servers(), random),
      random,
      outputsTo(out),
      0,
    );
  }

  #servers(): ServerAddress[] {
    return Array.from({ length: 1 + this.random.below(4) }, () => ({ host: 'abcdef'[this.random.below(6)]!, port: 2181 }));
  }

  #settled(name: string): void {
    must(this.#open.delete(Number(name)), `settles ${name} once`);
  }

  #sent(bytes: Buffer): void {
    must(this.#attempt === 'open' || this.#attempt === 'session', 'sends only on a connection');
    for (let at = 0; at < bytes.length;) {
      const end = at + 4 + bytes.readInt32BE(at);
      if (this.#attempt === 'open') {
        this.#attempt = 'session';
        this.#owed.push(connectResponse());
      } else {
        const [xid, type] = [bytes.readInt32BE(at + 4), bytes.readInt32BE(at + 8)];
        if (type === OpCode.exists) {
          const number = Number(bytes.toString('utf8', at + 16, end - 1));
          // In the order of submission, over all connections.
          must(number > this.#lastSent, `sends ${number} after ${this.#lastSent}`);
          this.#lastSent = number;
        }
        this.#owed.push(type === OpCode.ping ? pong : reply(xid, 1));
      }
      at = end;
    }
  }

  /** One input, followed by the invariants. */
  #input(make: () => void): void {
    const asked = this.#submitted;
    this.#lost = [];
    make();
    this.machine.flush(this.nowMs);
    // No request after a lost one may still be applied.
    for (const lost of this.#lost) for (const open of this.#open) must(open < lost || open > asked, `loses ${open} with ${lost}`);
    must(!this.machine.isConnected || this.#attempt === 'session', 'is connected by a connection');
    must(this.machine.deadline() !== undefined, 'wants to be woken');
  }

  submit(): void {
    const number = ++this.#submitted;
    this.#open.add(number);
    this.#input(() => this.machine.submit(new NamedRequest(String(number))));
  }

  update(): void {
    this.#input(() => {
      if (this.machine.updateServers(this.#servers(), this.nowMs)) this.moves++;
    });
  }

  pass(ms: number): void {
    this.nowMs += ms;
    const deadline = this.machine.deadline();
    if (deadline !== undefined && deadline <= this.nowMs) this.#input(() => this.machine.wake(this.nowMs));
  }

  passToDeadline(): void {
    this.pass(Math.max(0, this.machine.deadline()! - this.nowMs));
  }

  fail(): void {
    if (this.#attempt === 'none') return;
    this.#attempt = 'none';
    this.#input(() => this.machine.cnxnClosed('ECONNRESET', this.nowMs));
  }

  /** Does what the machine asked for last. Returns whether there was anything. */
  goOn(): boolean {
    const attempt = this.#attempt;
    switch (attempt) {
      case 'none':
        return false;
      case 'service':
        this.#attempt = 'none';
        this.#input(() =>
          this.machine.srvResolved(
            this.#servers().map((server) => ({ ...server, priority: this.random.below(2), weight: this.random.below(3) })),
            this.nowMs,
          ),
        );
        return true;
      case 'name':
        this.#attempt = 'none';
        this.#input(() => this.machine.addressesResolved(['1', '2', '3'].slice(this.random.below(3)), this.nowMs));
        return true;
      case 'dial':
        this.#attempt = 'open';
        this.#input(() => this.machine.cnxnOpened(this.nowMs));
        return true;
      default: {
        const answer = this.#owed.shift();
        if (answer === undefined) return false;
        this.#input(() => this.machine.received(answer, this.nowMs));
        return true;
      }
    }
  }

  step(): void {
    const what = this.random.below(100);
    if (what < 25) this.submit();
    else if (what < 60) this.goOn();
    else if (what < 75) this.passToDeadline();
    else if (what < 85) this.pass(this.random.below(2000));
    else if (what < 93) this.fail();
    else this.update();
  }

  /** From here on every server answers at once. */
  calmDown(): void {
    for (let step = 0; step < 1000; step++) {
      if (this.goOn()) continue;
      if (this.machine.isConnected && this.#open.size === 0) return;
      this.passToDeadline();
    }
  }

  get openCount(): number {
    return this.#open.size;
  }
}

it('C2-11, C2-20, C2-24: the machine keeps its order, settles every request once, and works again when servers answer', () => {
  let moves = 0;
  for (let seed = 1; seed <= 1000; seed++) {
    const story = new Story(seed);
    try {
      for (let step = 0; step < 80; step++) story.step();
      story.calmDown();
      expect(story.machine.isConnected).toBe(true);
      expect(story.openCount).toBe(0);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    moves += story.moves;
  }
  expect(moves).toBeGreaterThan(300);
});
