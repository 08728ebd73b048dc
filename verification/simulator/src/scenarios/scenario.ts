/**
 * A named run that is the same each time: a bug from the past, or an error so easily made that it
 * deserves a name. A seed is valid only for its commit; a scenario says what happens and stays
 * valid.
 */
import type { CoreOptions } from '@tskeeper/core';
import type { OperationName, RequestOf } from '@tskeeper/protocol';
import { type RuntimeOptions, SeededRandom } from '@tskeeper/runtime';
import { RawClient, type RawClientOptions } from '../clients/raw-client.ts';
import { LibraryClient, type LibraryClientOptions } from '../clients/library-client.ts';
import type { Actor } from '../clients/actor.ts';
import type { Request } from '../record/recording.ts';
import { FinalChecks } from '../run/final-checks.ts';
import { isIdle, Run } from '../run/run.ts';
import type { Outcome } from '../run/seed-run.ts';
import { snappy } from '../world/snappy.ts';
import type { ServerHost } from '../world/server-host.ts';
import { VirtualWorld, type WorldOptions } from '../world/virtual-world.ts';

export interface Scenario {
  /** What happens, in one sentence. */
  readonly description: string;
  run(): Promise<Outcome>;
}

const waitMaxMs = 10_000;

/** Number and setup of servers. */
export type Ensemble = Pick<WorldOptions, 'servers' | 'ensemble'>;

export type ScenarioEnsemble = NonNullable<WorldOptions['ensemble']> & Pick<WorldOptions, 'servers' | 'core' | 'options'>;

/** Longer than any scenario: links that are cut recover when the scenario ends. */
const cutMs = 60_000;

/** A world for a scenario, which lets one thing happen after the other. */
export class ScenarioRun {
  readonly world: VirtualWorld;
  readonly run: Run;
  readonly #random: SeededRandom;
  #clients = 0;

  constructor(seed: number, core: Partial<CoreOptions>, options: Partial<RuntimeOptions>, ensemble: Ensemble) {
    this.world = new VirtualWorld(seed, { core: { extendedTypesEnabled: true, ...core }, options, snappy, ...ensemble });
    this.#random = new SeededRandom(seed);
    this.run = new Run(this.world, this.#random);
  }

  /** Runs a scenario, verifies the result, and returns it. */
  static async execute(
    seed: number,
    script: (scenario: ScenarioRun) => Promise<void>,
    core: Partial<CoreOptions> = {},
    options: Partial<RuntimeOptions> = {},
    ensemble: Ensemble = {},
  ): Promise<Outcome> {
    const scenario = new ScenarioRun(seed, core, options, ensemble);
    for (const server of scenario.world.servers) await server.start();
    await scenario.waitFor('every server serves', () => scenario.run.allServing);
    await script(scenario);
    scenario.run.heal();
    const { world, run } = scenario;
    const rests = await world.runUntil(() => run.allServing && run.actors.every(isIdle), waitMaxMs);
    if (!rests) run.reportViolation('the scenario does not become quiet');
    await new FinalChecks(run, scenario.#random).run(rests);
    return { seed, recording: world.recording, world, marks: run.marks };
  }

  /** Runs a scenario with an ensemble, by default of three voters. */
  static async executeEnsemble(
    seed: number,
    script: (scenario: ScenarioRun) => Promise<void>,
    ensemble: ScenarioEnsemble = {},
  ): Promise<Outcome> {
    const { servers = 3, core, options, ...setting } = ensemble;
    return await ScenarioRun.execute(seed, script, core, options, { servers, ensemble: setting });
  }

  get leader(): ServerHost {
    const { leader } = this.run;
    if (leader === undefined) throw new Error('no server leads');
    return leader;
  }

  get followers(): readonly ServerHost[] {
    return this.world.servers.filter(({ role }) => role === 'follower');
  }

  /** Cuts the links between these servers and those. */
  cutLinks(these: readonly ServerHost[], those: readonly ServerHost[]): void {
    this.run.cutLinks(these, those, cutMs);
  }

  /** Adds a raw client that is connected. */
  async rawClient(options: Partial<RawClientOptions> = {}): Promise<RawClient> {
    const { name, address } = this.#nextClient();
    const random = new SeededRandom(this.#random.uint32());
    return await this.#ready(new RawClient(this.world, random, { name, address, timeoutMs: 2000, ...options }));
  }

  async libraryClient(options: Partial<LibraryClientOptions> = {}): Promise<LibraryClient> {
    const { name, address } = this.#nextClient();
    const random = new SeededRandom(this.#random.uint32());
    return await this.#ready(new LibraryClient(this.world, random, { name, address, timeoutMs: 2000, ...options }));
  }

  #nextClient(): { readonly name: string; readonly address: string } {
    const number = ++this.#clients;
    return { name: `client-${number}`, address: `10.9.0.${number}` };
  }

  async #ready<T extends Actor>(actor: T): Promise<T> {
    this.run.actors.push(actor);
    await this.waitFor(`${actor.name} is connected`, () => actor.ready);
    return actor;
  }

  /**
   * Waits until the condition holds. A timeout is an error of the scenario, or a bug that it finds.
   */
  async waitFor(what: string, isSo: () => boolean): Promise<void> {
    if (!(await this.world.runUntil(isSo, waitMaxMs))) this.run.reportViolation(`timed out after ${waitMaxMs} ms waiting until ${what}`);
  }

  /** Waits until a client whose server ended is connected to the new one. */
  async waitForReconnect(actor: Actor): Promise<void> {
    // The client takes a moment to notice that the old connection is closed.
    await this.world.run(20);
    await this.waitFor(`${actor.name} is back`, () => isIdle(actor));
  }

  /** Sends a request and waits for the reply. */
  async request<Name extends OperationName>(client: RawClient, name: Name, record: RequestOf<Name>): Promise<Request | undefined> {
    const request = client.send(name, record);
    await this.waitFor(`${name} is answered`, () => request?.reply !== undefined);
    return request;
  }
}
