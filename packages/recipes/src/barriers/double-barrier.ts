/**
 * Many begin together, and end together. The double barrier of ZooKeeper's recipes page: nobody begins before x are there, and nobody who has ended goes on before
 * all have ended.
 *
 *     /b                        a container
 *       ├─ _c_2b7e...-p         a participant (EPHEMERAL)
 *       ├─ _c_91aa...-p
 *       └─ ready                open: made by the one who saw x of them, taken away by the last
 *
 * In is entrance.ts, out is exit.ts.
 */
import type { Acl, Data } from '@tskeeper/client';
import { checkCount, checkFunction, checkName, checkPlace, checkSettings } from '../given.ts';
import { Held } from '../line/held.ts';
import { Limit } from '../waiting/limit.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { checkSize } from './check-size.ts';
import type { Doors } from './doors.ts';
import { enter } from './entrance.ts';
import { during, Participation } from './participation.ts';
import { Exit } from './exit.ts';

/** How one takes part in a double barrier. */
export interface DoubleBarrierOptions {
  /** What stands in the name of the participant's znode behind the guid, for people. Default: `p`. */
  readonly name?: string | undefined;
  /** Data of the participant's znode, by which people tell who it is. Default: none. */
  readonly data?: Data | undefined;
  /** Of the znodes of participants, of `ready`, and of the barrier itself if it has to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** Many begin together, and end together: the double barrier of ZooKeeper's recipes. Serves any number of rounds. */
export class DoubleBarrier {
  /** The znode below which participants are. */
  readonly path: string;
  /** How many have to be there for a round to begin. More may come. */
  readonly size: number;
  readonly #source: SessionSource;
  readonly #doors: Omit<Doors, 'zk'>;

  /**
   * Nothing is asked of a server yet. The znode need not exist. `size` is the same for all who take part. Throws a TypeError for what is no client or no
   * path.
   */
  constructor(source: SessionSource, path: string, size: number, options: DoubleBarrierOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'DoubleBarrier', arguments.length);
    const { name = 'p', data = null, acl } = options;
    checkSize(size);
    checkName(name, 'the name of a participant');
    this.path = path;
    this.size = size;
    this.#source = source;
    this.#doors = { path, size, name, data, acl };
  }

  /**
   * Resolves when `size` participants are there, this one among them; at once when a round is on. Survives lost connections. Rejects with a RecipeError: TimedOut; Lost, when
   * somebody deletes the znode of this participant; with the signal's reason; with SessionExpired and the like; and with NoAuth, InvalidACL, QuotaExceeded
   * when the znode cannot be made. In each case the znode is deleted.
   */
  async enter(options: WaitOptions = {}): Promise<Participation> {
    checkCount(arguments.length, 1, 'enter(options)');
    const what = `a way into the double barrier ${this.path}`;
    using limit = new Limit(this.#source, options, what);
    const { signal } = limit;
    return await inSessions(this.#source, signal, async (zk) => {
      using ofSession = new Limit(zk, { signal }, what);
      const doors: Doors = { zk, ...this.#doors };
      const entered = await enter(doors, ofSession);
      return new Participation(zk, new Held(entered.place), (release, within) => new Exit(doors, entered).pass(release, within));
    });
  }

  /**
   * Enters, calls `work`, and leaves: resolves with what `work` gave when the others have left, too. Rejects as `enter` does; as `work` does, without waiting for
   * the others; and as `Participation.leave` does. `options` bound the way in, and then the way out.
   */
  async run<Result>(work: (participation: Participation) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    return during(await this.enter(options), work, options);
  }
}
