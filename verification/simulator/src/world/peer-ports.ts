/** Ports on which servers of an ensemble listen to each other. */
export const quorumPort = 2888;
export const electionPort = 3888;
