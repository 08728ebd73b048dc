/**
 * One seed's story. First clients work while everything that can go wrong does; then the world heals, and everything must come to rest;
 * then the server is asked for the whole tree, restarted, and asked again, also after it has lost its newest snapshots.
 */
import type { Millis } from '@tskeeper/protocol';
import { loseAll, keepAll, numberedFiles, type CrashChoice, SeededRandom } from '@tskeeper/runtime';
import type { Recording } from './recording.ts';
import type { ServerProcess } from './server-process.ts';
import { VirtualClient } from './virtual-client.ts';
import { folder, VirtualWorld } from './virtual-world.ts';
import { Workload } from './workload.ts';

const faultKinds = ['power', 'kill', 'stop', 'disk error', 'slow disk', 'pause', 'cut', 'move', 'sleep', 'wire'] as const;
type FaultKind = (typeof faultKinds)[number];

export interface Outcome {
  readonly seed: number;
  readonly recording: Recording;
  readonly world: VirtualWorld;
  /** How often each fault struck. */
  readonly struck: ReadonlyMap<string, number>;
}

/** Long enough for everything that waits for something, short enough to notice what waits for nothing. */
const healingMs = 30_000;

export async function runSeed(seed: number): Promise<Outcome> {
  const story = new Story(seed);
  await story.run();
  return { seed, recording: story.world.recording, world: story.world, struck: story.struck };
}

class Story {
  readonly world: VirtualWorld;
  readonly struck = new Map<string, number>();
  readonly #random: SeededRandom;
  readonly #workload: Workload;
  readonly #clients: VirtualClient[] = [];
  readonly #faults: readonly FaultKind[];
  readonly #faultIntervalMs: Millis;
  readonly #workIntervalMs: Millis;
  #healing = false;
  #slowUntilMs: Millis = 0;
  #diskErrorPlanned = false;
  /** Whose disk has failed it: it may say so at any later time. */
  #struckServer: ServerProcess | undefined;
  #bootPlanned = false;

  constructor(seed: number) {
    const random = (this.#random = new SeededRandom(seed));
    const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
    this.world = new VirtualWorld(seed, {
      options: {
        snapCount: 10 + random.below(90),
        snapSizeLimitBytes: pick(0, 0, 20_000),
        preAllocSizeBytes: pick(0, 512, 4096, 65_536),
        txnLogSizeLimitBytes: pick(0, 0, 1500, 6000),
        maxBatchSize: pick(1, 3, 1000),
        flushDelayMs: pick(0, 0, 0, 3),
        maxWriteQueuePollMs: pick(0, 1),
        serializeLastProcessedZxid: random.below(4) > 0,
        dataLogDir: '/data',
      },
      core: {
        closeSessionTxnEnabled: random.below(4) > 0,
        requestThrottleLimit: pick(0, 0, 0, 5),
        globalOutstandingLimit: pick(1000, 1000, 4),
      },
    });
    this.#faults = faultKinds.filter(() => random.below(2) === 0);
    this.#faultIntervalMs = 20 + random.below(500);
    this.#workIntervalMs = 10 + random.below(120);
    this.#workload = new Workload(random, {
      dataMax: pick(40, 300, 3000, 20_000),
      closeEvery: pick(0, 0, 30),
      writes: 30 + random.below(60),
    });
    const { world } = this;
    world.wire.mannersOf = () => ({ delayMs: this.#fraction(3) });
    world.diskDelayMs = () => (world.clock.elapsedMs < this.#slowUntilMs ? this.#fraction(300) : this.#fraction(1));
    world.onFailure = () => this.#onFailure();
  }

  #fraction(max: number): number {
    return this.#random.below(max * 64) / 64;
  }

  #note(kind: string): void {
    this.struck.set(kind, (this.struck.get(kind) ?? 0) + 1);
  }

  async run(): Promise<void> {
    const { world } = this;
    this.#boot();
    for (let index = 0; index < 2 + this.#random.below(4); index++) {
      const client = new VirtualClient(world, new SeededRandom(this.#random.uint32()), {
        name: `client ${index}`,
        address: `10.9.0.${index + 1}`,
        timeoutMs: 400 + this.#random.below(1200),
      });
      this.#clients.push(client);
      this.#work(client);
    }
    if (this.#faults.length > 0) this.#planFault();
    await world.run(1500 + this.#random.below(4000));

    this.#heal();
    const rested = await world.runUntil(() => this.#rests(), healingMs);
    if (!rested) {
      const waiting = this.#clients.filter((client) => !client.ready || client.outstandingCount > 0);
      this.#fault(`no rest ${healingMs} ms after the last fault: ${waiting.map(({ name }) => name).join(', ') || 'no server'}`);
      await world.readLog();
      return;
    }
    await this.#audit('auditor 1');
    for (const client of this.#clients) client.retire();
    // Long enough for every session to end.
    await world.run(4000);
    await this.#audit('auditor 2');
    await this.#restart();
    await this.#audit('auditor 3');
    await this.#restart(() => this.#loseSnapshots());
    await this.#audit('auditor 4');
    await world.stop();
    await world.readLog();
  }

  #fault(text: string): void {
    this.world.recording.faults.push(text);
  }

  // --- The server

  #boot(): void {
    const { world } = this;
    void this.#watchOver(world.boot());
  }

  async #watchOver(server: ServerProcess): Promise<void> {
    const { world } = this;
    const error = await server.started;
    if (error === undefined || world.server !== server) return;
    if (server !== this.#struckServer) this.#fault(`the server does not start: ${error.message}`);
    this.#clearDiskError();
    world.kill();
    this.#planBoot(10);
  }

  #planBoot(delayMs: Millis): void {
    if (this.#bootPlanned) return;
    this.#bootPlanned = true;
    const { clock } = this.world;
    clock.at(clock.elapsedMs + delayMs, 'boot', undefined, () => {
      this.#bootPlanned = false;
      if (this.world.server === undefined) this.#boot();
    });
  }

  #onFailure(): void {
    const { world } = this;
    if (world.server !== this.#struckServer) this.#fault(`the server has failed: ${world.server?.record.failure ?? ''}`);
    this.#note('failed');
    const { server } = world;
    // Whoever runs it takes a while to notice; by then it must not have said another word.
    world.clock.at(world.clock.elapsedMs + this.#fraction(100), 'end', undefined, () => {
      if (world.server !== server) return;
      this.#clearDiskError();
      if (this.#random.below(2) === 0) world.kill();
      else world.losePower(this.#survival());
      this.#planBoot(this.#fraction(50));
    });
  }

  #clearDiskError(): void {
    this.world.disk.fault = undefined;
    this.#diskErrorPlanned = false;
  }

  #survival(): CrashChoice {
    const random = this.#random;
    switch (random.below(4)) {
      case 0:
        return loseAll;
      case 1:
        return keepAll;
      case 2: {
        const share = random.below(100);
        return (item) => (random.below(100) < share ? keepAll(item, 0) : 0);
      }
      default:
        return (item) => (item.kind === 'bytes' ? random.below(item.length + 1) : random.below(2));
    }
  }

  // --- Clients

  #work(client: VirtualClient): void {
    const { clock } = this.world;
    clock.at(clock.elapsedMs + 1 + this.#random.below(this.#workIntervalMs * 2), 'work', undefined, () => {
      if (this.#healing) return;
      if (client.ready && client.outstandingCount < 12) this.#workload.burst(client);
      this.#work(client);
    });
  }

  #rests(): boolean {
    const { server } = this.world;
    return server?.serving === true && this.#clients.every((client) => client.ready && client.outstandingCount === 0);
  }

  // --- What goes wrong

  #planFault(): void {
    const { clock } = this.world;
    clock.at(clock.elapsedMs + 1 + this.#random.below(this.#faultIntervalMs * 2), 'fault', undefined, () => {
      if (this.#healing) return;
      this.#strike(this.#faults[this.#random.below(this.#faults.length)]!);
      this.#planFault();
    });
  }

  #strike(kind: FaultKind): void {
    const { world } = this;
    const random = this.#random;
    const { server } = world;
    const client = this.#clients[random.below(this.#clients.length)]!;
    this.#note(kind);
    switch (kind) {
      case 'power':
        if (server === undefined) return;
        world.losePower(this.#survival());
        this.#clearDiskError();
        this.#planBoot(this.#fraction(200));
        return;
      case 'kill':
        if (server === undefined) return;
        world.kill();
        this.#clearDiskError();
        this.#planBoot(this.#fraction(100));
        return;
      case 'stop':
        this.#stop(server);
        return;
      case 'disk error':
        this.#diskError();
        return;
      case 'slow disk':
        this.#slowUntilMs = world.clock.elapsedMs + random.below(800);
        return;
      case 'pause': {
        const ms = 1 + random.below(random.below(3) === 0 ? 1500 : 100);
        if (server === undefined || server.pausedUntilMs > world.clock.elapsedMs) return;
        world.recording.pausedMs += ms;
        server.pause(ms);
        return;
      }
      case 'cut':
        this.#cut(client);
        return;
      case 'move':
        client.moveOn();
        return;
      case 'sleep':
        client.sleep(random.below(2500));
        return;
      case 'wire':
        this.#harmWire(client);
        return;
      default:
        kind satisfies never;
    }
  }

  #stop(server: ServerProcess | undefined): void {
    const { world } = this;
    if (server?.runtime === undefined) return;
    void server.close().then(() =>
      world.clock.at(world.clock.elapsedMs + 5, 'stopped', server, () => {
        world.kill();
        this.#clearDiskError();
        this.#planBoot(this.#fraction(50));
      }),
    );
  }

  #diskError(): void {
    const { disk } = this.world;
    const random = this.#random;
    if (this.#diskErrorPlanned) return;
    this.#diskErrorPlanned = true;
    const from = disk.calls + random.below(30);
    const onlyLog = random.below(2) === 0;
    const code = random.below(2) === 0 ? 'EIO' : 'ENOSPC';
    const late = random.below(2) === 0;
    const share = random.below(3);
    let struck = false;
    disk.fault = (call) => {
      if (struck || call.index < from) return undefined;
      if (onlyLog && !/\/(new\.)?log\.[0-9a-f]+$/.test(call.path)) return undefined;
      struck = true;
      this.#struckServer = this.world.server;
      this.#note(`${code} of ${call.operation}`);
      return { code, late, written: share === 0 ? 0 : random.below(600) };
    };
  }

  #cut(client: VirtualClient): void {
    const random = this.#random;
    const { wire } = client;
    switch (random.below(4)) {
      case 0:
        client.reset();
        return;
      case 1:
        client.halfClose();
        return;
      case 2:
        wire?.forward.resetAfter(wire.forward.deliveredBytes + random.below(300));
        return;
      default:
        wire?.backward.resetAfter(wire.backward.deliveredBytes + random.below(300));
    }
  }

  #harmWire(client: VirtualClient): void {
    const { clock } = this.world;
    const random = this.#random;
    const { wire } = client;
    if (wire === undefined) return;
    const pipe = random.below(2) === 0 ? wire.forward : wire.backward;
    const { manners } = pipe;
    const before = { ...manners };
    switch (random.below(4)) {
      case 0:
        manners.delayMs = random.below(150);
        break;
      case 1:
        manners.pieceBytes = 1 + random.below(12);
        manners.pieceIntervalMs = this.#fraction(1);
        break;
      case 2:
        manners.windowBytes = random.below(2) * 17;
        break;
      default:
        pipe.hold();
    }
    pipe.changed();
    clock.at(clock.elapsedMs + random.below(1200), 'wire well', undefined, () => {
      Object.assign(manners, before);
      pipe.release();
      pipe.changed();
    });
  }

  #heal(): void {
    const { world } = this;
    this.#healing = true;
    this.#clearDiskError();
    this.#slowUntilMs = 0;
    for (const { forward, backward } of world.wire.cnxns) {
      for (const pipe of [forward, backward]) {
        Object.assign(pipe.manners, { delayMs: 1, windowBytes: 65_536, pieceBytes: Infinity, pieceIntervalMs: 0 });
        pipe.release();
        pipe.changed();
      }
    }
    if (world.server === undefined) this.#planBoot(1);
  }

  // --- The proof

  /** Asks for the whole tree; what came is compared with the model like every other read. */
  async #audit(name: string): Promise<void> {
    const { world } = this;
    const auditor = new VirtualClient(world, new SeededRandom(this.#random.uint32()), {
      name,
      address: `10.8.0.${name.at(-1)}`,
      timeoutMs: 4000,
    });
    const isAnswered = () => world.runUntil(() => auditor.ready && auditor.outstandingCount === 0, 10_000);
    if (!(await isAnswered())) {
      this.#fault(`${name} cannot connect`);
      return;
    }
    const waiting = ['/'];
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      auditor.send('getData', { path, watch: false });
      const listing = auditor.send('getChildren2', { path, watch: false });
      if (!(await isAnswered()) || listing?.reply === undefined) {
        this.#fault(`${name} got no answer about ${path}`);
        return;
      }
      const { children } = (listing.reply.body ?? { children: [] }) as { readonly children: readonly string[] };
      for (const child of children) waiting.push(path === '/' ? `/${child}` : `${path}/${child}`);
    }
    auditor.send('closeSession', undefined);
    await world.run(50);
    auditor.retire();
  }

  async #restart(meanwhile: () => void = () => undefined): Promise<void> {
    await this.world.stop();
    meanwhile();
    await this.world.start();
  }

  /** Down to one of them, so that a start has to rely on an older one and on more of the log. */
  #loseSnapshots(): void {
    const { disk } = this.world;
    const names = disk.files().map((path) => path.slice(folder.length + 1));
    const snapshots = numberedFiles(names, 'snapshot');
    const kept = this.#random.below(snapshots.length);
    for (const { name } of snapshots.slice(kept + 1)) disk.lose(`${folder}/${name}`);
  }
}
