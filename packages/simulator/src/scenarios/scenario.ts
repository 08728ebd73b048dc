/**
 * A named run that is the same each time: a bug from the past, or an error so easily made that it
 * deserves a name. A seed is valid only for its commit; a scenario says what happens and stays
 * valid.
 */
import type { CoreOptions } from '@tskeeper/core';
import type { OperationName, RequestOf } from '@tskeeper/protocol';
import { type RuntimeOptions, SeededRandom } from '@tskeeper/runtime';
import { RawClient, type RawClientOptions } from '../clients/raw-client.ts';
import { RealClient, type RealClientOptions } from '../clients/real-client.ts';
import type { Actor } from '../clients/actor.ts';
import type { Request } from '../record/recording.ts';
import { Proof } from '../story/proof.ts';
import { isIdle, Stage } from '../story/stage.ts';
import type { Outcome } from '../story/story.ts';
import { snappy } from '../world/snappy.ts';
import type { ServerHost } from '../world/server-host.ts';
import { VirtualWorld, type WorldOptions } from '../world/virtual-world.ts';

export interface Scenario {
  /** What happens, in one sentence. */
  readonly story: string;
  run(): Promise<Outcome>;
}

const waitMaxMs = 10_000;

/** Number and setup of servers. */
export type Ensemble = Pick<WorldOptions, 'servers' | 'ensemble'>;

export type EnsembleSetting = NonNullable<WorldOptions['ensemble']> & Pick<WorldOptions, 'servers' | 'core' | 'options'>;

/** Longer than any scenario: links that are cut recover when the scenario ends. */
const cutMs = 60_000;

/** A world for a scenario, which lets one thing happen after the other. */
export class Scene {
  readonly world: VirtualWorld;
  readonly stage: Stage;
  readonly #random: SeededRandom;
  #clients = 0;

  constructor(seed: number, core: Partial<CoreOptions>, options: Partial<RuntimeOptions>, ensemble: Ensemble) {
    this.world = new VirtualWorld(seed, { core: { extendedTypesEnabled: true, ...core }, options, snappy, ...ensemble });
    this.#random = new SeededRandom(seed);
    this.stage = new Stage(this.world, this.#random);
  }

  /** Runs a scenario, verifies the result, and returns it. */
  static async play(
    seed: number,
    story: (scene: Scene) => Promise<void>,
    core: Partial<CoreOptions> = {},
    options: Partial<RuntimeOptions> = {},
    ensemble: Ensemble = {},
  ): Promise<Outcome> {
    const scene = new Scene(seed, core, options, ensemble);
    for (const server of scene.world.servers) await server.start();
    await scene.until('every server serves', () => scene.stage.isWhole);
    await story(scene);
    scene.stage.heal();
    const { world, stage } = scene;
    const rests = await world.runUntil(() => stage.isWhole && stage.actors.every(isIdle), waitMaxMs);
    if (!rests) stage.complain('the scenario does not become quiet');
    await new Proof(stage, scene.#random).run(rests);
    return { seed, recording: world.recording, world, marks: stage.marks };
  }

  /** Runs a scenario with an ensemble, by default of three voters. */
  static async playEnsemble(seed: number, story: (scene: Scene) => Promise<void>, ensemble: EnsembleSetting = {}): Promise<Outcome> {
    const { servers = 3, core, options, ...setting } = ensemble;
    return await Scene.play(seed, story, core, options, { servers, ensemble: setting });
  }

  get leader(): ServerHost {
    const { leader } = this.stage;
    if (leader === undefined) throw new Error('no server leads');
    return leader;
  }

  get followers(): readonly ServerHost[] {
    return this.world.servers.filter(({ role }) => role === 'follower');
  }

  /** Cuts the links between these servers and those. */
  cut(these: readonly ServerHost[], those: readonly ServerHost[]): void {
    this.stage.cutBetween(these, those, cutMs);
  }

  /** Adds a raw client that is connected. */
  async raw(options: Partial<RawClientOptions> = {}): Promise<RawClient> {
    const { name, address } = this.#nextClient();
    const random = new SeededRandom(this.#random.uint32());
    return await this.#ready(new RawClient(this.world, random, { name, address, timeoutMs: 2000, ...options }));
  }

  async real(options: Partial<RealClientOptions> = {}): Promise<RealClient> {
    const { name, address } = this.#nextClient();
    const random = new SeededRandom(this.#random.uint32());
    return await this.#ready(new RealClient(this.world, random, { name, address, timeoutMs: 2000, ...options }));
  }

  #nextClient(): { readonly name: string; readonly address: string } {
    const number = ++this.#clients;
    return { name: `client-${number}`, address: `10.9.0.${number}` };
  }

  async #ready<T extends Actor>(actor: T): Promise<T> {
    this.stage.actors.push(actor);
    await this.until(`${actor.name} is connected`, () => actor.ready);
    return actor;
  }

  /**
   * Waits until the condition holds. A timeout is an error of the scenario, or a bug that it finds.
   */
  async until(what: string, isSo: () => boolean): Promise<void> {
    if (!(await this.world.runUntil(isSo, waitMaxMs))) this.stage.complain(`timed out after ${waitMaxMs} ms waiting until ${what}`);
  }

  /** Waits until a client whose server ended is connected to the new one. */
  async comesBack(actor: Actor): Promise<void> {
    // The client takes a moment to notice that the old connection is closed.
    await this.world.run(20);
    await this.until(`${actor.name} is back`, () => isIdle(actor));
  }

  /** Sends a request and waits for the reply. */
  async ask<Name extends OperationName>(client: RawClient, name: Name, record: RequestOf<Name>): Promise<Request | undefined> {
    const request = client.send(name, record);
    await this.until(`${name} is answered`, () => request?.reply !== undefined);
    return request;
  }
}
