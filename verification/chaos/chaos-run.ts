/**
 * One seed's episode with real processes, in the form of the simulator's stories: clients work
 * while faults occur; then all faults end, and within time limits every client must be served; then
 * all servers are killed at once, restarted, and read back one by one; and the checkers examine the
 * recording.
 *
 * The seed decides which faults occur and when, but not how the machine reacts: an episode cannot
 * be repeated by its seed; its recording explains it.
 */
import path from 'node:path';
import { type Actor, check, type Finding, RawClient } from '@tskeeper/simulator';
import { type WorkloadOptions, LibraryClient, Workload } from '@tskeeper/simulator/internal';
import { openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { readLogs, readSnapshots } from './evidence.ts';
import { type FaultName, faults } from './faults.ts';
import { connectTo, closeClient, appendLogOf, appendLogPath, AppendLogWriter, readBack } from './append-log.ts';
import { LogArchive } from './log-archive.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@tskeeper/harness';
import { RealWorld } from './real-world.ts';
import { type KillSchedule, shuffled, FaultContext } from './fault-context.ts';

export interface ChaosRunOptions {
  readonly seed: number;
  readonly folder: string;
  readonly servers: number;
  readonly observers: number;
  readonly faults: readonly FaultName[];
  /** Number of faults. */
  readonly faultCount: number;
  readonly kills: KillSchedule;
  readonly diskFaults: string;
}

export interface ChaosRunReport {
  readonly seed: number;
  readonly findings: readonly Finding[];
  readonly recording: RealWorld['recording'];
  readonly marks: ReadonlyMap<string, number>;
  readonly sigkills: number;
  /** Acknowledged lines of the ledger; each was read from every server. */
  readonly acknowledged: number;
  readonly readBack: number;
  readonly txns: number;
  /** Seconds with faults, of the proof, and of the checks. */
  readonly seconds: readonly [number, number, number];
}

/** Long compared with any wait of a server, with many processes on few processors. */
const quiescenceMaxMs = 30_000;
/** Longer than all faults together can keep a client from being served. */
const listSessionMs = 30_000;
/** Longer than the shortest session takes to expire, with a few elections in between. */
const closeMaxMs = 15_000;
/**
 * Short, so that servers drop each other in less than two seconds; and longer than a busy machine
 * delays a process.
 */
const tickMs = 300;
const outstandingMax = 12;
const workloadOptions: WorkloadOptions = {
  dataBytesMax: 3000,
  closeEvery: 60,
  writePercent: 50,
  usesAcls: true,
  usesQuotas: true,
  usesPages: true,
  usesKeeperExtensions: false,
  handsOverEphemerals: false,
};
const snapshotsChecked = 1;

export async function runChaos(options: ChaosRunOptions): Promise<ChaosRunReport> {
  const random = new SeededRandom(options.seed);
  const appendLogs = ['ledger-1', 'ledger-2'];
  const workers = ['real-1', 'real-2', 'raw-1', 'raw-2'];
  const servers = Array.from({ length: options.servers }, (_, index) => `server-${index + 1}`);
  const readers = servers.flatMap((server) => [`reader-1 of ${server}`, `reader-2 of ${server}`]);
  const world = await RealWorld.make({
    folder: options.folder,
    servers: options.servers,
    observers: options.observers,
    clients: ['first', ...appendLogs, ...workers, ...readers],
    tickMs,
    minSessionTimeoutMs: 2 * tickMs,
    maxSessionTimeoutMs: listSessionMs,
    diskFaults: options.diskFaults,
    settings: {
      snapCount: 300 + random.below(2000),
      preAllocSize: 64,
      'autopurge.purgeInterval': 0,
      commitLogCount: 500,
      'znode.container.checkIntervalMs': 500,
    },
  });
  const chaosRun = new ChaosRun(world, random, options);
  try {
    return await chaosRun.run(appendLogs, workers);
  } finally {
    await world.close();
  }
}

class ChaosRun {
  readonly #world: RealWorld;
  readonly #random: SeededRandom;
  readonly #options: ChaosRunOptions;
  readonly #faultContext: FaultContext;
  readonly #workload: Workload;
  readonly #logArchive: LogArchive;
  #workloadEnded = false;

  constructor(world: RealWorld, random: SeededRandom, options: ChaosRunOptions) {
    this.#world = world;
    this.#random = random;
    this.#options = options;
    this.#faultContext = new FaultContext(world, random, options.kills);
    this.#workload = new Workload(random, workloadOptions);
    this.#logArchive = new LogArchive(world.servers, path.join(options.folder, 'kept'));
  }

  async run(appendLogNames: readonly string[], workerNames: readonly string[]): Promise<ChaosRunReport> {
    const begun = performance.now();
    const world = this.#world;
    const { recording } = world;
    await this.#begin();
    const appendLogs = appendLogNames.map(
      (name) => new AppendLogWriter(world, this.#newRandom(), { name, address: '127.0.0.1', timeoutMs: listSessionMs }),
    );
    const workers = workerNames.map((name) => this.#worker(name));
    this.#faultContext.actors.push(...appendLogs, ...workers);
    for (const appendLog of appendLogs) appendLog.begin(world);
    for (const worker of workers) this.#scheduleWork(worker);
    await this.#injectFaults();
    const troubled = performance.now();

    this.#workloadEnded = true;
    for (const appendLog of appendLogs) appendLog.stop();
    await this.#faultContext.heal();
    let asked = 0;
    if (await this.#untilQuiescent()) {
      asked += await this.#readAll('reader-1');
      await this.#compareDigests();
      for (const appendLog of appendLogs)
        if (appendLog.lostSessions.length > 0) recording.violations.push(`${appendLog.name} was alive, and its session has expired`);
      await this.#closeSessions();
      await Promise.all(world.servers.map((server) => server.kill()));
      await this.#faultContext.heal();
      await this.#untilAllServing();
      asked += await this.#readAll('reader-2');
    }
    await this.#untilConverged();
    await this.#compareDigests();
    const sigkills = world.servers.reduce((sum, { kills }) => sum + kills, 0);
    for (const server of world.servers) await server.kill();
    recording.endedMs = world.clock.elapsedMs;
    await this.#logArchive.stop();
    const proven = performance.now();
    await readLogs(world, this.#logArchive.logSets);
    await readSnapshots(world, { extendedTypesEnabled: true }, this.#newRandom(), snapshotsChecked);
    const findings = check(recording);
    return {
      seed: this.#options.seed,
      findings,
      recording,
      marks: this.#faultContext.marks,
      sigkills,
      acknowledged: appendLogOf(recording).acknowledged.size,
      readBack: asked,
      txns: recording.log.length,
      seconds: [(troubled - begun) / 1000, (proven - troubled) / 1000, (performance.now() - proven) / 1000],
    };
  }

  #newRandom(): SeededRandom {
    return new SeededRandom(this.#random.uint32());
  }

  async #begin(): Promise<void> {
    const world = this.#world;
    await this.#logArchive.start();
    for (const server of world.servers) await server.start();
    if (!(await this.#untilAllServing()))
      throw new Error(`the servers do not form an ensemble:\n${world.servers.map((each) => each.logTail()).join('\n')}`);
    const first = await connectTo(world, 'server-1', 'first', this.#newRandom());
    if (first === undefined) throw new Error(`no server accepts a session:\n${world.servers[0]!.logTail()}`);
    const made = first.send('create', { path: appendLogPath, data: null, acl: openAcl, flags: 0 });
    if (!(await eventually(() => made?.reply !== undefined, quiescenceMaxMs))) throw new Error('the first write is not answered');
    await closeClient(first);
  }

  #worker(name: string): Actor {
    const credentials = [undefined, 'alice:secret', 'bob:pw'][this.#random.below(3)];
    // So short that they may expire while their links are blocked; and their ephemeral znodes are
    // deleted soon.
    const timeoutMs = 1000 + this.#random.below(2000);
    const options = { name, address: '127.0.0.1', timeoutMs, credentials };
    if (name.startsWith('real')) return new LibraryClient(this.#world, this.#newRandom(), options);
    return new RawClient(this.#world, this.#newRandom(), { ...options, restoresWatches: this.#random.below(3) > 0 });
  }

  #scheduleWork(actor: Actor): void {
    this.#world.clock.after(5 + this.#random.below(60), () => {
      if (this.#workloadEnded) return;
      if (actor.acceptsRequests && actor.outstandingCount < outstandingMax) this.#workload.burst(actor);
      this.#scheduleWork(actor);
    });
  }

  async #injectFaults(): Promise<void> {
    const { faultCount, faults: names } = this.#options;
    let remaining: FaultName[] = [];
    await delay(300);
    for (let injected = 0; injected < faultCount; injected++) {
      if (remaining.length === 0) remaining = shuffled(names, this.#random);
      const name = remaining.pop()!;
      this.#faultContext.hitMark(`fault ${name}`);
      await faults[name].inject(this.#faultContext);
      // Some faults overlap with others, and some start after servers have recovered and served
      // requests.
      if (this.#random.below(3) > 0) {
        await this.#untilAllServing(4000);
        await delay(this.#faultContext.drawBetween(50, 400));
      } else await delay(this.#faultContext.drawBetween(20, 500));
    }
  }

  /** Every server serves, and one of them leads. */
  #untilAllServing(atMostMs = quiescenceMaxMs): Promise<boolean> {
    return eventually(async () => {
      const modes = await Promise.all(this.#world.servers.map((server) => server.mode()));
      if (modes.includes(undefined)) return false;
      return this.#world.servers.length === 1 || modes.filter((mode) => mode === 'leader').length === 1;
    }, atMostMs);
  }

  /** All servers have the same zxid: pending packets have arrived. */
  async #untilConverged(): Promise<void> {
    const { servers, recording } = this.#world;
    const zxids = () => Promise.all(servers.map(async (server) => /^Zxid: (\w+)$/m.exec(await server.ask('srvr', 2000))?.[1]));
    if (await eventually(async () => new Set(await zxids()).size === 1, quiescenceMaxMs)) return;
    recording.violations.push(`the servers do not reach the same zxid: ${(await zxids()).join(', ')}`);
  }

  /**
   * Servers remember the digest of the tree at every 128th txn; two servers must have the same one.
   */
  async #compareDigests(): Promise<void> {
    const { servers, recording } = this.#world;
    const known = new Map<string, { readonly digest: string; readonly server: string }>();
    for (const server of servers) {
      for (const line of (await server.ask('hash', 5000)).trim().split('\n')) {
        const [zxid, digest] = line.split(': ');
        if (zxid === undefined || digest === undefined) continue;
        const other = known.get(zxid);
        if (other === undefined) known.set(zxid, { digest, server: server.name });
        else if (other.digest !== digest) {
          recording.violations.push(
            `at ${zxid} the digest of the tree is ${digest} on ${server.name} and ${other.digest} on ${other.server}`,
          );
        } else this.#faultContext.hitMark('a digest was the same on two servers');
      }
    }
  }

  /** After all faults: every client is served, and every request is answered. */
  async #untilQuiescent(): Promise<boolean> {
    const { recording } = this.#world;
    const { actors } = this.#faultContext;
    if (!(await this.#untilAllServing())) {
      const modes = await Promise.all(
        this.#world.servers.map(async (server) => `${server.name} ${(await server.mode()) ?? 'does not serve'}`),
      );
      recording.violations.push(`not recovered ${quiescenceMaxMs} ms after the last fault: ${modes.join(', ')}`);
      return false;
    }
    const idle = () => actors.every((actor) => actor.ready && actor.outstandingCount === 0);
    if (!(await eventually(idle, quiescenceMaxMs))) {
      const waiting = actors
        .filter((actor) => !actor.ready || actor.outstandingCount > 0)
        .map(({ name, ready, outstandingCount }) => `${name} (${ready ? `${outstandingCount} unanswered` : 'no session'})`);
      recording.violations.push(`not recovered ${quiescenceMaxMs} ms after the last fault: ${waiting.join(', ')}`);
      return false;
    }
    for (const actor of actors) actor.submit({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
    if (await eventually(idle, quiescenceMaxMs)) return true;
    recording.violations.push('a write is not answered, although all faults have ended');
    return false;
  }

  /** All clients leave, and no server may keep anything of them. */
  async #closeSessions(): Promise<void> {
    const { servers, recording } = this.#world;
    for (const actor of this.#faultContext.actors) actor.submit({ name: 'closeSession', record: undefined });
    for (const actor of this.#faultContext.actors) actor.abandon();
    await eventually(
      async () => (await Promise.all(servers.map((server) => server.metric('zk_global_sessions')))).every((count) => count === 0),
      closeMaxMs,
    );
    for (const server of servers) {
      recording.leftovers.push({
        server: server.name,
        watches: await server.metric('zk_watch_count'),
        sessions: await server.metric('zk_global_sessions'),
        // The connections of four letter words are listed as well.
        cnxns: (await server.ask('cons', 5000)).split('\n').filter((line) => /sid=0x/.test(line)).length,
        ephemerals: await server.metric('zk_ephemerals_count'),
        outstanding: await server.metric('zk_outstanding_requests'),
      });
    }
  }

  async #readAll(reader: string): Promise<number> {
    let asked = 0;
    for (const server of this.#world.servers) {
      asked += await readBack(this.#world, server.name, `${reader} of ${server.name}`, this.#newRandom());
    }
    return asked;
  }
}
