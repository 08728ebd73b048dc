import { counterOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { committedConfigs, configsAt } from '../record/config-history.ts';
import { configVersionOf, membershipText, membersOf } from '../record/config-text.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import type { Recording } from '../record/recording.ts';
import { ServersWithoutLog } from '../record/servers-without-log.ts';
import type { Checker } from './checker.ts';

export const configurations: Checker = {
  property: 'P32',
  promise:
    "The version of a server's configuration only rises while it runs. A server uses none but the operator's and those that a quorum of the old voters and one of the new has on disk; it uses each before it applies a later txn; a leader has a place in it; and in the end all servers use the last, in the roles that it gives them.",
  check(recording) {
    if (recording.limits.reconfigEnabled !== true) return [];
    const run = new ConfigurationHistory(recording);
    run.check();
    return run.violations;
  },
};

class ConfigurationHistory {
  readonly violations: string[] = [];
  readonly #recording: Recording;
  readonly #configs: ReturnType<typeof committedConfigs>;
  /** The last txn that each server ever had on its disk. */
  readonly #durable = new Map<string, Zxid>();
  readonly #texts = new Map<string, string>();
  readonly #leading = new Set<string>();

  constructor(recording: Recording) {
    this.#recording = recording;
    this.#configs = committedConfigs(recording);
  }

  check(): void {
    const { peerEvents, quiescentStates } = this.#recording;
    const withoutLog = new ServersWithoutLog();
    for (const event of peerEvents) {
      const { server } = event;
      withoutLog.onEvent(event);
      if ((event.kind === 'logged' && !withoutLog.has(server)) || event.kind === 'started' || event.kind === 'replaced') {
        this.#durable.set(server, Math.max(this.#durable.get(server) ?? 0, event.zxid));
      }
      if (event.kind === 'processGone') this.#texts.delete(server);
      if (event.kind === 'roleEnded' || event.kind === 'processGone') this.#leading.delete(server);
      if (event.kind === 'serves' && event.role === 'leader') this.#leading.add(server);
      if (event.kind === 'applied' && this.#leading.has(server)) this.#mustVote(server, event.zxid);
      if (event.kind === 'config') this.#adopted(server, event.text);
      if (event.kind === 'applied') this.#mustUse(server, event.zxid - 1, `applied ${formatZxid(event.zxid)}`);
      if (event.kind === 'serves') this.#mustUse(server, event.historyEnd, `serves in epoch ${event.epoch}`);
    }
    for (const states of quiescentStates) {
      const last = membersOf(this.#lastText(Infinity), this.#recording.limits.oracleSid);
      for (const { server, configText = '', role } of states) {
        const isObserver = last.get(server)?.isVoter === false;
        if ((role === 'observer') !== isObserver)
          this.violations.push(`${server} is ${role} in the end under ${oneLine(this.#lastText(Infinity))}`);
        if (configText !== this.#lastText(Infinity) && !this.#isFirst(configText)) {
          this.violations.push(`${server} ends with ${oneLine(configText)}, not with ${oneLine(this.#lastText(Infinity))}`);
        }
      }
    }
  }

  #lastText(zxid: Zxid): string {
    return this.#configs.findLast((config) => config.zxid <= zxid)!.text;
  }

  /** The operator's configuration, with a version that a leader has given it; none was committed. */
  #isFirst(text: string): boolean {
    return this.#configs.length === 1 && membershipText(text) === membershipText(this.#configs[0]!.text);
  }

  #adopted(server: string, text: string): void {
    const before = this.#texts.get(server);
    this.#texts.set(server, text);
    const version = configVersionOf(text);
    if (before !== undefined && version <= configVersionOf(before)) {
      this.violations.push(`${server} went from ${oneLine(before)} to ${oneLine(text)}`);
    }
    // Its operator's, which may name the server itself besides the others.
    if (version === 0) return;
    if (counterOf(version) === 0) {
      if (membershipText(text) !== membershipText(this.#configs[0]!.text))
        this.violations.push(`${server} uses ${oneLine(text)}, which no txn has made`);
      return;
    }
    const committed = this.#configs.find((config) => config.text === text);
    if (committed === undefined) {
      this.violations.push(`${server} uses ${oneLine(text)}, which was not committed`);
      return;
    }
    const having = [...this.#durable].flatMap(([name, zxid]) => (zxid >= committed.zxid ? [name] : []));
    if (configsAt(this.#configs, committed.zxid).every((members) => isQuorum(members, having))) return;
    this.violations.push(`${server} uses ${oneLine(text)}, which only ${having.join(', ')} have on disk`);
  }

  /** A leader has a place in the configuration of each txn that it commits. */
  #mustVote(server: string, zxid: Zxid): void {
    const { members, text } = this.#configs.findLast((config) => config.zxid < zxid)!;
    if (members.get(server)?.isVoter !== true)
      this.violations.push(`${server} leads and applied ${formatZxid(zxid)} under ${oneLine(text)}`);
  }

  /** Every reconfiguration up to `zxid` counts at the server. */
  #mustUse(server: string, zxid: Zxid, when: string): void {
    const due = this.#configs.findLast((config) => config.zxid <= zxid)!;
    const text = this.#texts.get(server);
    if (due.zxid === 0 || text === undefined || configVersionOf(text) >= due.zxid) return;
    this.violations.push(`${server} ${when} with ${oneLine(text)}, although ${oneLine(due.text)} was committed before`);
  }
}

function oneLine(text: string): string {
  return text.replaceAll('\n', ' ');
}
