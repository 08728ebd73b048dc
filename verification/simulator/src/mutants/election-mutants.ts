/** Mutants of the election: it never settles, or a voter never learns the result. */
import type { Mutant } from './mutant.ts';

export const electionMutants: Readonly<Record<string, Mutant>> = {
  'vote-of-old-epoch': {
    detector: 'explorer',
    description: 'a follower that has joined does not raise the epoch of its vote as its leader does',
    origin: 'ZOOKEEPER-1732, ZOOKEEPER-1818',
    symbol: 'LearningRole.epochSaved',
    original: "if (name === 'currentEpoch') this.#state.election.updateVote(epoch);",
    replacement: '',
  },
  'late-voter-not-answered': {
    detector: 'explorer',
    description: 'a server that has finished its election does not answer servers that look for a leader later',
    origin: 'ZOOKEEPER-1419, ZOOKEEPER-1514',
    symbol: 'FastLeaderElection.notified',
    original: 'this.#notifier.reply(from, notification, this.#notification(this.#currentVote().electionEpoch), now);',
    replacement: '',
  },
  'later-round-not-adopted': {
    detector: 'explorer',
    description: 'a server that learns of a later round does not join it',
    origin: 'ZOOKEEPER-569, ZOOKEEPER-498',
    symbol: 'FastLeaderElection.#onLooking',
    original: 'if (vote.electionEpoch > this.#round) {',
    replacement: 'if (vote.electionEpoch > this.#round + 1_000_000) {',
  },
  'sid-tie-break-missing': {
    detector: 'scenarios',
    description: 'two servers with the same history both keep voting for themselves',
    origin: 'ZOOKEEPER-512',
    symbol: 'isBetterVote',
    original: 'return a.leader > b.leader;',
    replacement: 'return false;',
  },
  'vote-order-zxid-before-epoch': {
    detector: 'explorer',
    description: 'the longer log wins over the later epoch',
    origin: 'ZOOKEEPER-335',
    symbol: 'isBetterVote',
    original: 'if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch > b.peerEpoch;\n  if (a.zxid !== b.zxid) return a.zxid > b.zxid;',
    replacement: 'if (a.zxid !== b.zxid) return a.zxid > b.zxid;\n  if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch > b.peerEpoch;',
  },
  'observer-is-a-voter': {
    detector: 'scenarios',
    description: 'observers count as voters of the quorum',
    origin: 'ZOOKEEPER-764, ZOOKEEPER-2959',
    symbol: 'verifierOf',
    original: '[...config.servers.values()].filter(isParticipant).map',
    replacement: 'isParticipant.length === 0 ? [] : [...config.servers.values()].map',
  },
};
