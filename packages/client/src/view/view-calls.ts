/**
 * Calls below the root of one view: validates paths, prepends the chroot, and records the watches
 * of the view. Results, errors and events contain paths as the program knows them.
 */
import { type CallDefaults, CallRunner } from '../calls/call-runner.ts';
import { Chroot } from '../chroot.ts';
import type { PlainReadOptions } from '../client-options.ts';
import { checkPath } from '../operations/create.ts';
import type { WatchRecorder } from '../operations/single.ts';
import type { CallOptions } from '../calls/call-options.ts';
import type { Operation } from '../operations/operation.ts';
import type { Session } from '../session/session.ts';
import type { WatchListener } from '../watched-event.ts';
import { ViewWatches } from './view-watches.ts';

export class ViewCalls {
  readonly session: Session;
  readonly chroot: Chroot;
  readonly runner: CallRunner;
  readonly watches: ViewWatches;

  constructor(session: Session, chroot: string, defaults: CallDefaults) {
    this.session = session;
    this.chroot = new Chroot(chroot);
    this.runner = new CallRunner(session, chroot, defaults);
    this.watches = new ViewWatches(session, this.chroot);
  }

  /** `isRepeatable`: the call changes nothing, so it may be repeated even without an answer. */
  onPath<Result>(
    method: string,
    path: string,
    options: CallOptions,
    make: (serverPath: string) => Operation<Result>,
    isRepeatable = false,
  ): Promise<Result> {
    const makeOnPath = () => {
      checkPath(path);
      return make(this.chroot.prepend(path));
    };
    return this.runner.call(method, path, options, makeOnPath, isRepeatable);
  }

  readOnPath<Result>(
    method: string,
    path: string,
    options: PlainReadOptions,
    make: (serverPath: string) => Operation<Result>,
  ): Promise<Result> {
    return this.read(method, path, options, () => {
      checkPath(path);
      return make(this.chroot.prepend(path));
    });
  }

  /** `path` is for errors and traces only. */
  read<Result>(method: string, path: string | undefined, options: PlainReadOptions, make: () => Operation<Result>): Promise<Result> {
    if (options.linearizable !== true) return this.runner.call(method, path, options, make, true);
    return this.runner.readAfterSync(method, path, options, make);
  }

  watchRecorder(serverPath: string, watch: WatchListener | true | undefined): WatchRecorder {
    return watch && ((kind) => this.watches.add(kind, serverPath, watch));
  }
}
