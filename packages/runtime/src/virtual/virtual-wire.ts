/**
 * The wire between the machines of a virtual network: who can reach whom, dials, and the names of
 * machines. A dial travels like bytes, so a cut or a change of conditions meets it on its way.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Endpoint } from '../network.ts';
import type { AcceptingProxy } from './accepting-proxy.ts';
import { Pipe, type PipeConditions, StreamEnd, type WireScheduler } from './pipe.ts';
import { type NetworkWire, VirtualNetwork } from './virtual-network.ts';

const defaultConditions: PipeConditions = { delayMs: 0, windowBytes: 1024 * 1024, pieceBytes: Infinity, pieceIntervalMs: 0 };
/** Interval between two attempts of an early acceptor to reach a machine that does not answer. */
const proxyDialIntervalMs: Millis = 100;

/** A connection, for tests that disturb it. */
export interface VirtualCnxn {
  readonly dialer: Endpoint;
  readonly listener: Endpoint;
  /** From the dialling side to the listening side. */
  readonly forward: Pipe;
  readonly backward: Pipe;
}

export class VirtualWire implements NetworkWire {
  readonly #scheduler: WireScheduler;
  readonly #stacks = new Map<string, VirtualNetwork>();
  readonly #names = new Map<string, readonly string[]>();
  readonly #cnxns = new Set<VirtualCnxn>();
  readonly #cuts = new Set<string>();
  /** The behaviour of new connections; called once per direction. */
  conditionsOf: (from: string, to: string) => Partial<PipeConditions> = () => ({});
  /** Whether an intermediary accepts in place of the dialled machine; called at each dial. */
  proxyFor: (from: string, to: string) => AcceptingProxy | undefined = () => undefined;
  /**
   * Called for each dial that was accepted early and closed because the machine at the far end
   * refused or did not answer.
   */
  onProxyClose: ((from: string, to: string, why: 'refused' | 'unanswered') => void) | undefined;

  constructor(scheduler: WireScheduler) {
    this.#scheduler = scheduler;
  }

  /** The stack of the node at this address; made at the first call. */
  stack(address: string): VirtualNetwork {
    let stack = this.#stacks.get(address);
    if (stack === undefined) this.#stacks.set(address, (stack = new VirtualNetwork(this, address, this.#scheduler)));
    return stack;
  }

  /** What a name resolves to; with an empty list it does not resolve. */
  name(host: string, addresses: readonly string[]): void {
    this.#names.set(host, addresses);
  }

  addressesOf(host: string): readonly string[] {
    return this.#names.get(host) ?? (this.#stacks.has(host) ? [host] : []);
  }

  /** Open and half-open connections, oldest first. */
  get cnxns(): ReadonlySet<VirtualCnxn> {
    return this.#cnxns;
  }

  /**
   * Cuts the link between two nodes: bytes in transit stay in transit, and dials are not answered.
   */
  cut(a: string, b: string): void {
    this.cutOneWay(a, b);
    this.cutOneWay(b, a);
  }

  heal(a: string, b: string): void {
    this.healOneWay(a, b);
    this.healOneWay(b, a);
  }

  /**
   * Nothing that `from` sends arrives at `to` any more. The other direction still works, but new
   * connections fail, because they need both.
   */
  cutOneWay(from: string, to: string): void {
    this.#cuts.add(cutKey(from, to));
    this.forEachPipe(from, to, (pipe) => pipe.cut());
  }

  healOneWay(from: string, to: string): void {
    this.#cuts.delete(cutKey(from, to));
    this.forEachPipe(from, to, (pipe) => pipe.heal());
  }

  /** Visits the pipes from one node to the other. */
  forEachPipe(from: string, to: string, visit: (pipe: Pipe) => void): void {
    for (const { dialer, listener, forward, backward } of this.#cnxns) {
      if (dialer.address === from && listener.address === to) visit(forward);
      if (listener.address === from && dialer.address === to) visit(backward);
    }
  }

  #isCut(a: string, b: string): boolean {
    return this.#cuts.has(cutKey(a, b)) || this.#cuts.has(cutKey(b, a));
  }

  #conditions(from: string, to: string): PipeConditions {
    return { ...defaultConditions, ...this.conditionsOf(from, to) };
  }

  /** Connects a dialling side to the listener. */
  dial(side: StreamEnd, to: Endpoint): void {
    const { address } = side.endpoint;
    const early = this.proxyFor(address, to.address);
    if (early !== undefined) {
      this.#dialThroughProxy(side, to, early);
      return;
    }
    const conditions = (from: string, at: string): PipeConditions => this.#conditions(from, at);
    this.#scheduler.after(conditions(address, to.address).delayMs, () => {
      // Read the conditions now: they may have changed while the dial travelled.
      const [forward, backward] = [conditions(address, to.address), conditions(to.address, address)];
      if (side.isClosed || this.#isCut(address, to.address)) return;
      const stack = this.#stacks.get(to.address);
      if (stack?.isPoweredOff === true) return;
      const peer = stack?.accept(to, side.endpoint);
      if (peer === undefined) {
        this.#scheduler.after(backward.delayMs, () => side.stack.breakStream(side, stack === undefined ? 'EHOSTUNREACH' : 'ECONNREFUSED'));
        return;
      }
      const there = new Pipe(side, peer, forward, this.#scheduler);
      const back = new Pipe(peer, side, backward, this.#scheduler);
      side.out = peer.in = there;
      side.in = peer.out = back;
      peer.isOpen = true;
      this.#cnxns.add({ dialer: side.endpoint, listener: peer.endpoint, forward: there, backward: back });
      peer.stack.reportAccepted(peer, side.endpoint);
      this.#scheduler.after(backward.delayMs, () => side.stack.reportConnected(side));
    });
  }

  /**
   * Connects the dialling side to an intermediary at the near or the far end of the link, which
   * then dials for it.
   */
  #dialThroughProxy(side: StreamEnd, to: Endpoint, early: AcceptingProxy): void {
    const { address } = side.endpoint;
    const isNear = early.location === 'near end';
    const roundTripMs = this.#conditions(address, to.address).delayMs + this.#conditions(to.address, address).delayMs;
    this.#scheduler.after(isNear ? 0 : roundTripMs, () => {
      if (side.isClosed || (!isNear && !this.#isReachable(address, to.address))) return;
      // Represents the far end until that has been reached. Nothing can be done to it.
      const proxyEnd = new StreamEnd(this.stack(to.address), -1, to);
      proxyEnd.isClosed = true;
      const forward = new Pipe(side, proxyEnd, this.#conditions(address, to.address), this.#scheduler);
      const backward = new Pipe(proxyEnd, side, this.#conditions(to.address, address), this.#scheduler);
      if (this.#cuts.has(cutKey(address, to.address))) forward.cut();
      if (this.#cuts.has(cutKey(to.address, address))) backward.cut();
      side.out = forward;
      side.in = backward;
      this.#cnxns.add({ dialer: side.endpoint, listener: to, forward, backward });
      side.stack.reportConnected(side);
      const untilMs = this.#scheduler.now().elapsedMs + early.dialTimeoutMs;
      this.#scheduler.after(isNear ? forward.conditions.delayMs : 0, () => this.#dialFarEnd(side, proxyEnd, early, untilMs));
    });
  }

  #dialFarEnd(side: StreamEnd, proxyEnd: StreamEnd, early: AcceptingProxy, untilMs: Millis): void {
    if (side.isClosed) return;
    const { endpoint: to } = proxyEnd;
    if (!this.#isReachable(side.endpoint.address, to.address)) {
      if (this.#scheduler.now().elapsedMs >= untilMs) this.#closeProxied(side, proxyEnd, early, 'unanswered');
      else this.#scheduler.after(proxyDialIntervalMs, () => this.#dialFarEnd(side, proxyEnd, early, untilMs));
      return;
    }
    const farEnd = this.stack(to.address).accept(to, side.endpoint);
    if (farEnd === undefined) {
      const backMs = early.location === 'near end' ? side.in.conditions.delayMs : 0;
      this.#scheduler.after(backMs + early.refusalMs, () => this.#closeProxied(side, proxyEnd, early, 'refused'));
      return;
    }
    farEnd.in = side.out;
    farEnd.out = side.in;
    farEnd.isOpen = true;
    farEnd.stack.reportAccepted(farEnd, side.endpoint);
    for (const pipe of [side.out, side.in]) pipe.reachedFarEnd(proxyEnd, farEnd);
  }

  #closeProxied(side: StreamEnd, { endpoint }: StreamEnd, early: AcceptingProxy, why: 'refused' | 'unanswered'): void {
    if (side.isClosed) return;
    this.onProxyClose?.(side.endpoint.address, endpoint.address, why);
    // No cut lies between the dialling side and an intermediary at its own end.
    if (early.location === 'near end') side.in.heal();
    if (early.refusal === 'reset') side.stack.breakStream(side, 'ECONNRESET');
    else side.in.end();
  }

  /** The machine at `to` answers a dial, by acceptance or refusal. */
  #isReachable(from: string, to: string): boolean {
    return !this.#isCut(from, to) && this.#stacks.get(to)?.isPoweredOff !== true;
  }

  forget(side: StreamEnd): void {
    for (const cnxn of this.#cnxns) {
      if (cnxn.forward !== side.out && cnxn.backward !== side.out) continue;
      if (cnxn.forward.from.isClosed && cnxn.forward.to.isClosed) this.#cnxns.delete(cnxn);
      return;
    }
  }
}

function cutKey(from: string, to: string): string {
  return `${from} ${to}`;
}
