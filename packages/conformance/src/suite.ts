/**
 * Runs checks against a connect string: each in its own znode below one scratch znode, which is
 * removed at the end in any case. A check that fails, or times out, does not affect the others.
 */
import { randomBytes } from 'node:crypto';
import { type Client, connect, KeeperError, parseConnectString } from '@tskeeper/client';
import { type Check, type Need, NotApplicable, type RunnableCheck } from './check.ts';
import { runnableChecks } from './checks/all.ts';
import { Mismatch } from './expect.ts';
import { collectFacts, type Facts } from './facts.ts';
import { CheckContext, identities } from './check-context.ts';
import { formatRelease, isAtLeast, type Release } from './release.ts';

/** How to run checks. */
export interface SuiteOptions {
  /**
   * Time limit of a check, in ms, and, up to 10 seconds, of the search for a server at the
   * beginning. Default: 30 000.
   */
  readonly timeoutMs?: number | undefined;
  /** Whether to run the checks that wait until sessions have expired. Default: false. */
  readonly slow?: boolean | undefined;
  /**
   * `user:password` of the super user, for the checks that need it. Default: none; these checks are
   * not applicable.
   */
  readonly superAuth?: string | undefined;
  /**
   * Whether a check may write the configuration of the ensemble again, with the same servers.
   * Default: false.
   */
  readonly reconfig?: boolean | undefined;
  /**
   * The release of ZooKeeper to compare with. Default: what the servers report, or 3.9.5 if they
   * report none.
   */
  readonly release?: Release | undefined;
}

/** Result of a check. */
export type Outcome = 'passed' | 'failed' | 'notApplicable';

/** Result of one check, with the reason. */
export interface CheckResult {
  /** The check that was run. */
  readonly check: Check;
  /** Its result. */
  readonly outcome: Outcome;
  /** How long it took, in ms. */
  readonly durationMs: number;
  /** Why it is not applicable, or the expected and the actual value; undefined if it passed. */
  readonly reason: string | undefined;
}

const runnableByName: ReadonlyMap<string, RunnableCheck> = new Map(runnableChecks.map((check) => [check.name, check]));
const timeoutMsDefault = 30_000;
const connectMsMax = 10_000;

/** The checks of one connect string: `prepare` it, `run` checks, `close` it. */
export class Suite implements AsyncDisposable {
  /** What the servers report about themselves and show when asked. */
  readonly facts: Facts;
  /** The znode that contains everything the checks create. */
  readonly scratchPath: string;
  readonly #adminClient: Client;
  readonly #options: SuiteOptions;
  #runs = 0;

  private constructor(facts: Facts, scratchPath: string, adminClient: Client, options: SuiteOptions) {
    this.facts = facts;
    this.scratchPath = scratchPath;
    this.#adminClient = adminClient;
    this.#options = options;
  }

  /**
   * Creates the scratch znode, below the chroot if there is one, and asks the servers for their
   * facts. Rejects with a ConnectStringError, and with a KeeperError if no server can be reached
   * (ConnectionLoss), the chroot is missing (NoNode) or nothing may be created there (NoAuth).
   */
  static async prepare(connectString: string, options: SuiteOptions = {}): Promise<Suite> {
    const { servers, chroot, srvName } = parseConnectString(connectString);
    if (srvName !== undefined)
      throw new TypeError('a connect string with an SRV name does not say which servers to check; name them one by one');
    const adminClient = await connect(connectString.split('/')[0]!, {
      connectTimeoutMs: Math.min(connectMsMax, options.timeoutMs ?? timeoutMsDefault),
      auth: Object.values(identities).map((auth) => ({ scheme: 'digest', auth })),
      retry: true,
    });
    try {
      const scratchPath = `${chroot}/tskeeper-conformance-${randomBytes(6).toString('hex')}`;
      await adminClient.create(scratchPath, `checks of conformance, begun ${new Date().toISOString()}; to be deleted`);
      try {
        return new Suite(await collectFacts(adminClient, servers, scratchPath, options.release), scratchPath, adminClient, options);
      } catch (error) {
        await adminClient.deleteRecursive(scratchPath);
        throw error;
      }
    } catch (error) {
      await adminClient.close();
      throw error;
    }
  }

  /**
   * Runs one check, in its own znode. Every failure is a result; rejects with a TypeError if the
   * check is not one of `checks`. `signal` ends it early, as a failure.
   */
  async run({ name }: Check, signal?: AbortSignal): Promise<CheckResult> {
    const check = runnableByName.get(name);
    if (check === undefined) throw new TypeError(`there is no check "${name}"; \`checks\` lists all of them`);
    const begun = performance.now();
    const result = (outcome: Outcome, reason?: string): CheckResult => ({ check, outcome, reason, durationMs: performance.now() - begun });
    const notApplicableReason = this.#notApplicableReason(check);
    if (notApplicableReason !== undefined) return result('notApplicable', notApplicableReason);
    const rootPath = `${this.scratchPath}/${++this.#runs}-${check.name}`;
    const context = new CheckContext({ facts: this.facts, rootPath, superAuth: this.#options.superAuth });
    try {
      await this.#adminClient.create(rootPath);
      await this.#withTimeout(context, check.run(context), signal);
      return result('passed');
    } catch (error) {
      if (error instanceof NotApplicable) return result('notApplicable', error.message);
      return result('failed', `${reasonOf(error)}. Documentation: ${check.docs}`);
    } finally {
      await context.end();
    }
  }

  #withTimeout(context: CheckContext, running: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    const { timeoutMs = timeoutMsDefault } = this.#options;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Mismatch('in time', context.awaited, `timed out after ${timeoutMs} ms`));
      }, timeoutMs);
      const onAbort = () => reject(new Error('the check was interrupted'));
      if (signal?.aborted === true) onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
      void running.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      });
    });
  }

  /** Why the check cannot run here; undefined if it can. */
  #notApplicableReason({ since, needs = [] }: Check): string | undefined {
    const { release } = this.facts;
    if (since !== undefined && !isAtLeast(release, since)) {
      return `it came with ZooKeeper ${formatRelease(since)}, and the servers are compared with ${formatRelease(release)}`;
    }
    return needs.map((need) => this.#unmetNeedReason(need)).find((reason) => reason !== undefined);
  }

  #unmetNeedReason(need: Need): string | undefined {
    const { facts } = this;
    const { slow = false, superAuth, reconfig = false } = this.#options;
    switch (need) {
      case 'ensemble':
        if (facts.isEnsemble) return undefined;
        return facts.servers.length > 1
          ? 'the servers of the connect string are standalone, and it needs two of one ensemble'
          : 'only one server was reached, and it needs two of one ensemble in the connect string';
      case 'slow':
        return slow ? undefined : `it waits until a session of ${facts.sessionTimeoutMs.min} ms has expired; --slow allows that`;
      case 'super':
        return superAuth === undefined ? 'it needs the super user; --super sets the credentials' : undefined;
      case 'reconfig':
        return reconfig ? undefined : 'it writes the configuration of the ensemble again, with the same servers; --reconfig allows that';
      case 'extendedTypes':
        return facts.hasExtendedTypes
          ? undefined
          : 'zookeeper.extendedTypesEnabled is off: the server answers Unimplemented to a create with a TTL';
      case 'localSessions':
        return facts.localSessions === 'disabled'
          ? 'localSessionsEnabled is off: a session of one server is resumed at another'
          : undefined;
      default:
        return need satisfies never;
    }
  }

  /**
   * Removes the scratch znode with everything below it. Rejects if that fails, and says what
   * remains.
   */
  async close(): Promise<void> {
    try {
      await this.#adminClient.deleteRecursive(this.scratchPath);
    } catch (error) {
      throw new Error(`cannot remove ${this.scratchPath}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    } finally {
      await this.#adminClient.close();
    }
  }

  /** The same as `close`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Mismatch) return error.message;
  if (KeeperError.is(error))
    return `${error.op}${error.path === undefined ? '' : ` ${error.path}`}: expected success; got ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
