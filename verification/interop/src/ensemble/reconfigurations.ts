/**
 * Reconfigurations of mixed ensembles, while clients write. A cycle asks for two, one at a server of
 * ours and one at a server of ZooKeeper's, and ends a server: while a request is on its way, or
 * before a request and until after it, or between the two. The server comes back as another kind,
 * on its own folder and its own rewritten zoo.cfg. A seed chooses all of this.
 *
 * After each request all servers must show the configuration that was asked for, and clients must
 * have gone on. After each cycle all servers have the same znodes and the same dynamic file; at the
 * end no acknowledged write is lost, and no session has expired.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, OpCode, parseQuorumConfig } from '@tskeeper/protocol';
import { type EnsemblePeer, RawClient, record, reservePorts, type ServerKind, until } from '@tskeeper/harness';
import { Random } from '../random.ts';
import type { Report } from '../report.ts';
import { compareServers } from './agreement.ts';
import { configText, type Members, membersOf, membersText, untilFilesAgree } from './config-agreement.ts';
import { createEnsemble } from './ensemble.ts';
import { Load } from './load.ts';
import { chooseRequest, isMixed, type ReconfigRequest } from './reconfig-requests.ts';

export interface ReconfigurationSettings {
  /** Of servers 1 to 5. Servers 1 to 3 are the first members. */
  readonly kinds: readonly ServerKind[];
  /** A server may come back as any of these, except one of 3.8.0, which stays what it is. */
  readonly returnAs: readonly ServerKind[];
  readonly cycles: number;
  readonly seed: number;
}

const sids = [1, 2, 3, 4, 5];
const firstMembers = [1, 2, 3];
const writers = 2;
const writesPerRequest = 10;
const settleMs = 60_000;
/** For how long at most a request is on its way before a server is killed. */
const killWithinMs = 10;
const sessionTimeOut = 30_000;

/** When a server ends: while a request is on its way, before one and until after it, or between two. */
type Disturbance = 'during' | 'away' | 'between';
type Side = 'ours' | 'java';

function sideOf({ kind }: EnsemblePeer): Side {
  return kind === 'ours' ? 'ours' : 'java';
}

class ReconfigurationRun {
  readonly #settings: ReconfigurationSettings;
  readonly #random: Random;
  readonly #ensemble: Awaited<ReturnType<typeof createEnsemble>>;
  readonly #useCounts = new Map<string, number>();
  #members: Members;

  constructor(settings: ReconfigurationSettings, ensemble: Awaited<ReturnType<typeof createEnsemble>>, members: Members) {
    this.#settings = settings;
    this.#random = new Random(settings.seed);
    this.#ensemble = ensemble;
    this.#members = members;
  }

  /** Two reconfigurations, one at either side; what was done. */
  async cycle(load: Load): Promise<string> {
    const random = this.#random;
    const sides: readonly Side[] = random.below(2) === 0 ? ['ours', 'java'] : ['java', 'ours'];
    const disturbance = random.pick<Disturbance>(['during', 'away', 'between']);
    const disturbed = random.below(2);
    const done: string[] = [];
    // At least one of the two.
    let mustSucceed = false;
    try {
      for (const [index, side] of sides.entries()) {
        if (index === 1 && disturbance === 'between') done.push(await this.#restart());
        const isDisturbed = disturbance !== 'between' && index === disturbed;
        const { what, isRefused } = await this.#reconfigure(side, isDisturbed ? disturbance : undefined, mustSucceed);
        done.push(what);
        mustSucceed = isRefused;
        await load.untilProgress(writesPerRequest, () => this.#ensemble.evidence());
      }
    } catch (error) {
      const before = done.length === 0 ? '' : `after ${done.join('; ')}: `;
      throw new Error(`${before}${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
    return done.join('; ');
  }

  /** All hold the same, and the same files. Requires that no client writes. */
  async differences(): Promise<{ readonly differences: readonly string[]; readonly summary: string }> {
    const ensemble = this.#ensemble;
    // A server of 3.8.0 that changes its role may log txns twice (ZOOKEEPER-4712), so its digests
    // say nothing.
    const { differences, znodes, zxid } = await compareServers(ensemble, ({ kind }) => kind !== 'java-3.8.0');
    const text = await configText((await ensemble.leader()).port);
    await untilFilesAgree(ensemble, text);
    return { differences, summary: `${znodes} znodes at ${zxid}, configuration ${parseQuorumConfig(text).version.toString(16)}` };
  }

  get #memberPeers(): readonly EnsemblePeer[] {
    return this.#ensemble.peers.filter(({ sid }) => this.#members.has(sid));
  }

  async #reconfigure(
    side: Side,
    disturbance: 'during' | 'away' | undefined,
    mustSucceed: boolean,
  ): Promise<{ readonly what: string; readonly isRefused: boolean }> {
    const ensemble = this.#ensemble;
    const random = this.#random;
    const victim = disturbance === undefined ? undefined : random.pick(this.#victims(disturbance === 'away' ? side : undefined));
    let before = '';
    if (victim !== undefined && disturbance === 'away') {
      before = await this.#end(victim);
      await ensemble.untilServing();
    }
    const leader = await ensemble.leader();
    const request = chooseRequest(
      {
        peers: ensemble.peers,
        members: this.#members,
        version: parseQuorumConfig(await configText(leader.port)).version,
        leader: leader.sid,
        spare: await reservePorts(),
        untouched: victim?.sid,
        // The result of a request is open if its server or the leader may be killed.
        mustSucceed: mustSucceed || disturbance === 'during',
        useCounts: this.#useCounts,
      },
      random,
    );
    this.#useCounts.set(request.name, (this.#useCounts.get(request.name) ?? 0) + 1);
    const at = random.pick(this.#memberPeers.filter((peer) => peer.isUp && sideOf(peer) === side));
    const client = await ensemble.until(`${at.name} opens a session`, () => RawClient.connect(at.port, { timeOut: sessionTimeOut }));
    const asked = this.#ask(client, request);
    let what = `${before}${request.what} at server ${at.sid} (${at.kind}) under ${leader.kind}`;
    if (victim !== undefined && disturbance === 'during') {
      await delay(random.below(killWithinMs));
      await ensemble.kill(victim.sid);
      what += `, server ${victim.sid} (${victim.kind}) killed meanwhile`;
    }
    const err = await asked;
    // Only a change can cost the server its leader before it answers.
    const isLost = err === undefined && request.error === ErrorCode.Ok;
    if (err !== request.error && !isLost)
      throw new Error(`${what}: error ${err} instead of ${request.error}\n${await ensemble.evidence()}`);
    // What was asked of a server that is down must not wait for it.
    if (disturbance === 'away') await this.#untilSettled(request, err, what);
    if (victim !== undefined) what += `, ${await this.#launch(victim, request)}`;
    await this.#untilSettled(request, err, what);
    const isRefused = request.error !== ErrorCode.Ok;
    const isDone = !isRefused && membersText(this.#members) === membersText(request.members);
    return { what: `${what}: ${isLost ? 'no answer, ' : ''}${isRefused ? 'refused' : isDone ? 'done' : 'not done'}`, isRefused };
  }

  /** A server ends and comes back. */
  async #restart(): Promise<string> {
    const victim = this.#random.pick(this.#victims(undefined));
    const ended = await this.#end(victim);
    const back = await this.#launch(victim);
    await this.#ensemble.untilServing();
    return `${ended}${back}`;
  }

  /** Members that may end; a member of this side remains. */
  #victims(remaining: Side | undefined): readonly EnsemblePeer[] {
    const members = this.#memberPeers;
    return members.filter((peer) => remaining === undefined || members.some((each) => each !== peer && sideOf(each) === remaining));
  }

  async #end(victim: EnsemblePeer): Promise<string> {
    const isClean = this.#random.below(2) === 0;
    await (isClean ? this.#ensemble.stop(victim.sid) : this.#ensemble.kill(victim.sid));
    return `server ${victim.sid} (${victim.kind}) ${isClean ? 'stopped' : 'killed'}, `;
  }

  /** `request`: one that may still change the members. */
  async #launch(victim: EnsemblePeer, request?: ReconfigRequest): Promise<string> {
    const ensemble = this.#ensemble;
    const others = this.#memberPeers.filter((peer) => peer !== victim && (request === undefined || request.members.has(peer.sid)));
    const kind = this.#kindOfReturn(victim, others);
    await ensemble.launch([victim.sid], { kind });
    // Not of all servers: one may just be moving.
    await ensemble.until(`${victim.name}, back as ${kind}, serves`, () => victim.mode(), settleMs, victim.sid);
    return `back as ${kind}`;
  }

  /** With these other members, that stay, the members are mixed. */
  #kindOfReturn(victim: EnsemblePeer, others: readonly EnsemblePeer[]): ServerKind {
    // ZooKeeper 3.9 counts digest mismatches while it replays the log over a snapshot of 3.8.
    if (victim.kind === 'java-3.8.0') return victim.kind;
    const kind = this.#random.pick(this.#settings.returnAs);
    const isAlone = (side: Side): boolean => others.every((peer) => sideOf(peer) === side);
    if (isAlone('ours') && kind === 'ours') return victim.kind === 'ours' ? 'java-3.9.5' : victim.kind;
    if (isAlone('java') && kind !== 'ours') return 'ours';
    return kind;
  }

  /** Whether or not the request got its answer: all servers show the same members. */
  async #untilSettled(request: ReconfigRequest, err: number | undefined, what: string): Promise<void> {
    const ensemble = this.#ensemble;
    const wanted = request.error === ErrorCode.Ok ? [request.members] : [];
    const allowed = (err === ErrorCode.Ok ? wanted : [this.#members, ...wanted]).map(membersText);
    let texts: readonly string[] = [];
    const agreed = await until(
      `${what}: all servers show the configuration`,
      async () => {
        texts = await Promise.all(ensemble.running.map((peer) => this.#textAt(peer, request)));
        const [first] = texts;
        return texts.every((text) => text === first) && allowed.includes(membersText(membersOf(first!))) ? first : undefined;
      },
      settleMs,
      async () =>
        `${allowed.join('\nor\n')}\n${ensemble.running.map(({ name }, at) => `${name}: ${texts[at]}`).join('\n')}\n${await ensemble.evidence()}`,
    );
    this.#members = membersOf(agreed);
    const { moved } = request;
    if (moved !== undefined && this.#members.get(moved.sid) === request.members.get(moved.sid))
      ensemble.peer(moved.sid).movedTo(moved.ports);
    await ensemble.untilServing();
  }

  /** Of a server that moves, at either port. */
  async #textAt({ sid, port }: EnsemblePeer, { moved }: ReconfigRequest): Promise<string> {
    try {
      return await configText(port);
    } catch {
      return moved?.sid === sid ? configText(moved.ports.client).catch(() => '') : '';
    }
  }

  /** The error code; undefined if the connection ends without an answer. */
  async #ask(client: RawClient, { joining, leaving, newMembers, version }: ReconfigRequest): Promise<number | undefined> {
    try {
      return (await client.call(OpCode.reconfig, record.reconfig(joining, leaving, newMembers, version))).err;
    } catch {
      // The server was killed, or has lost its leader.
      return undefined;
    } finally {
      await client.close().catch(() => client.abandon());
    }
  }
}

/** Returns the number of cycles after which all servers agreed. */
export async function runReconfigurations(settings: ReconfigurationSettings, report: Report): Promise<number> {
  const { kinds, returnAs, cycles, seed } = settings;
  const name = `reconfigurations of ${kinds.join(', ')}, back as ${returnAs.join(' or ')} (seed ${seed})`;
  const specs = sids.map((sid, index) => ({ sid, kind: kinds[index]!, role: 'participant' as const }));
  const ensemble = await createEnsemble(specs, {
    config: { reconfigEnabled: true },
    properties: { 'zookeeper.skipACL': 'yes' },
    firstMembers,
  });
  const load = new Load(() => sids.map((sid) => ensemble.peer(sid).port), writers);
  let agreed = 0;
  try {
    if (!isMixed(ensemble.peers.filter(({ sid }) => firstMembers.includes(sid)))) throw new Error('the first members are of one kind');
    await ensemble.launch(firstMembers);
    const leader = await ensemble.untilServing(firstMembers);
    await ensemble.launch(sids.filter((sid) => !firstMembers.includes(sid)));
    await ensemble.untilServing(sids);
    const run = new ReconfigurationRun(settings, ensemble, membersOf(await configText(leader.port)));
    load.begin();
    for (let cycle = 1; cycle <= cycles; cycle++) {
      const what = `${name}: cycle ${cycle}: ${await run.cycle(load)}`;
      await load.stop();
      const { differences, summary } = await run.differences();
      if (differences.length > 0) {
        report.fail(what, `\n    ${differences.join('\n    ')}`);
        return agreed;
      }
      report.pass(`${what}; all have equal data and files (${summary})`);
      agreed++;
      load.begin();
    }
    await load.stop();
    const { acknowledged, reconnects, violations } = await load.verify((await ensemble.leader()).port);
    if (violations.length > 0) report.fail(name, `\n    ${violations.slice(0, 20).join('\n    ')}`);
    else
      report.pass(
        `${name}: ${acknowledged} writes acknowledged, none lost, none applied twice, no session lost (${reconnects} reconnects)`,
      );
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await load.stop();
    await ensemble[Symbol.asyncDispose]();
  }
  return agreed;
}
