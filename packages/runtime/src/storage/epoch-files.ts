/**
 * acceptedEpoch and currentEpoch: the epoch that a server of an ensemble has promised, and the
 * epoch of its history. A wrong one costs acknowledged txns, so nothing is guessed: a file that
 * does not contain exactly one number is refused, and a missing one is derived only where the
 * history proves its value.
 *
 * acceptedEpoch is a promise to a prospective leader: this server follows no older epoch.
 * currentEpoch says that the history with which that epoch began is on this disk. So acceptedEpoch
 * is written before currentEpoch, and the txns and the snapshot before both.
 */
import type { EpochName } from '@tskeeper/core';
import { epochMax, epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import type { Disk } from '../disk.ts';
import type { Logger } from '../logger.ts';
import { replaceFile, withFile } from './disk-helpers.ts';
import { epochRemedyFor, remedyFor } from './remedy.ts';
import { StorageRefused } from './storage-refused.ts';

/** Longer than any number can be. */
const bytesMax = 64;

/**
 * undefined when there is no such file, as in a new server. `canRefetch` decides what a refusal
 * advises; see remedy.ts.
 */
export async function readEpoch(disk: Disk, folder: string, name: EpochName, canRefetch: boolean): Promise<number | undefined> {
  const path = `${folder}/${name}`;
  if (!(await disk.exists(path))) return undefined;
  const bytes = await withFile(disk, path, (file) => file.read(0, bytesMax));
  // ZooKeeper writes no line end and reads one line.
  const text = bytes.toString('latin1').split('\n', 1)[0]!.trim();
  const epoch = Number(text);
  if (!/^\d{1,19}$/.test(text)) {
    throw new StorageRefused(
      `${path} must hold one decimal number, but holds ${bytes.length === 0 ? 'nothing' : JSON.stringify(text)}; ${epochRemedyFor(canRefetch, folder)}`,
    );
  }
  if (epoch > epochMax) throw new StorageRefused(`${path} holds epoch ${text}; the highest epoch this server supports is ${epochMax}`);
  return epoch;
}

const temporarySuffix = '.tmp';

/**
 * What a crash may have left of a write; undefined when there is nothing that could be a number.
 */
async function readTemporary(disk: Disk, folder: string, name: EpochName): Promise<number | undefined> {
  const path = `${folder}/${name}${temporarySuffix}`;
  if (!(await disk.exists(path))) return undefined;
  const text = (await withFile(disk, path, (file) => file.read(0, bytesMax))).toString('latin1').trim();
  return /^\d{1,10}$/.test(text) && Number(text) <= epochMax ? Number(text) : undefined;
}

/** Durable when it resolves. */
export async function writeEpoch(disk: Disk, folder: string, name: EpochName, epoch: number): Promise<void> {
  await replaceFile(disk, folder, name, `${name}${temporarySuffix}`, Buffer.from(String(epoch), 'latin1'));
}

export interface Epochs {
  readonly accepted: number;
  readonly current: number;
}

/** The epochs in the folder; undefined for missing files. */
export interface StoredEpochs {
  readonly accepted: number | undefined;
  readonly current: number | undefined;
  /** From files that were being written when their server stopped. */
  readonly acceptedTemporary: number | undefined;
  readonly currentTemporary: number | undefined;
}

export interface HistorySummary {
  readonly lastZxid: Zxid;
  /**
   * Whether there is a snapshot or a txn, or a folder without either is trusted
   * (snapshot.trust.empty).
   */
  readonly hasData: boolean;
  /** Whether this server can fetch its data from its leader; see remedy.ts. */
  readonly canRefetch: boolean;
}

/**
 * The epochs with which a server of an ensemble starts. Throws `StorageRefused` where they cannot
 * be known for certain.
 *
 * A folder with neither file is new, or was that of a standalone server: its last txn determines
 * both, as in ZooKeeper. acceptedEpoch alone is what a crash in the very first write leaves; then
 * it is the epoch of the last txn, and so is currentEpoch, which lies between the two. currentEpoch
 * alone does not say what has been promised since; a crash of ZooKeeper in its own first write
 * leaves that too, and ZooKeeper treats it as such a crash. A history that goes further than
 * currentEpoch is left by a crash while this server followed the leader of that epoch, before it
 * saved currentEpoch: the txns of an epoch come after all those with which it began, so
 * currentEpoch may be saved now. ZooKeeper refuses that folder, and one whose acceptedEpoch is
 * smaller than currentEpoch (ZOOKEEPER-2307), unless the right number is found in a file that was
 * not renamed (ZOOKEEPER-4269).
 */
export function resolveEpochs(found: StoredEpochs, { lastZxid, hasData, canRefetch }: HistorySummary, folder: string): Epochs {
  const epoch = epochOf(Math.max(0, lastZxid));
  const anew = epochRemedyFor(canRefetch, folder);
  if (found.accepted === undefined || found.current === undefined) {
    if (found.current !== undefined) {
      throw new StorageRefused(
        `${folder}/acceptedEpoch is missing, but currentEpoch holds ${found.current}: the epoch that this server has promised since is unknown; ${anew}`,
      );
    }
    if (found.accepted !== undefined && found.accepted !== epoch) {
      throw new StorageRefused(
        `${folder}/currentEpoch is missing, and does not follow from acceptedEpoch, which holds ${found.accepted}, and the last txn, ${formatZxid(Math.max(0, lastZxid))}; ${anew}`,
      );
    }
    return { accepted: epoch, current: epoch };
  }
  // A larger promise than required is safe, so a promise that was being written counts as made.
  const accepted = Math.max(found.accepted, found.acceptedTemporary ?? 0);
  let { current } = found;
  if (epoch > current) {
    if (epoch > accepted) {
      throw new StorageRefused(
        `the last txn in ${folder} is ${formatZxid(lastZxid)}, of epoch ${epoch}, but acceptedEpoch holds ${accepted} and currentEpoch ${current}: the files do not belong together; ${anew}`,
      );
    }
    // The file that was not renamed was complete if it contains the accepted epoch.
    current = found.currentTemporary === accepted ? accepted : epoch;
  }
  if (accepted < current) {
    throw new StorageRefused(
      `${folder}/acceptedEpoch holds ${accepted}, less than the ${current} in currentEpoch, so the epoch that this server has promised since is unknown; ${anew}`,
    );
  }
  if (current > 0 && !hasData) {
    throw new StorageRefused(
      `${folder}/currentEpoch holds ${current}, but there is neither a snapshot nor a log; bring them back, or ${remedyFor(
        canRefetch,
        { snapshots: folder },
        `restore them from a backup, or, if all data may be lost, delete ${folder}/acceptedEpoch and ${folder}/currentEpoch`,
      )}`,
    );
  }
  return { accepted, current };
}

/** The epochs of a running server: what is on the disk, and writes one after the other. */
export class EpochFiles {
  readonly #disk: Disk;
  readonly #folder: string;
  /** The durable value. */
  #accepted: number;
  #current: number;
  /** What is durable, or will be when all requested writes are complete. */
  readonly #requested: Record<EpochName, number>;
  #last: Promise<void> = Promise.resolve();
  #failure: unknown;

  private constructor(disk: Disk, folder: string, { accepted, current }: Epochs) {
    this.#disk = disk;
    this.#folder = folder;
    this.#accepted = accepted;
    this.#current = current;
    this.#requested = { acceptedEpoch: accepted, currentEpoch: current };
  }

  /**
   * Reads both files, settles what they leave open, and makes the result durable. Rejects with
   * `StorageRefused` or `DiskError`.
   */
  static async open(disk: Disk, folder: string, logger: Logger, history: HistorySummary): Promise<EpochFiles> {
    const found = {
      accepted: await readEpoch(disk, folder, 'acceptedEpoch', history.canRefetch),
      current: await readEpoch(disk, folder, 'currentEpoch', history.canRefetch),
      acceptedTemporary: await readTemporary(disk, folder, 'acceptedEpoch'),
      currentTemporary: await readTemporary(disk, folder, 'currentEpoch'),
    };
    const epochs = resolveEpochs(found, history, folder);
    if (found.current !== undefined && found.current !== epochs.current) {
      logger.warn(
        `${folder}/currentEpoch held ${found.current}, and the last txn is ${formatZxid(history.lastZxid)}: this server stopped while it joined that epoch, and starts in epoch ${epochs.current}`,
        { event: 'epoch.abandoned', path: `${folder}/currentEpoch`, epoch: found.current, zxid: formatZxid(history.lastZxid) },
      );
    }
    // Written even if it is there already: if the last process ended because a sync had failed, the
    // system regards a file as clean that the disk may not have, and a power loss would undo a
    // promise that was read, and that others rely on.
    await writeEpoch(disk, folder, 'acceptedEpoch', epochs.accepted);
    await writeEpoch(disk, folder, 'currentEpoch', epochs.current);
    await removeTemporaries(disk, folder);
    return new EpochFiles(disk, folder, epochs);
  }

  get epochs(): Epochs {
    return { accepted: this.#accepted, current: this.#current };
  }

  /**
   * Durable when it resolves. Writes happen in the order of the calls. Rejects with `DiskError`,
   * and from then on always.
   */
  save(name: EpochName, epoch: number): Promise<void> {
    const asked = this.#requested;
    if (epoch < asked[name]) throw new Error(`${name} is ${asked[name]} and cannot go back to ${epoch}`);
    if (name === 'currentEpoch' && epoch > asked.acceptedEpoch) {
      throw new Error(`currentEpoch cannot be ${epoch} while acceptedEpoch is ${asked.acceptedEpoch}`);
    }
    asked[name] = epoch;
    const written = this.#last.then(() => this.#write(name, epoch));
    this.#last = written.catch(() => undefined);
    return written;
  }

  /** Resolves when no write is in progress. */
  async whenIdle(): Promise<void> {
    await this.#last;
  }

  async #write(name: EpochName, epoch: number): Promise<void> {
    // The content of the disk after a failed write is unknown, and a later write must not build on
    // it.
    if (this.#failure !== undefined) throw this.#failure;
    if (epoch === (name === 'acceptedEpoch' ? this.#accepted : this.#current)) return;
    try {
      await writeEpoch(this.#disk, this.#folder, name, epoch);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
    if (name === 'acceptedEpoch') this.#accepted = epoch;
    else this.#current = epoch;
  }
}

async function removeTemporaries(disk: Disk, folder: string): Promise<void> {
  const names: readonly EpochName[] = ['acceptedEpoch', 'currentEpoch'];
  let any = false;
  for (const name of names) {
    const path = `${folder}/${name}${temporarySuffix}`;
    if (!(await disk.exists(path))) continue;
    await disk.remove(path);
    any = true;
  }
  if (any) await disk.syncFolder(folder);
}
