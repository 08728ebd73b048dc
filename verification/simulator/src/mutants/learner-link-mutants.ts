/**
 * Mutants of the links between a leader and its learners: which stream is trusted, what is bounded,
 * and what waits for what.
 */
import type { Mutant } from './mutant.ts';

export const learnerLinkMutants: Readonly<Record<string, Mutant>> = {
  'sid-conflict-displaces-at-once': {
    detector: 'scenarios',
    description: 'a stream with the id of a learner replaces it before the learner had time to answer',
    origin: 'claimed follower',
    symbol: 'LearnerTable.#challengeHolder',
    original: 'if (isSameProcess && now.elapsedMs - holder.introducedMs >= this.#sidConflictWaitMs)\n      this.disconnect',
    replacement: 'if (isSameProcess || claimant.incarnation === 0) this.disconnect',
  },
  'sid-conflict-keeps-silent-learner': {
    detector: 'scenarios',
    description: 'a learner that does not answer keeps the stream of its next process out',
    origin: 'claimed follower',
    symbol: 'LearnerTable.resolveSidConflicts',
    original:
      "else this.disconnect(holder, 'replaced by a later connection', 'the learner has reconnected, and this connection does not answer');",
    replacement: 'else this.#rejectClaimant(holder);',
  },
  'sid-conflict-claimant-forgotten': {
    detector: 'scenarios',
    description: 'when a learner whose id another stream claims is dropped, that stream keeps waiting',
    origin: 'claimed follower',
    symbol: 'LearnerTable.#remove',
    original: "if (learner.sidConflict !== undefined && this.#stages.stage !== 'over') this.#accept(learner.sidConflict.claimant);",
    replacement: '',
  },
  'unknown-observer-counts-as-configured': {
    detector: 'scenarios',
    description: 'a server that is not in the configuration counts as a member',
    origin: 'crowd of observers',
    symbol: 'LearnerTable.isMember',
    original: 'return this.#quorum.isVoter(sid) || this.#host.config.isMember(sid);',
    replacement: 'return sid > 0 || this.#host.config.isMember(sid);',
  },
  'forwarding-without-backpressure': {
    detector: 'scenarios',
    description: 'a learner writes all requests to the stream to its leader at once, whatever waits there, until it drops the connection',
    origin: 'slow way to leader',
    symbol: 'RequestQueue.#writer',
    original: 'if (this.#waiting.length === 0 && !this.#links.channelIsFull(this.#channel)) return',
    replacement: 'if (this.#waiting.length >= 0) return',
  },
  'forwarding-never-resumed': {
    description: 'requests that wait for room in the stream to the leader keep waiting when there is room',
    origin: 'slow way to leader',
    symbol: 'Learner.wake',
    original: '    this.requests.send();\n',
    replacement: '',
  },
  'request-bytes-kept': {
    description: 'the bytes of forwarded requests still count as waiting',
    origin: 'slow way to leader',
    symbol: 'RequestQueue.send',
    original: 'this.queuedBytes -= next.length;',
    replacement: '',
  },
  'request-bytes-given-back-twice': {
    description: 'the bytes of forwarded requests are subtracted twice',
    origin: 'slow way to leader',
    symbol: 'RequestQueue.send',
    original: 'this.queuedBytes -= next.length;',
    replacement: 'this.queuedBytes -= 2 * next.length;',
  },
  'shared-bytes-out-of-place': {
    description: 'a packet for one learner is sent after packets for all that were written later',
    origin: 'packets that are held once',
    symbol: 'ChannelOutput.writeShared',
    original:
      'if (this.#writer !== undefined && this.#writer.offset > 0) {\n      this.#queued.push(this.#writer);\n      this.#queuedPieceBytes += this.#writer.offset;\n      this.#writer = undefined;\n    }\n    this.#queued.push(new',
    replacement: 'this.#queued.push(new',
  },
  'shared-bytes-from-the-start': {
    description: 'each learner also receives the beginning of shared bytes, which is not for it',
    origin: 'packets that are held once',
    symbol: 'ChannelOutput.#startPiece',
    original: 'piece instanceof SharedPiece ? piece.start : 0',
    replacement: '0',
  },
};
