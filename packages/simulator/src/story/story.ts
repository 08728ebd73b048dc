/**
 * One seed's story. First clients work while everything that can go wrong does; then the world heals, and everything must come to rest and
 * go on; then the server is asked for the whole tree, restarted, and asked again, also after it has lost its newest snapshots.
 */
import type { Millis } from '@tskeeper/protocol';
import { numberedFiles, SeededRandom } from '@tskeeper/runtime';
import type { Actor } from '../clients/actor.ts';
import { RawClient } from '../clients/raw-client.ts';
import { RealClient } from '../clients/real-client.ts';
import { Workload } from '../clients/workload.ts';
import { faults } from '../faults/faults.ts';
import type { Recording } from '../record/recording.ts';
import type { ServerHost } from '../world/server-host.ts';
import { snappy } from '../world/snappy.ts';
import { VirtualWorld } from '../world/virtual-world.ts';
import { plant } from './plant.ts';
import { snapshotStates } from './snapshot-states.ts';
import { Stage } from './stage.ts';
import { type ClientPlan, drawPlan, type Plan } from './swarm.ts';

export interface Outcome {
  readonly seed: number;
  readonly recording: Recording;
  readonly world: VirtualWorld;
  /** How often each fault struck, and what else was noted. */
  readonly marks: ReadonlyMap<string, number>;
}

/** Long enough for everything that waits for something, short enough to notice what waits for nothing. */
const healingMs = 30_000;
const progressMs = 5000;
const outstandingMax = 12;
const snapshotsChecked = 4;

export interface RunOptions {
  readonly onEvent?: ((what: string, elapsedMs: Millis) => void) | undefined;
}

/** Runs a seed to its end. Whether it went well, `check` says. */
export async function runSeed(seed: number, { onEvent }: RunOptions = {}): Promise<Outcome> {
  const story = new Story(seed);
  story.world.onEvent = onEvent;
  await story.run();
  return { seed, recording: story.world.recording, world: story.world, marks: story.stage.marks };
}

class Story {
  readonly world: VirtualWorld;
  readonly stage: Stage;
  readonly #random: SeededRandom;
  readonly #plan: Plan;
  readonly #workload: Workload;
  #healing = false;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    const plan = (this.#plan = drawPlan(this.#random));
    this.world = new VirtualWorld(seed, {
      servers: plan.servers,
      core: plan.core,
      options: plan.options,
      snappy: plan.usesSnappy ? snappy : undefined,
    });
    this.stage = new Stage(this.world, this.#random);
    this.#workload = new Workload(this.#random, plan.habits);
  }

  async run(): Promise<void> {
    const { world, stage } = this;
    await this.#safetyPhase();
    if (await this.#livenessPhase()) {
      await this.#audit('auditor 1');
      for (const actor of stage.actors) actor.retire();
      // Long enough for every session to end.
      await world.run(world.server.core.maxSessionTimeoutMs + 4 * world.server.core.tickTimeMs);
      await this.#audit('auditor 2');
      this.#lookAtRest();
      await this.#restart();
      await this.#audit('auditor 3');
      await this.#restart((server) => this.#loseSnapshots(server));
      await this.#audit('auditor 4');
      for (const server of world.servers) await server.stop();
    }
    await world.readLogs();
    for (const server of world.servers) {
      world.recording.snapshots.push(...(await snapshotStates(world, server, snappy, this.#random, snapshotsChecked)));
    }
  }

  async #safetyPhase(): Promise<void> {
    const { world, stage } = this;
    const { beginning, clients, safetyMs } = this.#plan;
    if (beginning !== undefined) for (const server of world.servers) await plant(world, server, beginning);
    for (const server of world.servers) stage.boot(server);
    for (const [index, client] of clients.entries()) {
      const actor = this.#newActor(`client-${index + 1}`, `10.9.${index & 1}.${index + 1}`, client);
      stage.actors.push(actor);
      this.#work(actor);
    }
    if (this.#plan.faults.length > 0) this.#planFault();
    await world.run(safetyMs);
  }

  #newActor(name: string, address: string, { kind, timeoutMs, credentials, restoresWatches }: ClientPlan): Actor {
    const random = new SeededRandom(this.#random.uint32());
    if (kind === 'real') return new RealClient(this.world, random, { name, address, timeoutMs, credentials });
    return new RawClient(this.world, random, { name, address, timeoutMs, credentials, restoresWatches });
  }

  /** All is well again: within bounds everyone is served, and everyone gets something done. */
  async #livenessPhase(): Promise<boolean> {
    const { world, stage } = this;
    this.#healing = true;
    stage.heal();
    const rests = () => world.servers.every(({ process }) => process?.serving === true) && stage.actors.every(isIdle);
    if (!(await world.runUntil(rests, healingMs))) {
      const waiting = stage.actors.filter((actor) => !isIdle(actor)).map(({ name }) => name);
      stage.complain(`no rest ${healingMs} ms after the last fault: ${waiting.join(', ') || 'no server'}`);
      return false;
    }
    for (const actor of stage.actors) actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(actor.name), version: -1 } });
    if (await world.runUntil(rests, progressMs)) return true;
    stage.complain(`a write is not answered within ${progressMs} ms, though nothing is wrong any more`);
    return false;
  }

  #work(actor: Actor): void {
    this.stage.after(1 + this.#random.below(this.#plan.workIntervalMs * 2), 'work', undefined, () => {
      if (this.#healing) return;
      if (actor.ready && actor.outstandingCount < outstandingMax) this.#workload.burst(actor);
      this.#work(actor);
    });
  }

  #planFault(): void {
    const { faults: names, faultIntervalMs } = this.#plan;
    this.stage.after(1 + this.#random.below(faultIntervalMs * 2), 'fault', undefined, () => {
      if (this.#healing) return;
      const name = names[this.#random.below(names.length)]!;
      this.stage.note(`fault ${name}`);
      faults[name].strike(this.stage, this.#random);
      this.#planFault();
    });
  }

  // --- The proof

  /** Asks for the whole tree; what came is compared with the model like every other read. */
  async #audit(name: string): Promise<void> {
    const { world, stage } = this;
    const auditor = new RawClient(world, new SeededRandom(this.#random.uint32()), {
      name,
      address: `10.8.0.${name.at(-1)}`,
      timeoutMs: 4000,
      credentials: 'alice:secret',
    });
    const isAnswered = () => world.runUntil(() => isIdle(auditor), 10_000);
    if (!(await isAnswered())) {
      stage.complain(`${name} cannot connect`);
      return;
    }
    const waiting = ['/'];
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      auditor.send('getData', { path, watch: false });
      auditor.send('getACL', { path });
      const listing = auditor.send('getChildren2', { path, watch: false });
      if (!(await isAnswered()) || listing?.reply === undefined) {
        stage.complain(`${name} got no answer about ${path}`);
        return;
      }
      const { children } = (listing.reply.body ?? { children: [] }) as { readonly children: readonly string[] };
      for (const child of children) waiting.push(path === '/' ? `/${child}` : `${path}/${child}`);
    }
    auditor.send('closeSession', undefined);
    auditor.retire();
    await world.run(50);
  }

  /** Nobody is there any more, so nothing of anybody may be. */
  #lookAtRest(): void {
    for (const { name, process } of this.world.servers) {
      const inspect = process?.runtime?.inspect;
      if (inspect === undefined) continue;
      this.world.recording.resting.push({
        server: name,
        watches: inspect.watchCount(),
        sessions: inspect.sessionCount(),
        cnxns: inspect.cnxnCount(),
        ephemerals: inspect.ephemeralCount(),
        outstanding: inspect.outstandingRequests(),
      });
    }
  }

  async #restart(meanwhile: (server: ServerHost) => void = () => undefined): Promise<void> {
    for (const server of this.world.servers) {
      await server.stop();
      meanwhile(server);
      await server.start();
    }
  }

  /** Down to one of them, so that a start has to rely on an older one and on more of the log. */
  #loseSnapshots(server: ServerHost): void {
    const { disk, snapshotFolder } = server;
    const inFolder = disk.files().filter((path) => path.startsWith(`${snapshotFolder}/`));
    const snapshots = numberedFiles(
      inFolder.map((path) => path.slice(snapshotFolder.length + 1)),
      'snapshot',
    );
    const kept = this.#random.below(snapshots.length);
    for (const { name } of snapshots.slice(kept + 1)) {
      server.removed.set(`${snapshotFolder}/${name}`, disk.contents(`${snapshotFolder}/${name}`));
      disk.lose(`${snapshotFolder}/${name}`);
    }
  }
}

function isIdle(actor: Actor): boolean {
  return actor.ready && actor.outstandingCount === 0;
}
