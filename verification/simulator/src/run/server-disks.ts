/**
 * The disks of a run's servers: how long their calls take, which faults they have, and which were
 * lost. A process may end because of a fault that was injected here, and then is excused.
 */
import type { Millis } from '@tskeeper/protocol';
import type { DiskCall, DiskFault } from '@tskeeper/runtime';
import { lastLogged, lastServed } from '../record/committed-history.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { ServerProcess } from '../world/server-process.ts';
import { withoutFavourite } from '../record/quorum-rule.ts';
import { configsInForce, isQuorumOfAll } from './configs-in-force.ts';
import type { RunContext } from './run-context.ts';

/** A request without a reply is proposed within this time, or never; unless its leader is paused. */
const requestMsMax: Millis = 3000;

export class ServerDisks {
  readonly #run: RunContext;
  readonly #slowUntilMs = new Map<ServerHost, Millis>();
  /** The longest fsync of a server's disk without faults; 1 ms, as for other calls, if absent. */
  readonly syncMsMax = new Map<ServerHost, Millis>();
  /** The disk errors that excuse a process for ending. */
  readonly #injectedErrors = new Map<ServerProcess, string[]>();
  /** Servers whose disk is full. */
  readonly #fullDisks = new Set<ServerHost>();
  /** Servers that lost their disks and may not have everything again. */
  readonly #wiped = new Set<ServerHost>();

  constructor(run: RunContext) {
    this.#run = run;
    for (const server of run.world.servers) server.diskDelayMs = (call) => this.#delayMs(server, call);
  }

  #delayMs(server: ServerHost, { operation, bytes = 0 }: DiskCall): Millis {
    const run = this.#run;
    if (run.nowMs < (this.#slowUntilMs.get(server) ?? 0)) return run.drawMs(300);
    const ms = run.drawMs(operation === 'sync' ? (this.syncMsMax.get(server) ?? 1) : 1);
    return run.isHealed ? ms : ms + bytes / run.rates.diskBytesPerMs;
  }

  // --- faults

  /**
   * From now on calls of this server's disk fail as `fault` says. A process that ends for one of
   * these errors, and reports it, is excused.
   */
  fail(server: ServerHost, fault: (call: DiskCall) => DiskFault | undefined): void {
    server.disk.fault = (call) => {
      const found = fault(call);
      if (found === undefined || server.process === undefined) return found;
      const { operation, path } = call;
      const isLate = found.late === true && (operation === 'write' || operation === 'extend');
      const excuses = this.#injectedErrors.get(server.process) ?? [];
      excuses.push(`${isLate ? 'sync' : operation} ${path}: ${found.code}`);
      this.#injectedErrors.set(server.process, excuses);
      return found;
    };
  }

  isInjected(process: ServerProcess, failure: string): boolean {
    return this.#injectedErrors.get(process)?.some((excuse) => failure.includes(excuse)) === true;
  }

  /** Nothing more can be written for `ms`. A file may still use space it was allocated before. */
  fill(server: ServerHost, ms: Millis): void {
    this.#fullDisks.add(server);
    this.fail(server, ({ operation }) => (operation === 'write' || operation === 'extend' ? { code: 'ENOSPC', late: true } : undefined));
    this.#run.schedule(ms, 'disk has room', undefined, () => this.#free(server));
  }

  #free(server: ServerHost): void {
    if (this.#fullDisks.delete(server)) server.disk.fault = undefined;
  }

  slowUntil(server: ServerHost, untilMs: Millis): void {
    this.#slowUntilMs.set(server, untilMs);
  }

  /** The disk works again, unless it is full. */
  maybeEndFault(server: ServerHost): void {
    if (!this.#fullDisks.has(server)) server.disk.fault = undefined;
  }

  heal(server: ServerHost): void {
    this.#slowUntilMs.delete(server);
    this.#fullDisks.delete(server);
    server.disk.fault = undefined;
  }

  // --- lost disks

  /**
   * Whether the servers that kept their disks, or were sent everything since, and that have
   * everything that was ever committed, still form a quorum without this one: it may be the only
   * one besides the leader that has everything.
   */
  canWipe(server: ServerHost): boolean {
    this.#forgetRestored();
    if (this.#fullDisks.has(server)) return false;
    // A leader that is paused does not know yet that a disk is lost, and may have received a request for
    // a change that needs this server: it proposes that once it goes on.
    const isLeaderPaused = this.#run.world.servers.some(({ role, isPaused }) => role === 'leader' && isPaused);
    const { recording, servers } = this.#run.world;
    // The same for one that a leader is about to receive, or whose client has gone meanwhile.
    const sinceMs = this.#run.nowMs - requestMsMax;
    const isChangeAsked = recording.cnxns.some(({ requests }) =>
      requests.some(({ name, reply, sentMs }) => name === 'reconfig' && reply === undefined && sentMs > sinceMs),
    );
    if (server.core.reconfigEnabled && (isLeaderPaused || isChangeAsked)) return false;
    // After the loss the server uses the operator's configuration again.
    const inForce = configsInForce(this.#run.world);
    // By an oracle alone no leader is expected while a change is pending.
    const configs = [recording.ensemble, ...(inForce.length > 1 ? inForce.map(withoutFavourite) : inForce)];
    if (recording.ensemble.size > 0 && configs.every((members) => members.get(server.name)?.isVoter !== true)) return true;
    const [committed, logged] = [lastServed(recording), lastLogged(recording)];
    const left = servers.filter(
      (each) => each !== server && !this.#wiped.has(each) && (logged.get(each.name) ?? recording.seedState.zxid) >= committed,
    );
    return isQuorumOfAll(
      configs,
      left.map(({ name }) => name),
    );
  }

  wipe(server: ServerHost): void {
    server.kill();
    server.wipe();
    this.#wiped.add(server);
  }

  isWiped(server: ServerHost): boolean {
    return this.#wiped.has(server);
  }

  /** Whether a server lost its disk and was not sent everything since. */
  get isOneWiped(): boolean {
    this.#forgetRestored();
    return this.#wiped.size > 0;
  }

  #forgetRestored(): void {
    for (const each of this.#wiped)
      if (each.role === 'leader' || each.role === 'follower' || each.role === 'observer') this.#wiped.delete(each);
  }
}
