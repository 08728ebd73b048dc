/**
 * Runs each attack beside honest clients, against ours and against Java's servers, and checks the
 * measurements of the clients and the machine.
 */
import { setMaxListeners } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type EnsemblePeer, eventually, type ProcessEnsemble } from '@tskeeper/harness';
import { startServers, type Kind } from '../ensemble.ts';
import { HelperProcess } from '../helper-process.ts';
import type { PartContext } from '../part.ts';
import { atMost, type Figure, shown } from '../report.ts';
import type { Attack, AttackSetup } from './attack.ts';
import type { HonestMessage, HonestOptions, HonestReport, HonestCommand } from './honest-messages.ts';
import { identityAttacks } from './identities.ts';
import { longRequests } from './long-requests.ts';
import { quorumAttacks } from './quorum-port.ts';
import { socketAttacks } from './sockets.ts';
import { answersByError } from './attacker.ts';

/** Not an attack: servers that are stopped. The measurement has to detect it. */
const canary: Attack = {
  name: 'canary',
  servers: 1,
  async run({ target }, signal) {
    while (!signal.aborted) {
      target.process!.pause();
      await delay(pauseMs);
      target.process!.resume();
      await delay(500);
    }
  },
};

export const attacks: readonly Attack[] = [...longRequests, ...identityAttacks, ...socketAttacks, ...quorumAttacks];

const tickMs = 1000;
const abandonedTimeoutMs = 4000;
const p99LimitMs = 250;
const memoryLimitMb = 256;
const abandonedLimitS = (abandonedTimeoutMs + tickMs + 1000) / 1000;
export const attackLimits = `0 errors, p99 ${p99LimitMs} ms, +${memoryLimitMb} MB, ${abandonedLimitS} s, all up`;

/** Minimum time: the last session is abandoned after 3.5 s, and its limit has to pass. */
const attackMs = 10_000;
const boundedAttackMs = 4000;
/** The attack continues as long as an ephemeral znode exists, but not forever. */
const attackMaxMs = 25_000;
const settleMs = 1500;
/** More than the limit of p99, also in the bounded form. */
const pauseMs = 4000;
const sampleMs = 200;
const statusMaxMs = 5000;
/** A timer that is this late shows a slow machine, not a slow server. */
const noticedLagMs = 20;

/** The maximum growth of the memory of any server. */
class MemoryWatch {
  readonly #members: readonly EnsemblePeer[];
  readonly #before = new Map<EnsemblePeer, number>();
  #over = false;
  grownMb = 0;

  constructor(members: readonly EnsemblePeer[]) {
    this.#members = members;
  }

  async start(): Promise<void> {
    for (const member of this.#members) this.#before.set(member, await member.memoryMb());
    void this.#sample();
  }

  async #sample(): Promise<void> {
    while (!this.#over) {
      for (const member of this.#members) {
        const memoryMb = await member.memoryMb();
        this.grownMb = Math.max(this.grownMb, memoryMb - this.#before.get(member)!);
      }
      await delay(sampleMs);
    }
  }

  stop(): void {
    this.#over = true;
  }
}

function figuresOf(report: HonestReport, grownMb: number, { timeLimit }: PartContext): Figure[] {
  const { abandonedSessionMs } = report;
  const dead = abandonedSessionMs.includes(null) ? Infinity : Math.max(...abandonedSessionMs.map(Number)) / 1000;
  return [
    atMost('errors', report.errors, 0, ''),
    atMost('p99', report.p99Ms, timeLimit(p99LimitMs), 'ms'),
    atMost('memory', grownMb, memoryLimitMb, 'MB'),
    atMost('ephemeral', dead, timeLimit(abandonedLimitS), 's'),
    ...(report.ownLagP99Ms > noticedLagMs ? [shown('own lag', `${Math.round(report.ownLagP99Ms)} ms`)] : []),
    ...(report.errors > 0 ? [shown('first error', `"${report.examples[0]}"`)] : []),
  ];
}

async function reportOf(honest: HelperProcess<HonestCommand, HonestMessage>): Promise<HonestReport> {
  const answer = await honest.request('report');
  if (!('report' in answer)) throw new Error('the honest clients said something else than their report');
  return answer.report;
}

async function serversUpFigure(cluster: ProcessEnsemble): Promise<Figure> {
  const up: boolean[] = [];
  for (const member of cluster.peers) {
    up.push(await eventually(async () => (await member.status()) !== undefined, statusMaxMs, 100));
  }
  const count = up.filter(Boolean).length;
  return { name: 'up', text: `up ${count} of ${up.length}`, isWithin: count === up.length };
}

export async function runAttack(attack: Attack, kind: Kind, context: PartContext): Promise<readonly Figure[]> {
  const folder = path.join(context.folder, `${attack.name}-${kind}`);
  await using ensemble = await startServers({ kind, folder, servers: attack.servers, tickMs, ...attack.options });
  const leader = await ensemble.leader();
  const target = ensemble.peers.find((member) => member !== leader) ?? leader;
  const site: AttackSetup = { ensemble, leader, target };
  await attack.prepare?.(site);
  // The target first: its client checks the ephemeral znodes.
  const honestAt = [target, ...(target === leader ? [] : [leader])];
  const options: HonestOptions = {
    ports: honestAt.map(({ ports }) => ports.client),
    abandonedPort: target.ports.client,
    abandonedTimeoutMs,
  };
  using honest = await HelperProcess.start<HonestCommand, HonestMessage>(new URL('honest-clients.ts', import.meta.url), options);
  await delay(settleMs);
  const memory = new MemoryWatch(ensemble.peers);
  await memory.start();
  const attackOver = new AbortController();
  // Each connection of the attackers listens to it.
  setMaxListeners(0, attackOver.signal);
  answersByError.clear();
  honest.send('begin');
  const attacking = attack.run(site, attackOver.signal);
  // The error is reported below, where the promise is awaited.
  attacking.catch(() => {});
  await delay(context.isBounded ? boundedAttackMs : attackMs);
  let report = await reportOf(honest);
  await eventually(
    async () => {
      report = await reportOf(honest);
      return !report.abandonedSessionMs.includes(null);
    },
    attackMaxMs - attackMs,
    500,
  );
  attackOver.abort();
  const more = (await attacking) ?? [];
  memory.stop();
  const up = await serversUpFigure(ensemble);
  if (!up.isWithin) context.say(await ensemble.evidence());
  const answers = [...answersByError].map(([error, count]) => `${count} x ${error}`).join(', ');
  context.say(`    the attackers were answered, by error: ${answers === '' ? 'nothing' : answers}`);
  return [...figuresOf(report, memory.grownMb, context), up, ...more];
}

/** Fails if a stopped server passes for one that serves. */
export async function checkCanary(context: PartContext): Promise<void> {
  const figures = await runAttack(canary, 'ours', context);
  if (figures.find(({ name }) => name === 'p99')!.isWithin) {
    throw new Error(`a stopped server passed for one that serves: ${figures.map(({ text }) => text).join(', ')}`);
  }
}
