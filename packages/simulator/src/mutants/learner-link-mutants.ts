/**
 * Mutants of the links between a leader and its learners: which stream is trusted, what is bounded,
 * and what waits for what.
 */
import type { Mutant } from './mutant.ts';

const leader = 'packages/core/src/zab/leader.ts';
const requestQueue = 'packages/core/src/zab/request-queue.ts';
const channelOutput = 'packages/runtime/src/ports/channel-output.ts';

export const learnerLinkMutants: Readonly<Record<string, Mutant>> = {
  'claim-displaces-at-once': {
    hunter: 'scenarios',
    what: 'a stream with the id of a learner replaces it before the learner had time to answer',
    from: 'claimed follower',
    file: leader,
    replace: 'if (isSameProcess && now.elapsedMs - holder.introducedMs >= this.#claimWaitMs) this.#drop',
    by: 'if (isSameProcess || claimant.incarnation === 0) this.#drop',
  },
  'silent-holder-kept': {
    hunter: 'scenarios',
    what: 'a learner that does not answer keeps the stream of its next process out',
    from: 'claimed follower',
    file: leader,
    replace: "else this.#drop(holder, 'the learner has reconnected, and this connection does not answer');",
    by: 'else this.#refuseClaim(holder);',
  },
  'claim-forgotten': {
    hunter: 'scenarios',
    what: 'when a learner whose id another stream claims is dropped, that stream keeps waiting',
    from: 'claimed follower',
    file: leader,
    replace: "if (learner.claim !== undefined && this.#stage !== 'over') this.#admit(learner.claim.claimant);",
    by: '',
  },
  'unknown-observer-is-known': {
    hunter: 'scenarios',
    what: 'a server that is not in the configuration counts as a member',
    from: 'crowd of observers',
    file: leader,
    replace: 'return this.#quorum.isVoter(sid) || this.#host.isMember(sid);',
    by: 'return sid > 0 || this.#host.isMember(sid);',
  },
  'requests-not-kept-back': {
    hunter: 'scenarios',
    what: 'a learner writes all requests to the stream to its leader at once, whatever waits there, until it drops the connection',
    from: 'slow way to leader',
    file: requestQueue,
    replace: 'if (this.#waiting.length > 0 || this.#links.channelIsFull(this.#channel)) return undefined;',
    by: '',
  },
  'requests-never-sent-on': {
    what: 'requests that wait for room in the stream to the leader keep waiting when there is room',
    from: 'slow way to leader',
    file: 'packages/core/src/zab/learner.ts',
    replace: '    this.#requests.send();\n',
    by: '',
  },
  'request-bytes-kept': {
    what: 'the bytes of forwarded requests still count as waiting',
    from: 'slow way to leader',
    file: requestQueue,
    replace: 'this.bytes -= next.length;',
    by: '',
  },
  'request-bytes-given-back-twice': {
    what: 'the bytes of forwarded requests are subtracted twice',
    from: 'slow way to leader',
    file: requestQueue,
    replace: 'this.bytes -= next.length;',
    by: 'this.bytes -= 2 * next.length;',
  },
  'shared-bytes-out-of-place': {
    what: 'a packet for one learner is sent after packets for all that were written later',
    from: 'packets that are held once',
    file: channelOutput,
    replace:
      'if (this.#writer !== undefined && this.#writer.offset > 0) {\n      this.#behind.push(this.#writer);\n      this.#behindPieceBytes += this.#writer.offset;\n      this.#writer = undefined;\n    }\n    this.#behind.push(new',
    by: 'this.#behind.push(new',
  },
  'shared-bytes-from-the-start': {
    what: 'each learner also receives the beginning of shared bytes, which is not for it',
    from: 'packets that are held once',
    file: channelOutput,
    replace: 'piece instanceof SharedPiece ? piece.start : 0',
    by: '0',
  },
};
