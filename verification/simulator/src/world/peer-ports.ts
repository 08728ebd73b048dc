/** Ports on which servers of an ensemble listen to each other. */
export const quorumPort = 2888;
export const electionPort = 3888;
/** Where followers accept observers. */
export const observerMasterPort = 2191;
/** A reconfiguration may give a server these, and a second name. */
export const otherQuorumPort = 2889;
export const otherElectionPort = 3889;

/** Which kind of port it is; undefined if clients connect there. */
export function peerPortKind(port: number): 'quorum' | 'election' | undefined {
  if (port === electionPort || port === otherElectionPort) return 'election';
  return port === quorumPort || port === otherQuorumPort || port === observerMasterPort ? 'quorum' : undefined;
}

/** A second address of a server at which nothing ever answers. A configuration sorts hosts. */
export function deadHostOf(sid: number, isFirst: boolean): string {
  return isFirst ? deadIpOf(sid) : `${deadNamePrefix}${sid}`;
}

/** A machine that takes no dial and refuses none. */
export function deadIpOf(sid: number): string {
  return `10.66.6.${sid}`;
}

export function isDeadHost(host: string): boolean {
  return host.startsWith('10.66.6.') || host.startsWith(deadNamePrefix);
}

const deadNamePrefix = 'unused-';

/** The second name of a machine. */
export function otherNameOf(name: string): string {
  return `${name}.other`;
}
