import { type Client, op } from '@tskeeper/client';
import { juteMaxBufferDefault } from '@tskeeper/protocol';
import {
  argumentsOf,
  type CommandCall,
  validPath,
  CommandFailed,
  numberOption,
  legacyVersion,
  pathOf,
  type ZkCommand,
} from '../../zk/command.ts';
import { pathsBelow } from '../../zk/subtree.ts';

export const deleteNode: ZkCommand = {
  name: 'delete',
  usage: '[-v version] path',
  summary: 'delete a znode that has no children',
  options: [{ name: 'v', value: 'version', description: 'only if its data has this version' }],
  argumentsMax: 2,
  jsonShape: '{"path": "/a"}',
  async run(call) {
    const [path = '', version] = argumentsOf(call, 1);
    validPath(path);
    const expectedVersion =
      version === undefined
        ? numberOption(call, 'v', -1)
        : legacyVersion(call, version, 'delete path [version]', 'delete [-v version] path');
    const client = await call.client();
    await client.delete(path, { version: expectedVersion, ...call.options });
    await call.answer(undefined, { path });
  },
};

const batchSizeDefault = 1000;
/** How many batches may be in flight at once; the number of zkCli. */
const batchesInFlightMax = 10;

export const deleteAll: ZkCommand = {
  name: 'deleteall',
  usage: 'path [-b batch size]',
  summary: 'delete a znode and all its descendants',
  options: [{ name: 'b', value: 'batch size', description: 'znodes per transaction (default: 1000; 0: one by one)' }],
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "deleted": 3}',
  async run(call) {
    const path = pathOf(call);
    const batch = numberOption(call, 'b', batchSizeDefault);
    const client = await call.client();
    // Leaves first.
    const paths = (await pathsBelow(client, path, call.options)).toReversed();
    if (batch > 0) await deleteInBatches(client, paths, batch, call);
    else for (const one of paths) await client.delete(one, call.options);
    await call.answer(undefined, { path, deleted: paths.length });
  },
};

/**
 * A batch of long paths must fit into one request; half of jute.maxbuffer leaves room for the other
 * fields.
 */
const batchBytesMax = Math.floor(juteMaxBufferDefault / 2);

function batchesOf(paths: readonly string[], size: number): string[][] {
  const batches: string[][] = [];
  let bytes = Infinity;
  for (const path of paths) {
    bytes += Buffer.byteLength(path);
    if (bytes > batchBytesMax || batches.at(-1)!.length === size) {
      batches.push([]);
      bytes = Buffer.byteLength(path);
    }
    batches.at(-1)!.push(path);
  }
  return batches;
}

async function deleteInBatches(client: Client, paths: readonly string[], size: number, call: CommandCall): Promise<void> {
  const batches = batchesOf(paths, size);
  let failed: unknown;
  let next = 0;
  // A server applies the batches of one session in order, so leaves are still deleted before their
  // parents.
  const worker = async () => {
    while (next < batches.length && failed === undefined) {
      const batch = batches[next++]!;
      try {
        await client.multi(
          batch.map((path) => op.delete(path)),
          call.options,
        );
      } catch (error) {
        failed ??= error;
      }
    }
  };
  await Promise.all(Array.from({ length: batchesInFlightMax }, worker));
  if (failed === undefined) return;
  if (failed instanceof Error) call.note(failed.message);
  throw new CommandFailed('Failed to delete some node(s) in the subtree!');
}
