/**
 * Mutants of a learner's synchronisation with its leader that show only after a failed election,
 * after a power loss during a snapshot, or after a long time.
 */
import type { Mutant } from './mutant.ts';

export const joiningMutants: Readonly<Record<string, Mutant>> = {
  'ahead-of-leader-counts': {
    detector: 'explorer',
    description: 'a learner that has more than its leader counts for the quorum of the epoch, and its extra txns are truncated',
    origin: 'ZOOKEEPER-335, P7',
    symbol: 'Leader.#onAckEpoch',
    original: 'if (currentEpoch > ownEpoch || (currentEpoch === ownEpoch && packet.zxid > lastZxid)) {',
    replacement: 'if (currentEpoch > 1_000_000) {',
  },
  'trunc-impossible-looks-again': {
    detector: 'explorer',
    description: 'a learner that cannot truncate its log looks for a leader again and gets the same TRUNC',
    origin: 'found here: snapshot ahead',
    symbol: 'Learner.truncationRefused',
    original: 'this.#needsSnapshot = true;',
    replacement: 'this.#needsSnapshot = false;',
  },
  'later-epoch-voter-ignored': {
    detector: 'explorer',
    description: "a voter that has accepted a later epoch than its leader's cannot join",
    origin: 'found here: snapshot ahead',
    symbol: 'LearnerTable.#accept',
    original: 'learner.acceptedEpoch > epoch && this.isVoting(learner)',
    replacement: 'learner.acceptedEpoch > epoch + 1_000_000',
  },
  'old-snapshots-first': {
    detector: 'crash-states',
    description: "the old snapshots are deleted before the leader's snapshot has its name",
    origin: 'ZOOKEEPER-3642, F3',
    symbol: 'Storage.#install',
    original: 'await nameSnapshot(this.#disk, unnamed);\n      await removeOlderHistory(this.#disk, this.#folders, unnamed.name);',
    replacement: 'await removeOlderHistory(this.#disk, this.#folders, unnamed.name);\n      await nameSnapshot(this.#disk, unnamed);',
  },
  'snapshot-install-not-finished': {
    detector: 'scenarios',
    description: 'a start does not delete the history that a half-installed snapshot of the leader replaces',
    origin: 'found here: half-installed snapshot',
    symbol: 'Storage.open',
    original: 'await finishInstall(this.#disk, this.#folders, this.#hooks.snappy, this.#hooks.logger);',
    replacement: 'void finishInstall;',
  },
  'accepted-epoch-assumed-durable': {
    detector: 'scenarios',
    description: 'a start treats the acceptedEpoch that it read as durable',
    origin: 'found here: promise in the cache',
    symbol: 'EpochFiles.open',
    original: "await writeEpoch(disk, folder, 'acceptedEpoch', epochs.accepted);\n    await writeEpoch",
    replacement:
      "if (found.accepted !== epochs.accepted) await writeEpoch(disk, folder, 'acceptedEpoch', epochs.accepted);\n    if (found.current !== epochs.current) await writeEpoch",
  },
};
