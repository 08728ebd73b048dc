/**
 * Builds the replicated state from what the storage finds: a snapshot in pieces, then the txns
 * after it.
 */
import type { CoreOptions } from '@tskeeper/core';
import { fileLimits, Replica, replicaOptions, type SnapshotLimits, SnapshotLoader } from '@tskeeper/core/internal';
import type { Txn, TxnDigest, TxnHeader, Zxid } from '@tskeeper/protocol';
import type { Logger } from './logger.ts';
import type { Random } from './random.ts';
import type { RecoveryTarget } from './storage/recovery.ts';
import type { SnapshotSink } from './storage/snapshot-files.ts';

export class ReplicaRecovery implements RecoveryTarget {
  readonly #options: ReturnType<typeof replicaOptions>;
  readonly #limits: SnapshotLimits;
  readonly #logger: Logger;
  #replica: Replica | undefined;

  constructor(options: CoreOptions, random: Random, logger: Logger) {
    this.#options = replicaOptions(options, random);
    this.#limits = fileLimits(options.juteMaxBuffer + options.juteMaxBufferExtra);
    this.#logger = logger;
  }

  beginSnapshot(zxid: Zxid): SnapshotSink {
    const loader = new SnapshotLoader(this.#options, this.#limits);
    this.#replica = undefined;
    let contentZxid: Zxid | undefined;
    return {
      feed: (piece) => loader.feed(piece),
      finish: () => {
        const snapshot = loader.finish();
        // A first, empty snapshot has no digest either.
        const digestComparison = snapshot.digest === undefined && zxid > 0 ? 'once one agrees' : 'at once';
        this.#replica = new Replica(this.#options, { snapshot, zxid, digestComparison });
        contentZxid = Math.max(zxid, snapshot.lastZxid ?? 0, snapshot.digest?.zxid ?? 0);
        if (snapshot.ttlLikeOwnerCount > 0) {
          this.#logger.warn(
            `${snapshot.ttlLikeOwnerCount} znodes look like TTL znodes, but extendedTypesEnabled is off: this server treats them as ephemerals of unknown sessions and deletes them; to keep them, set extendedTypesEnabled=true`,
            { event: 'recovery.ttl-owners', count: snapshot.ttlLikeOwnerCount },
          );
        }
      },
      contentZxid: () => contentZxid,
    };
  }

  apply(header: TxnHeader, txn: Txn, digest: TxnDigest | undefined): void {
    const job = this.#current().apply(header, txn, digest);
    // At the start no turn has to be kept short.
    if (job !== undefined) while (job.next().done !== true);
  }

  /** The complete state. */
  finish(): Replica {
    const replica = this.#current();
    replica.removeOrphanedEphemerals();
    const { missingCount } = replica.tree.acls;
    if (missingCount > 0) {
      this.#logger.warn(
        `${missingCount} ACLs that znodes refer to are missing from the snapshot; only the super user can reach those znodes until they get another ACL`,
        { event: 'recovery.acls-missing', count: missingCount },
      );
    }
    return replica;
  }

  #current(): Replica {
    this.#replica ??= new Replica(this.#options);
    return this.#replica;
  }
}
