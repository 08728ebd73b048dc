/**
 * The calls that may send several requests, within one time-out and one signal. Each step is a call
 * of its own for the tracer, and a failure of a step is reported as a failure of the whole call.
 *
 * A call without such options sends one request, like those of `PlainZnodeCalls`.
 */
import { ErrorCode } from '@tskeeper/protocol';
import { CallDeadline } from '../calls/call-deadline.ts';
import { toCallError } from '../calls/call-runner.ts';
import { type ListedChild, listChildren } from '../calls/children.ts';
import { createWithExtras, hasExtras } from '../calls/create.ts';
import { deleteRecursive, type DeleteRecursiveResult } from '../calls/delete-recursive.ts';
import { deleteGuaranteed } from '../calls/guaranteed-delete.ts';
import { deleteIdempotently, setDataIdempotently } from '../calls/idempotent.ts';
import { ensurePaths, type ParentsToCreate } from '../calls/parents.ts';
import { update, type Updater } from '../calls/update.ts';
import { walk, type WalkedZnode } from '../calls/walk.ts';
import type {
  ChildrenOptions,
  CreateOptions,
  DeleteOptions,
  EnsurePathOptions,
  SetDataOptions,
  UpdateOptions,
  WalkOptions,
} from '../client-options.ts';
import { RequestFailure } from '../keeper-error.ts';
import { checkCreatePath, checkPath, type Data, isSequential } from '../operations/create.ts';
import { type CreateResult, type GetDataResult, syncOperation } from '../operations/single.ts';
import { ancestorsOf, parentOf } from '../paths.ts';
import type { CallOptions } from '../calls/call-options.ts';
import type { Stat } from '../stat.ts';
import { PlainZnodeCalls } from './plain-znode-calls.ts';
import { ViewCalls } from './view-calls.ts';

export class CompoundCalls {
  readonly #calls: ViewCalls;
  readonly #znodes: PlainZnodeCalls;

  constructor(calls: ViewCalls, znodes: PlainZnodeCalls) {
    this.#calls = calls;
    this.#znodes = znodes;
  }

  create(method: string, path: string, data: Data | undefined, options: CreateOptions): Promise<CreateResult> {
    if (!hasExtras(options)) return this.#znodes.create(path, data, options, method);
    const { session, runner } = this.#calls;
    const { signal: _signal, timeoutMs: _timeoutMs, retry, parents, protection, idempotent, ...settings } = options;
    const { mode, acl } = settings;
    return runner.runCompound(method, path, options, (deadline) => {
      checkCreatePath(path, mode ?? 'persistent');
      return createWithExtras({
        session,
        znodes: this.#znodes,
        path,
        data,
        settings,
        extras: { parents, protection, idempotent },
        retry,
        deadline,
        retries: () => runner.idempotentRetries(options, deadline),
        parents: (parentMode) => this.#parentsToCreate(parentOf(path), { mode: parentMode, acl, retry }, deadline),
      });
    });
  }

  ensurePath(path: string, options: EnsurePathOptions): Promise<void> {
    return this.#calls.runner.runCompound('ensurePath', path, options, (deadline) => {
      checkPath(path);
      return ensurePaths(this.#parentsToCreate(path, options, deadline));
    });
  }

  #parentsToCreate(path: string, { mode = 'persistent', acl, retry }: EnsurePathOptions, deadline: CallDeadline): ParentsToCreate {
    const { session, chroot, runner } = this.#calls;
    const znodes = new PlainZnodeCalls(new ViewCalls(session, '', { retry: undefined }));
    const serverPath = chroot.prepend(path);
    const paths = serverPath === '/' ? [] : [...ancestorsOf(serverPath), serverPath];
    const stripChroot = (each: string) => chroot.strip(each);
    return { znodes, stripChroot, paths, settings: { mode, acl }, deadline, retries: runner.retriesFor(retry, deadline) };
  }

  delete(path: string, options: DeleteOptions): Promise<void> {
    const { version, retry, idempotent, guaranteed } = options;
    if (idempotent !== true && guaranteed !== true) return this.#znodes.delete(path, options);
    const { session, runner } = this.#calls;
    return runner.runCompound('delete', path, options, (deadline) => {
      const deleteOnce = () =>
        idempotent === true
          ? deleteIdempotently(this.#znodes, path, version, runner.idempotentRetries(options, deadline))
          : this.#znodes.delete(path, { version, retry, ...deadline.requestLimits });
      if (guaranteed !== true) return deleteOnce();
      return deleteGuaranteed(session, deleteOnce, (limits) => this.#znodes.delete(path, { version, retry: false, ...limits }));
    });
  }

  deleteRecursive(path: string, options: CallOptions): Promise<DeleteRecursiveResult> {
    const { session, chroot, runner } = this.#calls;
    const deadline = new CallDeadline(session, options);
    return runner.runSteps('deleteRecursive', path, async () => {
      checkPath(path);
      const serverPath = chroot.prepend(path);
      if (serverPath === '/' || serverPath === '/zookeeper' || serverPath.startsWith('/zookeeper/'))
        throw badArgumentsFailure('servers need the root and /zookeeper; delete the znodes below instead');
      return deleteRecursive(this.#znodes, path, deadline, runner.retriesFor(options.retry, deadline));
    });
  }

  setData(method: string, path: string, data: Data, options: SetDataOptions): Promise<Stat> {
    if (options.idempotent !== true) return this.#znodes.setData(path, data, options, method);
    const { runner } = this.#calls;
    return runner.runCompound(method, path, options, (deadline) =>
      setDataIdempotently(this.#znodes, path, data, options.version, runner.idempotentRetries(options, deadline)),
    );
  }

  update(path: string, updater: Updater, options: UpdateOptions): Promise<GetDataResult | undefined> {
    const { create: createOption, idempotent = false, retry } = options;
    const create = createOption === true ? {} : createOption === false ? undefined : createOption;
    const { session, runner } = this.#calls;
    return runner.runCompound('update', path, options, async (deadline) => {
      checkPath(path);
      if (create?.mode !== undefined && isSequential(create.mode))
        throw badArgumentsFailure(`update cannot be used with the mode ${create.mode}: each create of a sequential znode has another path`);
      return update(session, this.#znodes, path, updater, { create, idempotent, retry }, deadline);
    });
  }

  async *children(path: string, options: ChildrenOptions): AsyncGenerator<ListedChild, void, undefined> {
    const { pageSize = 1000, data = false, watch, linearizable = false, retry } = options;
    const deadline = new CallDeadline(this.#calls.session, options);
    try {
      checkPath(path);
      // A client never uses a server that is behind what it has seen, so each page sees this sync.
      if (linearizable) await this.#calls.onPath('sync', path, { ...deadline.requestLimits, retry }, syncOperation, true);
      yield* listChildren(this.#znodes, path, { pageSize, data, watch, retry }, deadline);
    } catch (error) {
      throw toCallError('children', path, error);
    }
  }

  getChildrenWithData(path: string, options: Omit<ChildrenOptions, 'data'>): Promise<readonly ListedChild[]> {
    return this.#calls.runner.runSteps('getChildrenWithData', path, async () => {
      const children: ListedChild[] = [];
      for await (const child of this.children(path, { ...options, data: true })) children.push(child);
      return children;
    });
  }

  async *walk(path: string, options: WalkOptions): AsyncGenerator<WalkedZnode, void, undefined> {
    const { concurrency = 16, data = false, retry } = options;
    const deadline = new CallDeadline(this.#calls.session, options);
    try {
      checkPath(path);
      yield* walk(this.#znodes, path, { concurrency, data, retry }, deadline);
    } catch (error) {
      throw toCallError('walk', path, error);
    }
  }
}

function badArgumentsFailure(reason: string): RequestFailure {
  return new RequestFailure(ErrorCode.BadArguments, 'notSent', reason);
}
