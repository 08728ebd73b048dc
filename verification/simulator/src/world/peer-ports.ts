/** Ports on which servers of an ensemble listen to each other. */
export const quorumPort = 2888;
export const electionPort = 3888;
/** Where followers accept observers. */
export const observerMasterPort = 2191;

/** Which kind of port it is; undefined if clients connect there. */
export function peerPortKind(port: number): 'quorum' | 'election' | undefined {
  if (port === electionPort) return 'election';
  return port === quorumPort || port === observerMasterPort ? 'quorum' : undefined;
}
