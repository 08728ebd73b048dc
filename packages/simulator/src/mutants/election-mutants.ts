/** Mutants of the election: it never settles, or a voter never learns the result. */
import type { Mutant } from './mutant.ts';

const election = 'packages/core/src/election/fast-leader-election.ts';

export const electionMutants: Readonly<Record<string, Mutant>> = {
  'vote-of-old-epoch': {
    hunter: 'explorer',
    what: 'a follower that has joined does not raise the epoch of its vote as its leader does',
    from: 'ZOOKEEPER-1732, ZOOKEEPER-1818',
    file: 'packages/core/src/roles/learning-role.ts',
    replace: "if (name === 'currentEpoch') this.#state.election.updateVote(epoch);",
    by: '',
  },
  'late-voter-not-told': {
    hunter: 'explorer',
    what: 'a server that has finished its election does not answer servers that look for a leader later',
    from: 'ZOOKEEPER-1419, ZOOKEEPER-1514',
    file: election,
    replace: 'this.#answer(from, notification, this.#notification(this.#vote().electionEpoch), now);',
    by: '',
  },
  'rounds-not-joined': {
    hunter: 'explorer',
    what: 'a server that learns of a later round does not join it',
    from: 'ZOOKEEPER-569, ZOOKEEPER-498',
    file: election,
    replace: 'if (vote.electionEpoch > this.#round) {',
    by: 'if (vote.electionEpoch > this.#round + 1_000_000) {',
  },
  'equal-votes-both-kept': {
    hunter: 'scenarios',
    what: 'two servers with the same history both keep voting for themselves',
    from: 'ZOOKEEPER-512',
    file: 'packages/core/src/election/vote.ts',
    replace: 'return a.leader > b.leader;',
    by: 'return false;',
  },
  'zxid-before-epoch': {
    hunter: 'explorer',
    what: 'the longer log wins over the later epoch',
    from: 'ZOOKEEPER-335',
    file: 'packages/core/src/election/vote.ts',
    replace: 'if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch > b.peerEpoch;\n  if (a.zxid !== b.zxid) return a.zxid > b.zxid;',
    by: 'if (a.zxid !== b.zxid) return a.zxid > b.zxid;\n  if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch > b.peerEpoch;',
  },
  'observer-is-a-voter': {
    hunter: 'scenarios',
    what: 'observers count as voters of the quorum',
    from: 'ZOOKEEPER-764, ZOOKEEPER-2959',
    file: 'packages/core/src/quorum/verifier-of.ts',
    replace: '[...config.servers.values()].filter(isParticipant).map',
    by: 'isParticipant.length === 0 ? [] : [...config.servers.values()].map',
  },
};
