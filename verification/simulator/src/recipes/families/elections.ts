/** One election: candidates lead for a while and acknowledge it, while others observe. */
import type { Client } from '@tskeeper/client';
import { Election, type Leader } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { ZnodeHistory, ZnodeLife } from '../znode-history.ts';
import { MutualExclusionChecker, type WaitQueueRules, numberOf } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWaitOptions, workUnderHold } from './work-under-hold.ts';
import { deleteAsOperator, drawSeedZnodes, waitQueuePath, storePath } from './family-helpers.ts';
import { creationAndDeletion, isThere, none, type Phase, phasesOf } from './observation-rules.ts';
import { RecipeObserver } from './recipe-observer.ts';

export const elections: Family = {
  description: 'processes lead in turn, and write while they lead',
  marks: [
    'a leader acknowledged',
    'a leader closed its session',
    'an operator deposed a leader',
    'a hold was lost',
    'an acknowledged leader was observed',
    'no leader was observed',
    'a leader was observed',
    'an observer was up to date',
    'an observer was closed',
  ],
  drawRun: (random) => new ElectionRun(random),
};

class ElectionRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly seedZnodes: FamilyRun['seedZnodes'];
  readonly #holds = new MutualExclusionChecker();
  readonly #currentObservers = new Map<Client, RecipeObserver>();
  /** All observers. */
  readonly #allObservers: RecipeObserver[] = [];
  readonly #acknowledged: { readonly process: string; readonly path: string; readonly seenZxid: bigint }[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    // Sometimes long enough that there is no candidate.
    this.pauseMsMax = 1 + random.below(random.below(4) === 0 ? 2000 : 400);
    this.seedZnodes = drawSeedZnodes(random);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    // Only two, as each costs some requests for every change of the candidates.
    if (process.number < 2) await this.#observe(process, zk);
    const leadership = await new Election(await process.source(zk), waitQueuePath, { data: process.name }).lead(drawWaitOptions(process));
    process.noteNextSession(zk, leadership.client);
    const own = leadership.client as Client;
    const hold = this.#holds.acquired(process, own, leadership, 'n_');
    const acknowledges = process.below(2) === 0;
    try {
      if (acknowledges) {
        await leadership.acknowledge();
        process.hitMark('a leader acknowledged');
        this.#acknowledged.push({ process: process.name, path: leadership.path, seenZxid: own.lastZxid });
      }
      await workUnderHold(process, this.#holds, hold, storePath);
    } finally {
      hold.end();
      if (acknowledges && !process.isHealed && process.below(3) === 0) await this.#closeSession(process, own);
      else await leadership.resign();
    }
    return true;
  }

  /**
   * Like a program that ends: its acknowledgement and its znode disappear at once, just when
   * observers read, since something else has happened right before.
   */
  async #closeSession(process: RecipeProcess, zk: Client): Promise<void> {
    process.hitMark('a leader closed its session');
    void zk.create(`${waitQueuePath}/farewell`, null, { mode: 'ephemeral' }).catch(() => undefined);
    await process.sleep(process.below(20));
    await zk.close();
  }

  async #observe(process: RecipeProcess, zk: Client): Promise<void> {
    const observer = this.#currentObservers.get(zk);
    if (observer === undefined) this.#startObserver(process, zk);
    else if (process.below(4) === 0 && (await observer.checkCaughtUp(waitQueuePath))) process.hitMark('an observer was up to date');
  }

  #startObserver(process: RecipeProcess, zk: Client): void {
    const observer = new RecipeObserver(process, zk);
    this.#currentObservers.set(zk, observer);
    this.#allObservers.push(observer);
    const enough = new AbortController();
    if (process.below(4) === 0) {
      process.clock.after(process.below(2000), () => {
        process.hitMark('an observer was closed');
        this.#currentObservers.delete(zk);
        enough.abort(new Error('has seen enough'));
      });
    }
    const shownOf = (leader: Leader | undefined) => {
      if (leader === undefined) return new Map<string, string>();
      process.hitMark('a leader was observed');
      const { path, data, acknowledged } = leader;
      return new Map([[waitQueuePath, leaderText(path, new TextDecoder().decode(data ?? undefined), acknowledged)]]);
    };
    observer.checkWhenConnected(waitQueuePath, () => process.hitMark('an observer was up to date'));
    void observer.follow(new Election(observer.trackedClient, waitQueuePath).observe({ signal: enough.signal }), shownOf, enough.signal);
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const election = new Election(zk, waitQueuePath);
    const leader = await election.leader({ timeoutMs: 2000 });
    if (leader === undefined) operator.hitMark('no leader was observed');
    else if (leader.acknowledged) operator.hitMark('an acknowledged leader was observed');
    if (leader === undefined || operator.below(2) === 0) return;
    operator.hitMark('an operator deposed a leader');
    await deleteAsOperator(zk, leader.path);
  }

  /** All candidates have left, and observers must have seen that. */
  async leftovers(zk: Client): Promise<readonly string[]> {
    for (const observer of this.#currentObservers.values()) if (!observer.isOver) observer.expectUpToDate(zk.lastZxid);
    return (await new Election(zk, waitQueuePath).contenders()).map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    const leaders = new Map([[waitQueuePath, leadersOf(history)]]);
    return [
      ...this.#holds.check(electionRules, history, recording),
      ...wrongAcknowledgements(history),
      ...this.#missingAcknowledgements(history),
      ...this.#allObservers.flatMap((observer) => observer.judge(leaders)),
    ];
  }

  /** An acknowledgement that succeeded for a leader must be in a znode. */
  #missingAcknowledgements({ writes }: ZnodeHistory): string[] {
    return this.#acknowledged.flatMap(({ process, path, seenZxid }) => {
      const word = writes.find((write) => write.path === acknowledgedPath && `${waitQueuePath}/${write.data}` === path);
      return word !== undefined && word.zxid <= seenZxid
        ? []
        : [`acknowledged: the acknowledgement of ${path} by ${process} returned at ${seenZxid}, and is missing`];
    });
  }
}

const acknowledgedPath = `${waitQueuePath}/acknowledged`;
const electionRules: WaitQueueRules = { path: waitQueuePath, kinds: ['n_'], storePath: storePath, goesFirst: () => true };

function candidatesOf(history: ZnodeHistory): ZnodeLife[] {
  return history.childrenOf(waitQueuePath).filter(({ path }) => numberOf(path, 'n_') !== undefined);
}

/** A candidate named in an acknowledgement led when that was written: no other was before it. */
function wrongAcknowledgements(history: ZnodeHistory): string[] {
  const candidates = candidatesOf(history);
  return history.writes.flatMap(({ path, data, zxid }) => {
    if (path !== acknowledgedPath) return [];
    const [first] = candidates.filter(({ czxid, deletedZxid }) => czxid < zxid && deletedZxid > zxid);
    if (first?.path === `${waitQueuePath}/${data}`) return [];
    return [`acknowledged: ${data} was written at ${zxid}, when ${first?.path ?? 'no candidate'} led`];
  });
}

/** The leaders, from when to when, and whether they were acknowledged. */
function leadersOf(history: ZnodeHistory): Phase[] {
  const candidates = candidatesOf(history);
  const words = history.childrenOf(waitQueuePath).filter(({ path }) => path === acknowledgedPath);
  return phasesOf([...candidates, ...words].flatMap(creationAndDeletion), (at) => {
    const first = candidates.find((life) => isThere(life, at));
    if (first === undefined) return none;
    const word = words.find((life) => isThere(life, at));
    return leaderText(first.path, first.data, `${waitQueuePath}/${word?.data}` === first.path);
  });
}

function leaderText(path: string, data: string, acknowledged: boolean): string {
  return `${path} of ${data}${acknowledged ? ', acknowledged' : ''}`;
}
