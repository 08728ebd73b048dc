/**
 * More of the zoo: leaders and learners with one thing wrong, bugs that ZooKeeper had among them. Each must be caught by the explorer (`npm run
 * explore`), since the stories of the simulator are those of a server that stands alone.
 */
import type { Mutant } from './mutant.ts';

const learner = 'packages/core/src/zab/learner.ts';
const leader = 'packages/core/src/zab/leader.ts';

export const zabMutants: Readonly<Record<string, Mutant>> = {
  'newleader-before-log': {
    what: 'currentEpoch is written before the history that was sent is durable',
    from: 'ZOOKEEPER-4643',
    file: learner,
    replace: 'if (this.#durable < this.#logged) return;\n    this.#stage',
    by: 'this.#stage',
  },
  'newleader-before-epoch': {
    what: 'NEWLEADER is acknowledged before currentEpoch is on disk',
    from: 'ZOOKEEPER-3911',
    file: learner,
    replace: "this.#out.saveEpoch('currentEpoch', this.#epoch);",
    by: "this.#out.saveEpoch('currentEpoch', this.#epoch);\n    this.#ack(makeZxid(this.#epoch, 0));",
  },
  'ack-before-log': {
    what: 'a proposal is acknowledged before it is durable',
    from: 'ZOOKEEPER-4646',
    file: learner,
    replace: 'next !== undefined && next <= this.#durable;',
    by: 'next !== undefined;',
  },
  'epoch-accepted-unwritten': {
    what: 'an epoch is accepted before it is on disk',
    from: 'P31',
    file: learner,
    replace: "this.#stage = 'saving acceptedEpoch';\n      this.#out.saveEpoch('acceptedEpoch', this.#epoch);",
    by: "this.#out.saveEpoch('acceptedEpoch', this.#epoch);\n      this.#acceptEpoch(this.#start.currentEpoch);",
  },
  'trunc-keeps-memory': {
    what: 'a learner whose log was cut keeps the state that it had',
    from: 'ZOOKEEPER-2845',
    file: 'packages/core/src/peer.ts',
    replace: 'this.#replica = replica;\n    this.#logged = this.#durable = lastZxid;',
    by: 'this.#logged = this.#durable = lastZxid;',
  },
  'commit-without-quorum': {
    what: 'a leader commits what only it has',
    from: 'P32',
    file: leader,
    replace: 'if (!this.#quorum.containsQuorum(this.#acked)) break;',
    by: '',
  },
  'outstanding-not-sent': {
    what: 'a learner that joins is not sent what is proposed and not committed',
    from: 'ZOOKEEPER-4394',
    file: leader,
    replace: 'backlog.raw(packet);\n        learner.unacked.push',
    by: 'learner.unacked.push',
  },
  'epoch-used-twice': {
    what: 'a leader takes the highest epoch that it has heard of, and not the one after it',
    from: 'ZOOKEEPER-335',
    file: leader,
    replace: 'this.#epoch = this.#acceptedMax + 1;',
    by: 'this.#epoch = Math.max(1, this.#acceptedMax);',
  },
};
