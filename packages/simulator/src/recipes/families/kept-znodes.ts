/**
 * Znodes that processes keep as long as they want, through all of their sessions: as members of a
 * group, as service instances, or as persistent nodes.
 */
import type { Client } from '@tskeeper/client';
import { Group, type GroupNaming, PersistentNode, type PersistentNodeOptions, ServiceRegistry, Sessions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawStandstill, drawWait } from './holding.ts';
import { type KeptOnlooker, lookOnAtMembers, useInstances } from './kept-onlookers.ts';
import { judgeKeptInTheEnd, judgeToldOfKept, type KeptInTheEnd, type KeptRules, type ToldOfKept, wordOf } from './kept-rules.ts';
import { deleteByHand, haveForAWhile, pathsBelow } from './line-of-story.ts';
import { none, phasesOfZnode } from './onlooker-rules.ts';

export const keptZnodes: Family = {
  what: 'processes keep a znode each, and change what it says',
  marks: [
    'a znode was kept',
    'a znode was kept in a later session',
    'a znode was given other data',
    'a znode was kept no longer',
    'a kept znode was suspended',
    'a kept znode was deleted by hand',
    'a kept znode was not there for a while',
    'a name was of another session for a while',
    'who looks on at members was up to date',
    'the instances of a service were up to date',
    'an instance of a service was used',
  ],
  draw: (random) => new KeptStory(random),
};

const folder = '/kept';

/** What `PersistentNode` and `Registration` have in common. */
type Kept = Pick<PersistentNode, 'path' | 'state' | 'signal' | 'onStateChange'>;

interface Keeping {
  readonly process: RecipeProcess;
  readonly sessions: Sessions;
  /** All sessions so far. */
  readonly sessionIds: Set<bigint>;
  readonly kept: Kept;
  readonly change: ((text: string, wait: Wait) => Promise<void>) | undefined;
  readonly close: () => Promise<void>;
  /** The text it was created with. */
  readonly first: string;
  changes: number;
  /** The texts it may have: the last it was given, and those it may have been given since. */
  may: Set<string>;
}

interface Wait {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** How all processes of a run keep their znodes. */
interface Way extends KeptRules {
  readonly keep: (
    process: RecipeProcess,
    sessions: Sessions,
    text: string,
    wait: Wait,
  ) => Promise<Omit<Keeping, 'process' | 'sessions' | 'sessionIds' | 'first' | 'changes' | 'may'>>;
  /** Observes what is kept, if there is a recipe for that. */
  readonly lookOn?: ((process: RecipeProcess, zk: Client) => KeptOnlooker) | undefined;
  /** What an observer shows of a znode with these data. */
  readonly shownAs: (data: string) => string;
  /** Whether znodes are named after the process, so that another session may take the name. */
  readonly hasNames: boolean;
}

class KeptStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #way: Way;
  readonly #keeping = new WeakMap<RecipeProcess, Keeping>();
  readonly #sessions = new WeakMap<RecipeProcess, Sessions>();
  readonly #onlookers = new Map<Client, KeptOnlooker>();
  readonly #told: ToldOfKept[] = [];
  /** The keepers at the end of their programs. */
  readonly #last: KeptInTheEnd[] = [];
  #texts = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.restMsMax = 1 + random.below(300);
    const ways = [members('plain', random.below(2) === 0), members('party', false), members('shallowParty', false)];
    const nodes = [nodesOf('ephemeralSequential'), nodesOf('persistent'), nodesOf('ephemeral')];
    this.#way = [...ways, ...nodes, services(random.below(2) === 0)][random.below(7)]!;
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    // Only two, as each costs a read for every change.
    if (process.number < 2) await this.#lookOn(process, zk);
    const keeping = this.#keeping.get(process) ?? (await this.#begin(process));
    const { kept, change, close, sessions } = keeping;
    drawStandstill(process, 12);
    try {
      if (change !== undefined && (process.isHealed || process.below(3) > 0)) await this.#change(process, keeping, change);
      if (!process.isHealed && process.below(4) === 0) await process.pause(process.below(1500));
      if (process.below(6) > 0) return kept.state === 'present';
      this.#keeping.delete(process);
      process.note('a znode was kept no longer');
      await close();
      return true;
    } finally {
      if (kept.signal.aborted) {
        this.#keeping.delete(process);
        if (sessions.client.closedBecause !== 'moved' && !process.stopping.aborted)
          process.complain(`${kept.path} was not kept any longer: ${String(kept.signal.reason)}`);
      }
    }
  }

  async #lookOn(process: RecipeProcess, zk: Client): Promise<void> {
    const { lookOn } = this.#way;
    if (lookOn === undefined) return;
    const before = this.#onlookers.get(zk);
    if (before === undefined) this.#onlookers.set(zk, lookOn(process, zk));
    else await before.turn();
  }

  async #begin(process: RecipeProcess): Promise<Keeping> {
    const sessions = await this.#sessionsOf(process);
    const text = `text-${++this.#texts}`;
    const sessionIds = new Set<bigint>();
    const forget = sessions.each(({ sessionId }) => sessionIds.add(sessionId));
    const begun = await this.#way.keep(process, sessions, text, waitOf(process)).catch((error: unknown) => {
      forget();
      throw error;
    });
    const keeping: Keeping = { ...begun, process, sessions, sessionIds, first: text, changes: 0, may: new Set([text]) };
    this.#keeping.set(process, keeping);
    process.note('a znode was kept');
    if (keeping.kept.state === 'present') this.#tell(keeping, text);
    keeping.kept.onStateChange((state) => {
      if (state === 'suspended') process.note('a kept znode was suspended');
      if (state === 'absent') process.note('a kept znode was not there for a while');
      if (state === 'present' && sessionIds.size > 1) process.note('a znode was kept in a later session');
    });
    return keeping;
  }

  /** From the first turn to the end of the program. */
  async #sessionsOf(process: RecipeProcess): Promise<Sessions> {
    const before = this.#sessions.get(process);
    if (before?.signal.aborted === false) return before;
    const sessions = await Sessions.start(() => process.session());
    if (before === undefined) process.stopping.addEventListener('abort', () => this.#end(process));
    this.#sessions.set(process, sessions);
    return sessions;
  }

  async #change(process: RecipeProcess, keeping: Keeping, change: NonNullable<Keeping['change']>): Promise<void> {
    // Sometimes the text it was created with.
    const text = ++keeping.changes % 3 === 0 ? keeping.first : `text-${++this.#texts}`;
    keeping.may.add(text);
    await change(text, waitOf(process));
    keeping.may = new Set([text]);
    process.note('a znode was given other data');
    this.#tell(keeping, text);
  }

  #tell(keeping: Keeping, text: string): void {
    const { process, sessionIds: sessions, kept } = keeping;
    this.#told.push({ process: process.name, sessions, path: kept.path, text, seenZxid: keeping.sessions.client.lastZxid });
  }

  #end(process: RecipeProcess): void {
    const keeping = this.#keeping.get(process);
    if (keeping === undefined) return;
    const { kept, sessionIds, sessions, may, close } = keeping;
    const { name, nowMs } = process;
    const known = {
      process: name,
      sessions: sessionIds,
      path: kept.path,
      session: sessions.client.sessionId,
      may: new Set(may),
      atMs: nowMs,
    };
    if (kept.state === 'present') this.#last.push(known);
    void close();
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const { parent, hasNames } = this.#way;
    if (hasNames && operator.below(2) === 0) {
      const path = `${parent}/host-${operator.below(this.processes)}`;
      await deleteByHand(zk, path);
      // As if a process that had just died had it.
      if (await haveForAWhile(operator, zk, path, 1000)) operator.note('a name was of another session for a while');
      return;
    }
    const victim = (await pathsBelow(zk, parent))[operator.below(3)];
    if (victim === undefined) return;
    operator.note('a kept znode was deleted by hand');
    await deleteByHand(zk, victim);
  }

  /** No process keeps anything any more, and observers must have seen that. */
  left(zk: Client): Promise<readonly string[]> {
    for (const { onlooker } of this.#onlookers.values()) if (!onlooker.isOver) onlooker.upToDate(zk.lastZxid);
    return pathsBelow(zk, this.#way.parent);
  }

  judge({ history }: Evidence): readonly string[] {
    const onlookers = [...this.#onlookers.values()];
    const paths = new Set(onlookers.length === 0 ? [] : history.below(this.#way.parent).map(({ path }) => path));
    const phases = new Map([...paths].map((path) => [path, phasesOfZnode(path, history, this.#way.shownAs)]));
    return [
      ...judgeToldOfKept(this.#told, this.#way, history),
      ...judgeKeptInTheEnd(this.#last, this.#way, history),
      ...onlookers.flatMap(({ onlooker }) => onlooker.judge(phases)),
    ];
  }
}

function waitOf(process: RecipeProcess): Wait {
  return { signal: process.stopping, ...drawWait(process) };
}

/** A name that belongs to the process slot. */
function nameOf({ number }: RecipeProcess): string {
  return `host-${number}`;
}

function members(naming: GroupNaming, takesOver: boolean): Way {
  const isNameData = naming !== 'plain';
  return {
    parent: folder,
    outlivesSessions: false,
    hasNames: !isNameData,
    shownAs: wordOf,
    lookOn: (process, zk) => lookOnAtMembers(process, zk, new Group(zk, folder, { naming }), isNameData),
    keep: async (process, sessions, text, wait) => {
      // A name that is the data of the znode cannot change, so each keeper has a name of its own.
      const name = isNameData ? text : nameOf(process);
      const node = await new Group(sessions, folder, { naming }).join(name, { ...(isNameData ? {} : { data: text, takesOver }), ...wait });
      return { kept: node, change: isNameData ? undefined : (data, limits) => node.setData(data, limits), close: () => node.close() };
    },
  };
}

function nodesOf(mode: NonNullable<PersistentNodeOptions['mode']>): Way {
  return {
    parent: folder,
    outlivesSessions: mode === 'persistent',
    hasNames: mode === 'ephemeral',
    shownAs: wordOf,
    keep: async (process, sessions, text, wait) => {
      const node = new PersistentNode(sessions, `${folder}/${nameOf(process)}`, text, { mode });
      try {
        await node.ready(wait);
      } catch (error) {
        await node.close();
        throw error;
      }
      return { kept: node, change: (data, limits) => node.setData(data, limits), close: () => node.close() };
    },
  };
}

function services(takesOver: boolean): Way {
  return {
    parent: `${folder}/api`,
    outlivesSessions: false,
    hasNames: true,
    // Data that are not an instance are ignored.
    shownAs: (data) => (data === '' ? none : wordOf(data)),
    lookOn: (process, zk) => useInstances(process, zk, new ServiceRegistry<string>(zk, folder), 'api'),
    keep: async (process, sessions, payload, wait) => {
      const registry = new ServiceRegistry<string>(sessions, folder);
      const registration = await registry.register({ name: 'api', address: nameOf(process), payload }, { takesOver, ...wait });
      return {
        kept: registration,
        change: (text, limits) => registration.update({ payload: text }, limits),
        close: () => registration.unregister(),
      };
    },
  };
}
