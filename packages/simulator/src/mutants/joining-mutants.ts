/**
 * Mutants of a learner's synchronisation with its leader that show only after a failed election,
 * after a power loss during a snapshot, or after a long time.
 */
import type { Mutant } from './mutant.ts';

const leader = 'packages/core/src/zab/leader.ts';

export const joiningMutants: Readonly<Record<string, Mutant>> = {
  'ahead-of-leader-counts': {
    hunter: 'explorer',
    what: 'a learner that has more than its leader counts for the quorum of the epoch, and its extra txns are truncated',
    from: 'ZOOKEEPER-335, P7',
    file: leader,
    replace: 'if (currentEpoch > ownEpoch || (currentEpoch === ownEpoch && packet.zxid > lastZxid)) {',
    by: 'if (currentEpoch > 1_000_000) {',
  },
  'uncut-log-looks-again': {
    hunter: 'explorer',
    what: 'a learner that cannot truncate its log looks for a leader again and gets the same TRUNC',
    from: 'found here: snapshot ahead',
    file: 'packages/core/src/zab/learner.ts',
    replace: 'this.#wantsSnapshot = true;',
    by: 'this.#wantsSnapshot = false;',
  },
  'later-epoch-left-out': {
    hunter: 'explorer',
    what: "a voter that has accepted a later epoch than its leader's cannot join",
    from: 'found here: snapshot ahead',
    file: leader,
    replace: 'learner.acceptedEpoch > this.#epoch && this.#votes(learner)',
    by: 'learner.acceptedEpoch > this.#epoch + 1_000_000',
  },
  'old-snapshots-first': {
    hunter: 'crash-states',
    what: "the old snapshots are deleted before the leader's snapshot has its name",
    from: 'ZOOKEEPER-3642, F3',
    file: 'packages/runtime/src/storage/storage.ts',
    replace: 'await nameSnapshot(this.#disk, unnamed);\n      await removeOlderHistory(this.#disk, this.#folders, unnamed.name);',
    by: 'await removeOlderHistory(this.#disk, this.#folders, unnamed.name);\n      await nameSnapshot(this.#disk, unnamed);',
  },
  'install-not-finished': {
    hunter: 'scenarios',
    what: 'a start does not delete the history that a half-installed snapshot of the leader replaces',
    from: 'found here: half-installed snapshot',
    file: 'packages/runtime/src/storage/storage.ts',
    replace: 'await finishInstall(this.#disk, this.#folders, this.#hooks.snappy, this.#hooks.logger);',
    by: 'void finishInstall;',
  },
  'promise-taken-for-durable': {
    hunter: 'scenarios',
    what: 'a start treats the acceptedEpoch that it read as durable',
    from: 'found here: promise in the cache',
    file: 'packages/runtime/src/storage/epoch-files.ts',
    replace: "await writeEpoch(disk, folder, 'acceptedEpoch', epochs.accepted);\n    await writeEpoch",
    by: "if (found.accepted !== epochs.accepted) await writeEpoch(disk, folder, 'acceptedEpoch', epochs.accepted);\n    if (found.current !== epochs.current) await writeEpoch",
  },
};
