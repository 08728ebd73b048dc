/**
 * Reconfigurations of mixed ensembles, while clients write. In each cycle a seed chooses what is
 * asked, at which server, and which server is killed meanwhile; it may come back as another kind,
 * on its own folder and its own rewritten zoo.cfg. After each cycle all servers must show the
 * configuration that was asked for, and clients must have gone on; at the end no acknowledged write
 * is lost, no session has expired, and the trees are equal.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, OpCode, parseQuorumConfig, type Sid } from '@tskeeper/protocol';
import { RawClient, record, type ServerKind, until } from '@tskeeper/harness';
import { Random } from '../random.ts';
import type { Report } from '../report.ts';
import { compareServers } from './agreement.ts';
import { createEnsemble } from './ensemble.ts';
import { Load } from './load.ts';

export interface ReconfigurationSettings {
  /** Of servers 1 to 5. Servers 1 to 3 are the first members. */
  readonly kinds: readonly ServerKind[];
  /** A killed server may come back as any of these, except one of 3.8.0, which stays what it is. */
  readonly returnAs: readonly ServerKind[];
  readonly cycles: number;
  readonly seed: number;
}

const sids = [1, 2, 3, 4, 5];
const firstMembers = [1, 2, 3];
/** An ensemble of this many voters survives the loss of one. */
const votersMin = 3;
const writers = 2;
const writesPerCycle = 15;
const settleMs = 60_000;
/** How long the first server is given to answer before another is killed. */
const killAfterMs = 5;

interface Request {
  readonly what: string;
  readonly joining: string | null;
  readonly leaving: string | null;
  readonly version: number;
  /** The members afterwards. */
  readonly roles: ReadonlyMap<Sid, 'participant' | 'observer'>;
  readonly error: number;
}

class ReconfigurationRun {
  readonly #settings: ReconfigurationSettings;
  readonly #random: Random;
  readonly #ensemble: Awaited<ReturnType<typeof createEnsemble>>;
  #roles: ReadonlyMap<Sid, 'participant' | 'observer'> = new Map(firstMembers.map((sid) => [sid, 'participant'] as const));

  constructor(settings: ReconfigurationSettings, ensemble: Awaited<ReturnType<typeof createEnsemble>>) {
    this.#settings = settings;
    this.#random = new Random(settings.seed);
    this.#ensemble = ensemble;
  }

  /** One cycle; what it did. */
  async cycle(load: Load): Promise<string> {
    const ensemble = this.#ensemble;
    const leader = await ensemble.leader();
    const request = this.#chooseRequest(leader.sid, await this.#version(leader.sid));
    const at = ensemble.peer(this.#random.pick([...this.#roles.keys()]));
    // Only a change that succeeds anyway is disturbed: otherwise its result would be open.
    const victim =
      this.#random.below(3) === 0
        ? ensemble.peer(this.#random.pick([...request.roles.keys()].filter((sid) => this.#roles.has(sid))))
        : undefined;
    const asked = this.#ask(at.port, request);
    let what = `${request.what} at server ${at.sid} (${at.kind}) under ${leader.kind}`;
    if (victim !== undefined) {
      await delay(killAfterMs);
      await ensemble.kill(victim.sid);
    }
    const err = await asked;
    if (victim !== undefined) {
      // ZooKeeper 3.9 counts digest mismatches while it replays the log over a snapshot of 3.8.
      const kind = victim.kind === 'java-3.8.0' ? victim.kind : this.#random.pick(this.#settings.returnAs);
      what += `, server ${victim.sid} killed and back as ${kind}`;
      await ensemble.launch([victim.sid], { kind });
      await ensemble.untilServing();
    }
    if (err !== undefined && err !== request.error)
      throw new Error(`${what}: error ${err} instead of ${request.error}\n${await ensemble.evidence()}`);
    await this.#untilSettled(request, err, what);
    await load.untilProgress(writesPerCycle, () => ensemble.evidence());
    return `${what}: ${request.error === ErrorCode.Ok ? 'done' : 'refused'}`;
  }

  /** Whether or not the request got its answer: all servers show the same members. */
  async #untilSettled(request: Request, err: number | undefined, what: string): Promise<void> {
    const ensemble = this.#ensemble;
    const expected = [this.#roles, ...(request.error === ErrorCode.Ok ? [request.roles] : [])].map(rolesText);
    const allowed = err === ErrorCode.Ok ? expected.slice(-1) : expected;
    const agreed = await until(
      `${what}: all servers show the configuration`,
      async () => {
        const texts = await Promise.all(ensemble.running.map(({ port }) => configText(port).catch(() => '')));
        const [first] = texts;
        return first !== '' && texts.every((text) => text === first) && allowed.includes(rolesText(rolesOf(first!))) ? first : undefined;
      },
      settleMs,
      () => ensemble.evidence(),
    );
    this.#roles = rolesOf(agreed);
  }

  async #ask(port: number, { joining, leaving, version }: Request): Promise<number | undefined> {
    const client = await RawClient.connect(port, { timeOut: 30_000 }).catch(() => undefined);
    if (client === undefined) return undefined;
    try {
      return (await client.call(OpCode.reconfig, record.reconfig(joining, leaving, null, version))).err;
    } catch {
      // The server was killed, or has lost its leader.
      return undefined;
    } finally {
      client.abandon();
    }
  }

  async #version(sid: Sid): Promise<number> {
    return parseQuorumConfig(await configText(this.#ensemble.peer(sid).port)).version;
  }

  #chooseRequest(leader: Sid, version: number): Request {
    const random = this.#random;
    const roles = this.#roles;
    const voters = [...roles].filter(([, role]) => role === 'participant').map(([sid]) => sid);
    const observers = [...roles.keys()].filter((sid) => roles.get(sid) === 'observer');
    const others = sids.filter((sid) => !roles.has(sid));
    const more = voters.length > votersMin;
    const leaving = (): Sid => (random.below(2) === 0 ? leader : random.pick(voters));
    const choices: (() => Request)[] = [];
    const conditional = random.below(3) === 0 ? version : -1;
    if (others.length > 0) choices.push(() => this.#change('add', [[random.pick(others), 'participant']], [], conditional));
    if (others.length > 0) choices.push(() => this.#change('swap', [[random.pick(others), 'participant']], [leaving()], conditional));
    if (more) choices.push(() => this.#change('remove', [], [leaving()], conditional));
    if (more) choices.push(() => this.#change('demote', [[leaving(), 'observer']], [], conditional));
    if (observers.length > 0) choices.push(() => this.#change('promote', [[random.pick(observers), 'participant']], [], conditional));
    choices.push(() => ({ ...this.#change('stale version', [], [random.pick(voters)], version - 1), error: ErrorCode.BadVersion }));
    return random.pick(choices)();
  }

  #change(
    name: string,
    joining: readonly (readonly [Sid, 'participant' | 'observer'])[],
    leaving: readonly Sid[],
    version: number,
  ): Request {
    const roles = new Map(this.#roles);
    for (const sid of leaving) roles.delete(sid);
    for (const [sid, role] of joining) roles.set(sid, role);
    const lines = joining.map(([sid, role]) => {
      const { ports } = this.#ensemble.peer(sid);
      return `server.${sid}=127.0.0.1:${ports.quorum}:${ports.election}:${role};127.0.0.1:${ports.client}`;
    });
    const parts = [...leaving.map((sid) => `-${sid}`), ...joining.map(([sid]) => `+${sid}`)];
    return {
      what: `${name} ${parts.join(' ')}${version === -1 ? '' : ' if the version is right'}`,
      joining: lines.length === 0 ? null : lines.join(','),
      leaving: leaving.length === 0 ? null : leaving.join(','),
      version,
      roles,
      error: ErrorCode.Ok,
    };
  }
}

function rolesOf(text: string): ReadonlyMap<Sid, 'participant' | 'observer'> {
  return new Map([...parseQuorumConfig(text).servers.values()].map(({ sid, role }) => [sid, role]));
}

function rolesText(roles: ReadonlyMap<Sid, string>): string {
  return [...roles]
    .sort(([a], [b]) => a - b)
    .map(([sid, role]) => `${sid} ${role}`)
    .join(', ');
}

async function configText(port: number): Promise<string> {
  const client = await RawClient.connectOrThrow(port, 30_000);
  try {
    const { value } = await client.call(OpCode.getData, record.pathAndWatch('/zookeeper/config', false));
    return value.data!.toString();
  } finally {
    client.abandon();
  }
}

/**
 * A server of 3.8.0 that changes its role may log txns twice (ZOOKEEPER-4712), so its digests say
 * nothing: its znodes are compared.
 */
export async function runReconfigurations(settings: ReconfigurationSettings, report: Report): Promise<void> {
  const { kinds, returnAs, cycles, seed } = settings;
  const name = `reconfigurations of ${kinds.join(', ')}, back as ${returnAs.join(' or ')} (seed ${seed})`;
  const specs = sids.map((sid, index) => ({ sid, kind: kinds[index]!, role: 'participant' as const }));
  const ensemble = await createEnsemble(specs, {
    config: { reconfigEnabled: true },
    properties: { 'zookeeper.skipACL': 'yes' },
    firstMembers,
  });
  const load = new Load(
    sids.map((sid) => ensemble.peer(sid).port),
    writers,
  );
  try {
    await ensemble.launch(firstMembers);
    await ensemble.untilServing(firstMembers);
    await ensemble.launch(sids.filter((sid) => !firstMembers.includes(sid)));
    await ensemble.untilServing(sids);
    load.begin();
    const run = new ReconfigurationRun(settings, ensemble);
    for (let cycle = 1; cycle <= cycles; cycle++) report.pass(`${name}: cycle ${cycle}: ${await run.cycle(load)}`);
    await load.stop();
    const { acknowledged, reconnects, violations } = await load.verify((await ensemble.leader()).port);
    if (violations.length > 0) report.fail(name, `\n    ${violations.slice(0, 20).join('\n    ')}`);
    else
      report.pass(
        `${name}: ${acknowledged} writes acknowledged, none lost, none applied twice, no session lost (${reconnects} reconnects)`,
      );
    const { differences, znodes, zxid } = await compareServers(ensemble, ({ kind }) => kind !== 'java-3.8.0');
    if (differences.length > 0) report.fail(`${name}: the servers`, `\n    ${differences.join('\n    ')}`);
    else report.pass(`${name}: all have equal data (${znodes} znodes at ${zxid})`);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await load.stop();
    await ensemble[Symbol.asyncDispose]();
  }
}
