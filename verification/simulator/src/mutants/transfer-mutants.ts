/**
 * Mutants of transfers of the lead. Whatever goes wrong in one, an election follows and nothing
 * acknowledged is lost; so scenarios notice that time was lost, or a write that had to wait.
 */
import type { Mutant } from './mutant.ts';

export const transferMutants: Readonly<Record<string, Mutant>> = {
  'transfer-one-behind': {
    detector: 'scenarios',
    description: 'the lead is handed over although the target has not acknowledged the last txns',
    origin: 'A62',
    symbol: 'LeadershipTransfer.#has',
    original: 'return target.unackedProposals.length === 0;',
    replacement: 'return target.unackedProposals.length <= 5;',
  },
  'transfer-names-receiver': {
    detector: 'scenarios',
    description: 'HANDOVER names the learner to which it is sent',
    origin: 'A62',
    symbol: 'LeadershipTransfer.#announce',
    original: 'writeDesignatedLeader(writer, successor);',
    replacement: 'writeDesignatedLeader(writer, learner.sid);',
  },
  'transfer-to-old-leader': {
    detector: 'scenarios',
    description: 'a learner connects to its old leader again after HANDOVER',
    origin: 'A62',
    symbol: 'Learner.#onHandover',
    original: 'this.#successor = readDesignatedLeader(packet.data);',
    replacement: 'this.#successor = this.#start.leader;',
  },
  'transfer-forgets-successor': {
    detector: 'scenarios',
    description: 'the leader that has handed the lead over starts an election',
    origin: 'A62',
    symbol: 'Leader.successor',
    original: 'return this.#broadcast.successor ?? this.#transfer.successor;',
    replacement: 'return this.#broadcast.successor;',
  },
  'held-writes-stay': {
    detector: 'scenarios',
    description: 'writes wait for ever after a transfer that was given up',
    origin: 'A62',
    symbol: 'LeadershipTransfer.#end',
    original: "if (outcome !== 'handed over') this",
    replacement: "if (outcome === 'handed over') this",
  },
  'held-writes-reversed': {
    detector: 'scenarios',
    description: 'writes that waited for a transfer are ordered from the last to the first',
    origin: 'A62',
    symbol: 'HeldWrites.push',
    original: 'this.#waiting.push(',
    replacement: 'this.#waiting.unshift(',
  },
  'held-session-lost': {
    detector: 'scenarios',
    description: 'a new session that waits for a transfer is ordered as a request of a session',
    origin: 'A62',
    symbol: 'LocalSequencer.openSession',
    original: 'this.#held.push(origin, undefined, timeoutMs, 0);',
    replacement: 'this.#held.push(origin, undefined, undefined, 0);',
  },
};
