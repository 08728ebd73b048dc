/** One election: candidates that lead for a while and say that they do, while others look on. */
import type { Client } from '@tskeeper/client';
import { Election } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { History } from '../history.ts';
import { Holds, type LineRules, numberOf } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait, workWith } from './holding.ts';
import { deleteByHand, drawBeginning, linePath, storePath } from './line-of-story.ts';

export const elections: Family = {
  what: 'processes lead in turn, and write while they lead',
  marks: ['a leader acknowledged', 'a leader was deposed by hand', 'a hold was lost', 'an acknowledged leader was seen', 'nobody led'],
  draw: (random) => new ElectionStory(random),
};

class ElectionStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly beginning: RecipeStory['beginning'];
  readonly #holds = new Holds();
  readonly #acknowledged: { readonly process: string; readonly path: string; readonly seenZxid: bigint }[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    // Now and then long enough for nobody to stand.
    this.restMsMax = 1 + random.below(random.below(4) === 0 ? 2000 : 400);
    this.beginning = drawBeginning(random);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const leadership = await new Election(zk, linePath, { data: process.name }).lead(drawWait(process));
    const hold = this.#holds.enter(process, zk, leadership, 'n_');
    try {
      if (process.below(2) === 0) {
        await leadership.acknowledge();
        process.note('a leader acknowledged');
        this.#acknowledged.push({ process: process.name, path: leadership.path, seenZxid: zk.lastZxid });
      }
      await workWith(process, this.#holds, hold, storePath);
    } finally {
      hold.over();
      await leadership.resign();
    }
    return true;
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

  async left(zk: Client): Promise<readonly string[]> {
    return (await new Election(zk, linePath).candidates()).map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return [...this.#holds.judge(electionRules, history, recording), ...wrongWords(history), ...this.#missingWords(history)];
  }

  /** Who is told that it has said so is named by a znode. */
  #missingWords({ writes }: History): string[] {
    return this.#acknowledged.flatMap(({ process, path, seenZxid }) => {
      const word = writes.find((write) => write.path === wordPath && `${linePath}/${write.data}` === path);
      return word !== undefined && word.zxid <= seenZxid
        ? []
        : [`acknowledged: ${process} was told at ${seenZxid} that it has acknowledged by ${path}`];
    });
  }
}

const wordPath = `${linePath}/acknowledged`;
const electionRules: LineRules = { path: linePath, kinds: ['n_'], store: storePath, goesFirst: () => true };

/** Whoever is named there led when it was written: nobody stood ahead of it. */
function wrongWords(history: History): string[] {
  const candidates = history.below(linePath).filter(({ path }) => numberOf(path, 'n_') !== undefined);
  return history.writes.flatMap(({ path, data, zxid }) => {
    if (path !== wordPath) return [];
    const [first] = candidates.filter(({ czxid, goneZxid }) => czxid < zxid && goneZxid > zxid);
    if (first?.path === `${linePath}/${data}`) return [];
    return [`acknowledged: ${data} was written at ${zxid}, when ${first?.path ?? 'nobody'} led`];
  });
}
