/**
 * Many participants begin together, and end together. The double barrier of ZooKeeper's recipes
 * page: none begins before x are present, and none that has ended proceeds before all have ended.
 *
 *     /b                        a container
 *       ├─ _c_2b7e...-p         a participant (EPHEMERAL)
 *       ├─ _c_91aa...-p
 *       └─ ready                a round is on: the one that saw x creates it, the last deletes it
 *
 * barrier-entry.ts enters, barrier-exit.ts leaves.
 */
import type { Acl, Data } from '@tskeeper/client';
import { checkArgumentCount, checkFunction, checkName, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { Hold } from '../wait-queue/hold.ts';
import { Deadline } from '../waiting/deadline.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { checkBarrierSize } from './barrier-size.ts';
import type { BarrierContext } from './barrier-context.ts';
import { enterBarrier } from './barrier-entry.ts';
import { runInside, Participation } from './participation.ts';
import { BarrierExit } from './barrier-exit.ts';

/** How to participate in a double barrier. */
export interface DoubleBarrierOptions {
  /** The part after the guid in the name of the participant's znode, for people. Default: `p`. */
  readonly name?: string | undefined;
  /** Data of the participant's znode, which identify it to people. Default: none. */
  readonly data?: Data | undefined;
  /**
   * The ACL of the znodes of participants, of `ready`, and of the barrier itself if it has to be
   * created. Default: all permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/**
 * Many participants begin together, and end together: the double barrier of ZooKeeper's recipes.
 * For any number of rounds.
 */
export class DoubleBarrier {
  /** The znode above those of the participants. */
  readonly path: string;
  /** How many participants have to be present for a round to begin. More may come. */
  readonly size: number;
  readonly #source: SessionSource;
  readonly #context: Omit<BarrierContext, 'zk'>;

  /**
   * Sends no request. The znode need not exist. All participants use the same `size`. Throws a
   * TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, size: number, options: DoubleBarrierOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'DoubleBarrier', arguments.length);
    const { name = 'p', data = null, acl } = options;
    checkBarrierSize(size);
    checkName(name, 'the name of a participant');
    this.path = path;
    this.size = size;
    this.#source = source;
    this.#context = { path, size, name, data, acl };
  }

  /**
   * Resolves when `size` participants are present, including this one; at once during a round.
   * Survives lost connections. Rejects with a RecipeError: TimedOut; Lost, when another client
   * deletes the znode of this participant; with the signal's reason; with SessionExpired and the
   * like; and with NoAuth, InvalidACL or QuotaExceeded when the znode cannot be created. In each
   * case the znode is deleted.
   */
  async enter(options: WaitOptions = {}): Promise<Participation> {
    checkArgumentCount(arguments.length, 1, 'enter(options)');
    const what = `the other participants of double barrier ${this.path}`;
    using deadline = new Deadline(this.#source, options, what);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, async (zk) => {
      using sessionDeadline = new Deadline(zk, { signal }, what);
      const context: BarrierContext = { zk, ...this.#context };
      const entered = await enterBarrier(context, sessionDeadline);
      return new Participation(zk, new Hold(entered.node), (release, within) => new BarrierExit(context, entered).run(release, within));
    });
  }

  /**
   * Enters, calls `work`, and leaves: resolves with the result of `work` when the others have left,
   * too. Rejects as `enter` does; as `work` does, without waiting for the others; and as
   * `Participation.leave` does. `options` limit the entry, and then the exit.
   */
  async run<Result>(work: (participation: Participation) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    return runInside(await this.enter(options), work, options);
  }
}
