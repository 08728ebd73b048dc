/** One election: candidates lead for a while and acknowledge it, while others observe. */
import type { Client } from '@tskeeper/client';
import { Election, type Leader } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { History, ZnodeLife } from '../history.ts';
import { Holds, type LineRules, numberOf } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait, workWith } from './holding.ts';
import { deleteByHand, drawBeginning, linePath, storePath } from './line-of-story.ts';
import { endsOf, isThere, none, type Phase, phasesOf } from './onlooker-rules.ts';
import { Onlooker } from './onlooker.ts';

export const elections: Family = {
  what: 'processes lead in turn, and write while they lead',
  marks: [
    'a leader acknowledged',
    'a leader closed its session',
    'a leader was deposed by hand',
    'a hold was lost',
    'an acknowledged leader was seen',
    'nobody led',
    'a leader was looked on at',
    'an onlooker was up to date',
    'an onlooker had seen enough',
  ],
  draw: (random) => new ElectionStory(random),
};

class ElectionStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly beginning: RecipeStory['beginning'];
  readonly #holds = new Holds();
  readonly #onlookers = new Map<Client, Onlooker>();
  /** All observers. */
  readonly #looking: Onlooker[] = [];
  readonly #acknowledged: { readonly process: string; readonly path: string; readonly seenZxid: bigint }[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    // Sometimes long enough that there is no candidate.
    this.restMsMax = 1 + random.below(random.below(4) === 0 ? 2000 : 400);
    this.beginning = drawBeginning(random);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    // Only two, as each costs some requests for every change of the candidates.
    if (process.number < 2) await this.#lookOn(process, zk);
    const leadership = await new Election(await process.source(zk), linePath, { data: process.name }).lead(drawWait(process));
    process.wentOn(zk, leadership.zk);
    const own = leadership.zk as Client;
    const hold = this.#holds.enter(process, own, leadership, 'n_');
    const acknowledges = process.below(2) === 0;
    try {
      if (acknowledges) {
        await leadership.acknowledge();
        process.note('a leader acknowledged');
        this.#acknowledged.push({ process: process.name, path: leadership.path, seenZxid: own.lastZxid });
      }
      await workWith(process, this.#holds, hold, storePath);
    } finally {
      hold.over();
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
    process.note('a leader closed its session');
    void zk.create(`${linePath}/farewell`, null, { mode: 'ephemeral' }).catch(() => undefined);
    await process.pause(process.below(20));
    await zk.close();
  }

  async #lookOn(process: RecipeProcess, zk: Client): Promise<void> {
    const onlooker = this.#onlookers.get(zk);
    if (onlooker === undefined) this.#beginToLookOn(process, zk);
    else if (process.below(4) === 0 && (await onlooker.catchesUp(linePath))) process.note('an onlooker was up to date');
  }

  #beginToLookOn(process: RecipeProcess, zk: Client): void {
    const onlooker = new Onlooker(process, zk);
    this.#onlookers.set(zk, onlooker);
    this.#looking.push(onlooker);
    const enough = new AbortController();
    if (process.below(4) === 0) {
      process.clock.after(process.below(2000), () => {
        process.note('an onlooker had seen enough');
        this.#onlookers.delete(zk);
        enough.abort(new Error('has seen enough'));
      });
    }
    const shownOf = (leader: Leader | undefined) => {
      if (leader === undefined) return new Map<string, string>();
      process.note('a leader was looked on at');
      const { path, data, acknowledged } = leader;
      return new Map([[linePath, leaderText(path, new TextDecoder().decode(data ?? undefined), acknowledged)]]);
    };
    onlooker.checkWhenConnected(linePath, () => process.note('an onlooker was up to date'));
    void onlooker.follow(new Election(onlooker.attentive, linePath).observe({ signal: enough.signal }), shownOf, enough.signal);
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const election = new Election(zk, linePath);
    const leader = await election.leader({ timeoutMs: 2000 });
    if (leader === undefined) operator.note('nobody led');
    else if (leader.acknowledged) operator.note('an acknowledged leader was seen');
    if (leader === undefined || operator.below(2) === 0) return;
    operator.note('a leader was deposed by hand');
    await deleteByHand(zk, leader.path);
  }

  /** No process is a candidate any more, and observers must have seen that. */
  async left(zk: Client): Promise<readonly string[]> {
    for (const onlooker of this.#onlookers.values()) if (!onlooker.isOver) onlooker.upToDate(zk.lastZxid);
    return (await new Election(zk, linePath).candidates()).map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    const leaders = new Map([[linePath, leadersOf(history)]]);
    return [
      ...this.#holds.judge(electionRules, history, recording),
      ...wrongWords(history),
      ...this.#missingWords(history),
      ...this.#looking.flatMap((onlooker) => onlooker.judge(leaders)),
    ];
  }

  /** An acknowledgement that a leader was told to have made must be in a znode. */
  #missingWords({ writes }: History): string[] {
    return this.#acknowledged.flatMap(({ process, path, seenZxid }) => {
      const word = writes.find((write) => write.path === wordPath && `${linePath}/${write.data}` === path);
      return word !== undefined && word.zxid <= seenZxid
        ? []
        : [`acknowledged: ${process} was told at ${seenZxid} that it acknowledged ${path}`];
    });
  }
}

const wordPath = `${linePath}/acknowledged`;
const electionRules: LineRules = { path: linePath, kinds: ['n_'], store: storePath, goesFirst: () => true };

function candidatesOf(history: History): ZnodeLife[] {
  return history.below(linePath).filter(({ path }) => numberOf(path, 'n_') !== undefined);
}

/** A candidate named in an acknowledgement led when that was written: no other was before it. */
function wrongWords(history: History): string[] {
  const candidates = candidatesOf(history);
  return history.writes.flatMap(({ path, data, zxid }) => {
    if (path !== wordPath) return [];
    const [first] = candidates.filter(({ czxid, goneZxid }) => czxid < zxid && goneZxid > zxid);
    if (first?.path === `${linePath}/${data}`) return [];
    return [`acknowledged: ${data} was written at ${zxid}, when ${first?.path ?? 'no candidate'} led`];
  });
}

/** The leaders, from when to when, and whether they were acknowledged. */
function leadersOf(history: History): Phase[] {
  const candidates = candidatesOf(history);
  const words = history.below(linePath).filter(({ path }) => path === wordPath);
  return phasesOf([...candidates, ...words].flatMap(endsOf), (at) => {
    const first = candidates.find((life) => isThere(life, at));
    if (first === undefined) return none;
    const word = words.find((life) => isThere(life, at));
    return leaderText(first.path, first.data, `${linePath}/${word?.data}` === first.path);
  });
}

function leaderText(path: string, data: string, acknowledged: boolean): string {
  return `${path} of ${data}${acknowledged ? ', acknowledged' : ''}`;
}
