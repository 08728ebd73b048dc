/**
 * Clients and peers that do not belong to the load of a run: visitors that do one thing and leave,
 * second processes of a session, and attackers. Each has an address of its own, and nothing of the
 * run waits for it.
 */
import type { Millis } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { HalfOpenClient } from '../clients/half-open-client.ts';
import { MemoryHog, type MemoryHogOptions } from '../clients/memory-hog.ts';
import { RawClient, type SessionDump } from '../clients/raw-client.ts';
import { HostilePeer } from '../peers/hostile-peer.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { RunContext } from './run-context.ts';

export class Strangers {
  readonly #run: RunContext;
  readonly #random: SeededRandom;
  #impostors = 0;
  #pinnedClients = 0;
  #readOnlyVisitors = 0;
  #sessionSharers = 0;
  #memoryHogs = 0;
  #halfOpenClients = 0;
  readonly #hostilePeers: HostilePeer[] = [];

  /** Draws from the random numbers of the run. */
  constructor(run: RunContext, random: SeededRandom) {
    this.#run = run;
    this.#random = random;
  }

  /**
   * Adds a client that connects once with a session of another client and a wrong password, or with
   * a zxid from the future. It gets no further than the handshake.
   */
  addImpostor(victim: RawClient, how: 'wrong password' | 'later zxid'): void {
    const number = ++this.#impostors;
    const impostor = new RawClient(this.#run.world, new SeededRandom(this.#random.uint32()), {
      name: `impostor ${number}`,
      address: `10.7.${number >> 8}.${number & 255}`,
      timeoutMs: victim.options.timeoutMs,
    });
    impostor.session = victim.session;
    impostor.password = Buffer.from(victim.password ?? []);
    if (how === 'later zxid') impostor.lastZxidSeen = victim.lastZxidSeen + 2 ** 40;
    else if (impostor.password.length > 0) impostor.password[0]! ^= 0x55;
    impostor.dialOnce();
    this.#run.hitMark(`impostor ${how}`);
  }

  /**
   * A visitor (`addPinnedClient`) that reads `/` at each `ask`, and closes its session at `leave`.
   */
  addReader(server: ServerHost): { ask(): void; leave(): void } {
    const reader = this.addPinnedClient(server);
    return {
      ask: () => {
        if (reader.send('getData', { path: '/', watch: false }) !== undefined) this.#run.hitMark('read at the end of a pause');
      },
      leave: () => {
        reader.send('closeSession', undefined);
      },
    };
  }

  /** Adds a client that connects to one server, once, with the longest session timeout. */
  addPinnedClient(server: ServerHost): RawClient {
    const number = ++this.#pinnedClients;
    const { maxSessionTimeoutMs: timeoutMs } = this.#run.world.recording.limits;
    const visitor = new RawClient(this.#run.world, new SeededRandom(this.#random.uint32()), {
      name: `visitor ${number}`,
      address: `10.5.${number >> 8}.${number & 255}`,
      timeoutMs,
      server,
    });
    visitor.dialOnce();
    return visitor;
  }

  /** Adds a client that accepts a server in read-only mode. It stays until it is abandoned. */
  addReadOnlyVisitor(): RawClient {
    const number = ++this.#readOnlyVisitors;
    return new RawClient(this.#run.world, new SeededRandom(this.#random.uint32()), {
      name: `reader ${number}`,
      address: `10.2.${number >> 8}.${number & 255}`,
      timeoutMs: 400 + this.#random.below(1500),
      restoresWatches: true,
      acceptsReadOnly: true,
      keepsLocalSession: this.#random.below(2) === 0,
    });
  }

  /** Adds a second process that uses the session of a client, from a dump. */
  addSessionSharer({ options }: RawClient, dump: SessionDump): RawClient {
    const number = ++this.#sessionSharers;
    const { timeoutMs, credentials } = options;
    const twin = new RawClient(this.#run.world, new SeededRandom(this.#random.uint32()), {
      name: `twin ${number}`,
      address: `10.4.${number >> 8}.${number & 255}`,
      timeoutMs,
      credentials,
      redialMsMax: 15,
    });
    twin.resumeFrom(dump);
    return twin;
  }

  /** Adds an address that makes a server hold memory for it for a while. */
  addMemoryHog(bytesPerCnxn: readonly number[], ms: Millis, how: Pick<MemoryHogOptions, 'requestsPerCnxn' | 'windowBytes'>): void {
    const number = ++this.#memoryHogs;
    const name = `hoarder ${number}`;
    const address = `10.6.${number >> 8}.${number & 255}`;
    const memoryHog = new MemoryHog(this.#run.world, {
      name,
      address,
      timeoutMs: 600,
      server: this.#run.anyServer(),
      bytesPerCnxn,
      ...how,
    });
    this.#run.schedule(ms, 'hoarder hangs up', undefined, () => memoryHog.hangUp());
  }

  /** Adds an address that opens connections to a server and sends nothing useful. */
  addHalfOpenClient(bytesPerCnxn: readonly number[], ms: Millis): void {
    const number = ++this.#halfOpenClients;
    const name = `loiterer ${number}`;
    const address = `10.3.${number >> 8}.${number & 255}`;
    const halfOpenClient = new HalfOpenClient(this.#run.world, { name, address, server: this.#run.anyServer(), bytesPerCnxn });
    this.#run.schedule(ms, 'loiterer hangs up', undefined, () => halfOpenClient.hangUp());
  }

  /**
   * Adds a hostile peer with a machine of its own, which will speak to servers as if it were one.
   */
  newHostilePeer(): HostilePeer {
    const peer = new HostilePeer(this.#run.world, this.#hostilePeers.length + 1);
    this.#hostilePeers.push(peer);
    return peer;
  }

  /**
   * Peers that used a server's id leave. Half of the other hostile peers stay: they must do no
   * harm.
   */
  endAttacks(): void {
    const { isImpersonated } = this.#run.world.recording;
    for (const peer of this.#hostilePeers) if (isImpersonated || this.#random.below(2) === 0) peer.leave();
  }
}
