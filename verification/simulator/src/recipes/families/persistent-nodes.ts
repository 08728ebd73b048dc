/**
 * Znodes that processes keep as long as they want, through all of their sessions: as members of a
 * group, as service instances, or as persistent nodes.
 */
import type { Client } from '@tskeeper/client';
import { Group, type GroupNaming, PersistentNode, type PersistentNodeOptions, ServiceDiscovery, Sessions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { maybeFreeze, drawWaitOptions } from './work-under-hold.ts';
import { type PersistentNodeObserver, observeMembers, observeInstances } from './persistent-node-observers.ts';
import {
  checkFinalNodes,
  checkReportedNodes,
  type FinalNode,
  type PersistentNodeRules,
  type ReportedNode,
  textIn,
} from './persistent-node-rules.ts';
import { deleteAsOperator, holdEphemeralBriefly, childPaths } from './family-helpers.ts';
import { none, phasesOfZnode } from './observation-rules.ts';

export const persistentNodes: Family = {
  description: 'processes keep a znode each, and change what it says',
  marks: [
    'a persistent node was created',
    'a persistent node was created again in a later session',
    'a persistent node was given other data',
    'a persistent node was closed',
    'a persistent node was suspended',
    'an operator deleted a persistent node',
    'a persistent node was missing for a while',
    'a persistent node belonged to another session for a while',
    'a membership observer was up to date',
    'the instances of a service were up to date',
    'an instance of a service was used',
  ],
  drawRun: (random) => new PersistentNodeRun(random),
};

const folder = '/kept';

/** What `PersistentNode` and `Registration` have in common. */
type NodeHandle = Pick<PersistentNode, 'path' | 'state' | 'signal' | 'onStateChange'>;

interface KeptNode {
  readonly process: RecipeProcess;
  readonly sessions: Sessions;
  /** All sessions so far. */
  readonly sessionIds: Set<bigint>;
  readonly handle: NodeHandle;
  readonly change: ((text: string, wait: Wait) => Promise<void>) | undefined;
  readonly close: () => Promise<void>;
  /** The text it was created with. */
  readonly firstText: string;
  changes: number;
  /** The texts it may have: the last it was given, and those it may have been given since. */
  allowedTexts: Set<string>;
}

interface Wait {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** How all processes of a run keep their znodes. */
interface NodeVariant extends PersistentNodeRules {
  readonly keep: (
    process: RecipeProcess,
    sessions: Sessions,
    text: string,
    wait: Wait,
  ) => Promise<Omit<KeptNode, 'process' | 'sessions' | 'sessionIds' | 'firstText' | 'changes' | 'allowedTexts'>>;
  /** Observes what is kept, if there is a recipe for that. */
  readonly observe?: ((process: RecipeProcess, zk: Client) => PersistentNodeObserver) | undefined;
  /** What an observer shows of a znode with these data. */
  readonly shownAs: (data: string) => string;
  /** Whether znodes are named after the process, so that another session may take the name. */
  readonly hasNames: boolean;
}

class PersistentNodeRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #variant: NodeVariant;
  readonly #nodes = new WeakMap<RecipeProcess, KeptNode>();
  readonly #sessions = new WeakMap<RecipeProcess, Sessions>();
  readonly #observers = new Map<Client, PersistentNodeObserver>();
  readonly #reported: ReportedNode[] = [];
  /** The keepers at the end of their programs. */
  readonly #final: FinalNode[] = [];
  #texts = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.pauseMsMax = 1 + random.below(300);
    const ways = [members('plain', random.below(2) === 0), members('party', false), members('shallowParty', false)];
    const nodes = [nodesOf('ephemeralSequential'), nodesOf('persistent'), nodesOf('ephemeral')];
    this.#variant = [...ways, ...nodes, services(random.below(2) === 0)][random.below(7)]!;
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    // Only two, as each costs a read for every change.
    if (process.number < 2) await this.#observe(process, zk);
    const keeping = this.#nodes.get(process) ?? (await this.#createNode(process));
    const { handle, change, close, sessions } = keeping;
    maybeFreeze(process, 12);
    try {
      if (change !== undefined && (process.isHealed || process.below(3) > 0)) await this.#change(process, keeping, change);
      if (!process.isHealed && process.below(4) === 0) await process.sleep(process.below(1500));
      if (process.below(6) > 0) return handle.state === 'present';
      this.#nodes.delete(process);
      process.hitMark('a persistent node was closed');
      await close();
      return true;
    } finally {
      if (handle.signal.aborted) {
        this.#nodes.delete(process);
        if (sessions.client.endReason !== 'moved' && !process.stopping.aborted)
          process.reportViolation(`${handle.path} was not kept any longer: ${String(handle.signal.reason)}`);
      }
    }
  }

  async #observe(process: RecipeProcess, zk: Client): Promise<void> {
    const { observe } = this.#variant;
    if (observe === undefined) return;
    const before = this.#observers.get(zk);
    if (before === undefined) this.#observers.set(zk, observe(process, zk));
    else await before.turn();
  }

  async #createNode(process: RecipeProcess): Promise<KeptNode> {
    const sessions = await this.#sessionsOf(process);
    const text = `text-${++this.#texts}`;
    const sessionIds = new Set<bigint>();
    const forget = sessions.onSession(({ sessionId }) => sessionIds.add(sessionId));
    const begun = await this.#variant.keep(process, sessions, text, waitOf(process)).catch((error: unknown) => {
      forget();
      throw error;
    });
    const keeping: KeptNode = { ...begun, process, sessions, sessionIds, firstText: text, changes: 0, allowedTexts: new Set([text]) };
    this.#nodes.set(process, keeping);
    process.hitMark('a persistent node was created');
    if (keeping.handle.state === 'present') this.#recordReported(keeping, text);
    keeping.handle.onStateChange((state) => {
      if (state === 'suspended') process.hitMark('a persistent node was suspended');
      if (state === 'absent') process.hitMark('a persistent node was missing for a while');
      if (state === 'present' && sessionIds.size > 1) process.hitMark('a persistent node was created again in a later session');
    });
    return keeping;
  }

  /** From the first turn to the end of the program. */
  async #sessionsOf(process: RecipeProcess): Promise<Sessions> {
    const before = this.#sessions.get(process);
    if (before?.signal.aborted === false) return before;
    const sessions = await Sessions.start(() => process.session());
    if (before === undefined) process.stopping.addEventListener('abort', () => this.#recordFinal(process));
    this.#sessions.set(process, sessions);
    return sessions;
  }

  async #change(process: RecipeProcess, keeping: KeptNode, change: NonNullable<KeptNode['change']>): Promise<void> {
    // Sometimes the text it was created with.
    const text = ++keeping.changes % 3 === 0 ? keeping.firstText : `text-${++this.#texts}`;
    keeping.allowedTexts.add(text);
    await change(text, waitOf(process));
    keeping.allowedTexts = new Set([text]);
    process.hitMark('a persistent node was given other data');
    this.#recordReported(keeping, text);
  }

  #recordReported(keeping: KeptNode, text: string): void {
    const { process, sessionIds: sessions, handle } = keeping;
    this.#reported.push({ process: process.name, sessions, path: handle.path, text, seenZxid: keeping.sessions.client.lastZxid });
  }

  #recordFinal(process: RecipeProcess): void {
    const keeping = this.#nodes.get(process);
    if (keeping === undefined) return;
    const { handle, sessionIds, sessions, allowedTexts, close } = keeping;
    const { name, nowMs } = process;
    const known = {
      process: name,
      sessions: sessionIds,
      path: handle.path,
      session: sessions.client.sessionId,
      allowedTexts: new Set(allowedTexts),
      atMs: nowMs,
    };
    if (handle.state === 'present') this.#final.push(known);
    void close();
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const { parent, hasNames } = this.#variant;
    if (hasNames && operator.below(2) === 0) {
      const path = `${parent}/host-${operator.below(this.processes)}`;
      await deleteAsOperator(zk, path);
      // As if a process that had just died had it.
      if (await holdEphemeralBriefly(operator, zk, path, 1000))
        operator.hitMark('a persistent node belonged to another session for a while');
      return;
    }
    const victim = (await childPaths(zk, parent))[operator.below(3)];
    if (victim === undefined) return;
    operator.hitMark('an operator deleted a persistent node');
    await deleteAsOperator(zk, victim);
  }

  /** All processes have closed their znodes, and observers must have seen that. */
  leftovers(zk: Client): Promise<readonly string[]> {
    for (const { observer } of this.#observers.values()) if (!observer.isOver) observer.expectUpToDate(zk.lastZxid);
    return childPaths(zk, this.#variant.parent);
  }

  check({ history }: Evidence): readonly string[] {
    const observers = [...this.#observers.values()];
    const paths = new Set(observers.length === 0 ? [] : history.childrenOf(this.#variant.parent).map(({ path }) => path));
    const phases = new Map([...paths].map((path) => [path, phasesOfZnode(path, history, this.#variant.shownAs)]));
    return [
      ...checkReportedNodes(this.#reported, this.#variant, history),
      ...checkFinalNodes(this.#final, this.#variant, history),
      ...observers.flatMap(({ observer }) => observer.judge(phases)),
    ];
  }
}

function waitOf(process: RecipeProcess): Wait {
  return { signal: process.stopping, ...drawWaitOptions(process) };
}

/** A name that belongs to the process slot. */
function nameOf({ number }: RecipeProcess): string {
  return `host-${number}`;
}

function members(naming: GroupNaming, takeOver: boolean): NodeVariant {
  const isNameData = naming !== 'plain';
  return {
    parent: folder,
    outlivesSessions: false,
    hasNames: !isNameData,
    shownAs: textIn,
    observe: (process, zk) => observeMembers(process, zk, new Group(zk, folder, { naming }), isNameData),
    keep: async (process, sessions, text, wait) => {
      // A name that is the data of the znode cannot change, so each keeper has a name of its own.
      const name = isNameData ? text : nameOf(process);
      const node = await new Group(sessions, folder, { naming }).join(name, { ...(isNameData ? {} : { data: text, takeOver }), ...wait });
      return { handle: node, change: isNameData ? undefined : (data, limits) => node.setData(data, limits), close: () => node.close() };
    },
  };
}

function nodesOf(mode: NonNullable<PersistentNodeOptions['mode']>): NodeVariant {
  return {
    parent: folder,
    outlivesSessions: mode === 'persistent',
    hasNames: mode === 'ephemeral',
    shownAs: textIn,
    keep: async (process, sessions, text, wait) => {
      const node = new PersistentNode(sessions, `${folder}/${nameOf(process)}`, text, { mode });
      try {
        await node.ready(wait);
      } catch (error) {
        await node.close();
        throw error;
      }
      return { handle: node, change: (data, limits) => node.setData(data, limits), close: () => node.close() };
    },
  };
}

function services(takeOver: boolean): NodeVariant {
  return {
    parent: `${folder}/api`,
    outlivesSessions: false,
    hasNames: true,
    // Data that are not an instance are ignored.
    shownAs: (data) => (data === '' ? none : textIn(data)),
    observe: (process, zk) => observeInstances(process, zk, new ServiceDiscovery<string>(zk, folder), 'api'),
    keep: async (process, sessions, payload, wait) => {
      const registry = new ServiceDiscovery<string>(sessions, folder);
      const registration = await registry.register({ name: 'api', address: nameOf(process), payload }, { takeOver, ...wait });
      return {
        handle: registration,
        change: (text, limits) => registration.update({ payload: text }, limits),
        close: () => registration.unregister(),
      };
    },
  };
}
