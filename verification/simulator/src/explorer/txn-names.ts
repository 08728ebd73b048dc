/** Names of the txns of a small world: a name is unique and says what the txn does. */
import type { QuorumConfig } from '@tskeeper/protocol';

/** A write of the persistent client, and the data that it leaves at the root. */
export function putName(number: number): string {
  return `put ${number}`;
}

export function isPut(name: string): boolean {
  return name.startsWith('put ');
}

/** A session, and the txn that created it. */
export function sessionName(high: number, low: number): string {
  return `${high}:${low}`;
}

/** A request that failed; it changes nothing. */
export function errorName(session: string, cxid: number): string {
  return `error of ${session} ${cxid}`;
}

export function isError(name: string): boolean {
  return name.startsWith('error of ');
}

const membersTexts = new WeakMap<QuorumConfig, string>();

/** The servers of a configuration, ascending; an observer has an `o`. */
export function membersText(config: QuorumConfig): string {
  let text = membersTexts.get(config);
  if (text === undefined) {
    const members = [...config.servers.values()].sort((a, b) => a.sid - b.sid);
    text = members.map(({ sid, role }) => (role === 'observer' ? `${sid}o` : `${sid}`)).join(' ');
    membersTexts.set(config, text);
  }
  return text;
}

/** A reconfig that leads to these members. */
export function reconfigName(members: string, session: string, cxid: number): string {
  return `config ${members} by ${session} ${cxid}`;
}

/** The members to which a txn changes the configuration; undefined for any other txn. */
export function membersOf(name: string): string | undefined {
  return /^config (.*) by /.exec(name)?.[1];
}

/** What the txn leaves in the state hides what earlier txns of its kind have left. */
export function isReconfig(name: string): boolean {
  return name.startsWith('config ');
}
