/** One page of the children of a znode, for servers that have the feature. */
import { ErrorCode, operations } from '@tskeeper/protocol';
import { type Stat, toClientStat } from '../stat.ts';
import { copyBytes } from './multi.ts';
import type { Operation } from './operation.ts';
import type { WatchRecorder } from './single.ts';

/** A position among the children: after this one. */
export interface ChildCursor {
  readonly czxid: number;
  readonly name: string | null;
}

/** The position before the first child. */
export const firstChild: ChildCursor = { czxid: -1, name: null };

export interface PageSettings {
  readonly after: ChildCursor;
  /** Later children are left out; -1 for none. */
  readonly untilZxid: number;
  readonly countMax: number;
  readonly data: boolean;
}

export interface PageChild {
  readonly name: string;
  /** undefined without data, and for a child that may not be read. */
  readonly data: Uint8Array | null | undefined;
  readonly stat: Stat | undefined;
  /** Its data do not fit into a page. */
  readonly isTooLong: boolean;
}

export interface ChildrenPage {
  readonly children: readonly PageChild[];
  readonly parentStat: Stat;
  /** Where the next page begins; undefined after the last. */
  readonly next: ChildCursor | undefined;
}

/** `bytesMax`: the longest list of children, in bytes. */
export function childrenPageOperation(
  path: string,
  settings: PageSettings,
  bytesMax: number,
  recordWatch: WatchRecorder,
): Operation<ChildrenPage> {
  const { after, untilZxid, countMax } = settings;
  const request = {
    path,
    watch: recordWatch !== undefined,
    afterZxid: after.czxid,
    afterName: after.name,
    untilZxid,
    countMax,
    bytesMax,
  };
  const operation = settings.data ? operations.getChildrenDataPage : operations.getChildrenPage;
  return {
    opCode: operation.opCode,
    watches: recordWatch && { path, kinds: ['child'] },
    write: (writer) => operation.request.write(writer, request),
    read: (reader) => {
      const reply = operation.reply.read(reader);
      recordWatch?.('child');
      const children = reply.children.map((child): PageChild => {
        if (typeof child === 'string') return { name: child, data: undefined, stat: undefined, isTooLong: false };
        if ('stat' in child) return { name: child.name, data: copyBytes(child.data), stat: toClientStat(child.stat), isTooLong: false };
        return { name: child.name, data: undefined, stat: undefined, isTooLong: child.err === ErrorCode.MarshallingError };
      });
      const last = children.at(-1);
      // Without a last child, a page that is not the last would be the same again.
      const next = reply.isLast || last === undefined ? undefined : { czxid: reply.lastZxid, name: last.name };
      return { children, parentStat: toClientStat(reply.stat), next };
    },
  };
}
