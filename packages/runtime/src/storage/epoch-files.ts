/**
 * acceptedEpoch and currentEpoch: what a member of an ensemble has promised and where it stands. A wrong one costs acknowledged txns,
 * so nothing is guessed: a file that does not hold exactly one number is refused.
 */
import { epochMax } from '@tskeeper/protocol';
import type { Disk } from '../disk.ts';
import { replaceFile, withFile } from './disk-helpers.ts';
import { StorageRefused } from './storage-refused.ts';

export type EpochName = 'acceptedEpoch' | 'currentEpoch';

/** Longer than any number can be. */
const bytesMax = 64;

/** undefined when there is no such file, which is the state of a new member. */
export async function readEpoch(disk: Disk, folder: string, name: EpochName): Promise<number | undefined> {
  const path = `${folder}/${name}`;
  if (!(await disk.exists(path))) return undefined;
  const bytes = await withFile(disk, path, (file) => file.read(0, bytesMax));
  // ZooKeeper writes no line end and reads one line.
  const text = bytes.toString('latin1').split('\n', 1)[0]!.trim();
  const epoch = Number(text);
  if (!/^\d{1,19}$/.test(text)) {
    throw new StorageRefused(
      `${path} should hold one decimal number and holds ${bytes.length === 0 ? 'nothing' : JSON.stringify(text)}; restore it from a backup, or empty the data folder and let this server fetch everything from the ensemble anew`,
    );
  }
  if (epoch > epochMax) throw new StorageRefused(`${path} holds epoch ${text}; the latest epoch this server can work in is ${epochMax}`);
  return epoch;
}

/** Durable when it resolves. */
export async function writeEpoch(disk: Disk, folder: string, name: EpochName, epoch: number): Promise<void> {
  await replaceFile(disk, folder, name, `${name}.tmp`, Buffer.from(String(epoch), 'latin1'));
}
