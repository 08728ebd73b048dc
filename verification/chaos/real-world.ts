/**
 * A world of real processes in the form of the simulator's: servers with names, client machines,
 * proxies between all of them, and one recording. The simulator's clients work in it, and its
 * checkers examine the result.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { coreDefaults } from '@tskeeper/core';
import { FrameDecoder } from '@tskeeper/protocol';
import type { ClientMachine, ClientWorld, Recording } from '@tskeeper/simulator';
import { newRecording } from '@tskeeper/simulator/internal';
import { FaultyDisk, type Proxy, ProxyNetwork, reservePort, type Settings } from '@tskeeper/harness';
import { RealMachine } from './real-machine.ts';
import { RealServer } from './real-server.ts';
import { RealClock } from './real-clock.ts';

export interface RealWorldOptions {
  readonly folder: string;
  readonly servers: number;
  /** The last ones of the servers are observers. */
  readonly observers: number;
  readonly clients: readonly string[];
  readonly tickMs: number;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  /** Further keys of zoo.cfg. */
  readonly settings: Settings;
  /** Path of the library of disk faults. */
  readonly diskFaults: string;
}

export class RealWorld implements ClientWorld {
  readonly clock = new RealClock();
  readonly recording: Recording;
  readonly network = new ProxyNetwork();
  readonly servers: RealServer[] = [];
  readonly #machines: RealMachine[] = [];
  /** Names of open connections by their port. */
  readonly #cnxnNames = new Map<number, string>();
  #cnxns = 0;

  private constructor({ tickMs, minSessionTimeoutMs, maxSessionTimeoutMs }: RealWorldOptions) {
    this.recording = newRecording({
      tickMs,
      minSessionTimeoutMs,
      maxSessionTimeoutMs,
      extendedTypesEnabled: true,
      containerMaxNeverUsedIntervalMs: 0,
      txnBytesMax: coreDefaults.juteMaxBuffer + coreDefaults.juteMaxBufferExtra,
      isRealTime: true,
    });
  }

  static async make(options: RealWorldOptions): Promise<RealWorld> {
    const world = new RealWorld(options);
    await world.#build(options);
    return world;
  }

  async #build(options: RealWorldOptions): Promise<void> {
    const { servers, observers, clients } = options;
    const sids = Array.from({ length: servers }, (_, index) => index + 1);
    const ports = new Map<number, RealServer['options']['ports']>();
    for (const sid of sids) ports.set(sid, { client: await reservePort(), quorum: await reservePort(), election: await reservePort() });
    await this.network.addServers(sids.map((sid) => ({ name: `server-${sid}`, ports: ports.get(sid)! })));
    for (const client of clients) for (const to of sids) await this.#addClientProxy(client, `server-${to}`, ports.get(to)!.client);
    for (const sid of sids) {
      const folder = path.join(options.folder, `server-${sid}`);
      await mkdir(folder, { recursive: true });
      const lines = sids.map((each) => [
        `server.${each}`,
        `${this.#addressSeenFrom(sid, each, ports)}${each > servers - observers ? ':observer' : ''}`,
      ]);
      const member: RealServer = new RealServer({
        sid,
        folder,
        ports: ports.get(sid)!,
        settings: { ...settingsOf(options), ...Object.fromEntries(lines) },
        disk: new FaultyDisk(path.join(folder, 'disk-faults'), options.diskFaults),
        clock: this.clock,
        recording: this.recording,
        up: () => this.network.accept(`server-${sid}`),
        down: () => this.network.refuse(`server-${sid}`),
      });
      this.servers.push(member);
      this.recording.ensemble.set(member.name, { sid, isVoter: sid <= servers - observers });
      await member.prepare();
    }
  }

  async #addClientProxy(client: string, server: string, port: number): Promise<void> {
    const cutters = new Map<string, FrameDecoder>();
    const onBytes = (senderPort: number, bytes: Buffer) => {
      const name = this.#cnxnNames.get(senderPort);
      if (name === undefined) return;
      let cutter = cutters.get(name);
      if (cutter === undefined) cutters.set(name, (cutter = new FrameDecoder(0x7fffffff)));
      this.#arrived(server, name, cutter, bytes);
    };
    await this.network.add(client, server, 'client', port, { onBytes });
  }

  /** A stopped server receives nothing: bytes count only while it runs. */
  #arrived(server: string, name: string, cutter: FrameDecoder, bytes: Buffer): void {
    const copy = Buffer.from(bytes);
    let frames = 0;
    try {
      cutter.feed(copy, 0, copy.length, () => {
        frames++;
        return true;
      });
    } catch {
      // Bytes without a frame belong to no request.
      return;
    }
    if (frames === 0 || this.servers.find((each) => each.name === server)?.paused === true) return;
    const { frameArrivals } = this.recording;
    const known = frameArrivals.get(name);
    if (known === undefined) frameArrivals.set(name, [this.clock.elapsedMs]);
    else known.push(this.clock.elapsedMs);
  }

  /** Others are reached through proxies, and the server itself directly. */
  #addressSeenFrom(sid: number, other: number, ports: ReadonlyMap<number, RealServer['options']['ports']>): string {
    const { quorum, election } = sid === other ? ports.get(sid)! : this.network.serverPorts(`server-${sid}`, `server-${other}`);
    return `127.0.0.1:${quorum}:${election}`;
  }

  // --- For clients

  clientNetwork(client: string): ClientMachine {
    const machine = new RealMachine(
      {
        clock: this.clock,
        recording: this.recording,
        proxyPort: (from, server) => this.network.find(from, server, 'client').port,
        nameCnxn: (localPort) => {
          const name = `127.0.0.1:${localPort}#${++this.#cnxns}`;
          this.#cnxnNames.set(localPort, name);
          return name;
        },
      },
      client,
    );
    this.#machines.push(machine);
    return machine;
  }

  link(a: string, b: string): { cut(): void; heal(): void } {
    const lanes = [this.network.direction(a, b), this.network.direction(b, a)];
    return {
      cut: () => {
        for (const lane of lanes) lane.isCut = true;
      },
      heal: () => this.network.heal(lanes),
    };
  }

  // --- For faults and for checks

  annotate(text: string): void {
    this.recording.annotations.push({ atMs: this.clock.elapsedMs, text });
  }

  serverProxies(): Proxy[] {
    return this.network.all.filter(({ options }) => options.purpose !== 'client');
  }

  async leader(): Promise<RealServer | undefined> {
    const modes = await Promise.all(this.servers.map(async (server) => ({ server, mode: await server.mode() })));
    return modes.find(({ mode }) => mode === 'leader')?.server;
  }

  async close(): Promise<void> {
    this.clock.stop();
    for (const machine of this.#machines) machine.close();
    for (const server of this.servers) {
      server.resume();
      await server.kill();
      server.options.disk.close();
    }
    this.network.close();
  }
}

function settingsOf({ tickMs, minSessionTimeoutMs, maxSessionTimeoutMs, settings }: RealWorldOptions): RealWorldOptions['settings'] {
  return {
    tickTime: tickMs,
    initLimit: 20,
    syncLimit: 5,
    minSessionTimeout: minSessionTimeoutMs,
    maxSessionTimeout: maxSessionTimeoutMs,
    extendedTypesEnabled: true,
    ...settings,
  };
}
