/**
 * Takes snapshots of a running server: at each start, and whenever the storage says that one is
 * due. The tree is written in slices between turns, so that no client waits for a snapshot.
 */
import type { Observer } from '@tskeeper/core';
import type { Writer } from '@tskeeper/protocol';
import type { Clock } from './clock.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { ServerParts } from './server-parts.ts';
import type { Storage, StorageSink } from './storage/storage.ts';

export interface SnapshotTakerDependencies {
  readonly parts: ServerParts;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly metrics: Pick<ServerMetrics, 'snapshotTaken' | 'snapshotFailed'>;
  readonly observer: Pick<Observer, 'stepYielded'>;
  readonly serializeLastProcessedZxid: boolean;
  readonly owner: Pick<StorageSink, 'failed'>;
}

export class SnapshotTaker {
  readonly #dependencies: SnapshotTakerDependencies;
  readonly #parts: ServerParts;
  readonly #storage: Storage;
  #isDue = false;
  #underWay: Promise<void> | undefined;

  constructor(dependencies: SnapshotTakerDependencies) {
    this.#dependencies = dependencies;
    this.#parts = dependencies.parts;
    this.#storage = dependencies.storage;
  }

  /** Asks for a snapshot, at the end of the first turn in which tree and storage allow it. */
  markDue(): void {
    this.#isDue = true;
  }

  /** Never during a long job: the tree would be between two zxids. */
  maybeStart(): void {
    if (this.#isDue && !this.#storage.isTakingSnapshot && this.#parts.core.canSnapshot) this.start();
  }

  start(): void {
    this.#isDue = false;
    this.#underWay = this.#snapshot().catch((error: unknown) => this.#dependencies.owner.failed(error));
  }

  /** Settles when the last snapshot that was started has ended; undefined before the first. */
  get underWay(): Promise<void> | undefined {
    return this.#underWay;
  }

  async #snapshot(): Promise<void> {
    const { clock, metrics, serializeLastProcessedZxid } = this.#dependencies;
    const { core } = this.#parts;
    const startMs = clock.now().elapsedMs;
    const source = this.#reportingSteps(core.snapshot(serializeLastProcessedZxid));
    try {
      if (await this.#storage.takeSnapshot(core.inspect.lastZxid(), source)) metrics.snapshotTaken(clock.now().elapsedMs - startMs);
      else if (this.#parts.stage === 'serving') metrics.snapshotFailed();
    } finally {
      source.abandon();
    }
  }

  /** Notifies the observer of each step that ends during a snapshot. */
  #reportingSteps(source: { next(writer: Writer, bytesTarget: number): boolean; abandon(): void }) {
    const { observer } = this.#dependencies;
    return {
      abandon: () => source.abandon(),
      next: (writer: Writer, bytesTarget: number): boolean => {
        const isDone = source.next(writer, bytesTarget);
        if (!isDone) observer.stepYielded('snapshot');
        return isDone;
      },
    };
  }
}
