/** The two requests that are only about watches. Paths are those of the server. */
import { AddWatchMode, ErrorCode, OpCode, operations, readErrorReply, WatcherType } from '@tskeeper/protocol';
import { RequestFailure } from '../keeper-error.ts';
import type { Operation } from './operation.ts';

/**
 * `added` is called in the order of the stream: after the events of earlier watches, before the
 * first event of this one. Throws a TypeError for an unknown mode.
 */
export function addWatchOperation(mode: keyof typeof AddWatchMode, path: string, added: () => void): Operation<void> {
  if (!Object.hasOwn(AddWatchMode, mode))
    throw new TypeError(`unknown watch mode "${mode}"; use one of ${Object.keys(AddWatchMode).join(', ')}`);
  return {
    opCode: OpCode.addWatch,
    watches: { path, kinds: [mode] },
    write: (writer) => operations.addWatch.request.write(writer, { path, mode: AddWatchMode[mode] }),
    read: (reader) => {
      const { err } = readErrorReply(reader);
      if (err !== ErrorCode.Ok) throw new RequestFailure(err, 'refused');
      added();
    },
  };
}

export function removeWatchesOperation(type: keyof typeof WatcherType, path: string, removed: () => void): Operation<void> {
  return {
    opCode: OpCode.removeWatches,
    write: (writer) => operations.removeWatches.request.write(writer, { path, type: WatcherType[type] }),
    read: removed,
  };
}
