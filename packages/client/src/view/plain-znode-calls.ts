/**
 * The calls on one znode that send one request (two for a linearizable read). Calls that send
 * several requests consist of these.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { PageCalls } from '../calls/children.ts';
import type { ReadOptions, VersionOptions, WatchOption } from '../client-options.ts';
import { type ChildrenPage, childrenPageOperation, type PageSettings } from '../operations/children-pages.ts';
import { checkCreatePath, type CreateSettings, type Data } from '../operations/create.ts';
import {
  createOperation,
  type CreateResult,
  deleteOperation,
  existsOperation,
  getChildrenOperation,
  type GetChildrenResult,
  getDataOperation,
  type GetDataResult,
  setDataOperation,
} from '../operations/single.ts';
import type { CallOptions } from '../calls/call-options.ts';
import type { Stat } from '../stat.ts';
import type { ViewCalls } from './view-calls.ts';

export class PlainZnodeCalls implements PageCalls {
  readonly #calls: ViewCalls;

  constructor(calls: ViewCalls) {
    this.#calls = calls;
  }

  get sessionId(): SessionId {
    return this.#calls.session.id;
  }

  /** `method`: what the program has called. */
  create(path: string, data: Data | undefined, options: CreateSettings & CallOptions, method = 'create'): Promise<CreateResult> {
    const { runner, chroot } = this.#calls;
    return runner.call(method, path, options, () => {
      checkCreatePath(path, options.mode ?? 'persistent');
      return createOperation(chroot.prepend(path), data, options, (serverPath) => chroot.strip(serverPath));
    });
  }

  delete(path: string, options: VersionOptions): Promise<void> {
    return this.#calls.onPath('delete', path, options, (serverPath) => deleteOperation(serverPath, options.version ?? -1));
  }

  exists(path: string, options: ReadOptions): Promise<Stat | null> {
    return this.#calls.readOnPath('exists', path, options, (serverPath) =>
      existsOperation(serverPath, this.#calls.watchRecorder(serverPath, options.watch)),
    );
  }

  getData(path: string, options: ReadOptions): Promise<GetDataResult> {
    return this.#calls.readOnPath('getData', path, options, (serverPath) =>
      getDataOperation(serverPath, this.#calls.watchRecorder(serverPath, options.watch)),
    );
  }

  /** `method`: what the program has called. */
  setData(path: string, data: Data, options: VersionOptions, method = 'setData'): Promise<Stat> {
    return this.#calls.onPath(method, path, options, (serverPath) => setDataOperation(serverPath, data, options.version ?? -1));
  }

  childrenPage(path: string, settings: PageSettings, options: CallOptions & WatchOption): Promise<ChildrenPage | undefined> {
    const { runner, chroot, session } = this.#calls;
    const { features, calls } = session;
    return runner.runWithRetries('children', path, options, true, async (limits) => {
      for (;;) {
        const hasPages = features.has('childrenPages');
        if (hasPages === false) return undefined;
        if (hasPages === undefined) {
          await calls.perform(features.question(), limits);
          continue;
        }
        const serverPath = chroot.prepend(path);
        return calls.perform(
          childrenPageOperation(serverPath, settings, session.packetBytesMax, this.#calls.watchRecorder(serverPath, options.watch)),
          limits,
        );
      }
    });
  }

  getChildren(path: string, options: ReadOptions): Promise<GetChildrenResult> {
    return this.#calls.readOnPath('getChildren', path, options, (serverPath) =>
      getChildrenOperation(serverPath, this.#calls.watchRecorder(serverPath, options.watch)),
    );
  }
}
