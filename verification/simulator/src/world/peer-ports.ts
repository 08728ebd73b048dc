/**
 * Ports on which servers of an ensemble listen to each other. A reconfiguration may give a server
 * the second ones, and a second name.
 */
export const quorumPort = 2888;
export const electionPort = 3888;
export const otherQuorumPort = 2889;
export const otherElectionPort = 3889;

/** Which of the two kinds a port is; undefined for one of clients. */
export function peerPortKind(port: number): 'quorum' | 'election' | undefined {
  if (port === quorumPort || port === otherQuorumPort) return 'quorum';
  return port === electionPort || port === otherElectionPort ? 'election' : undefined;
}

/** The second name of a machine. */
export function otherNameOf(name: string): string {
  return `${name}.other`;
}
