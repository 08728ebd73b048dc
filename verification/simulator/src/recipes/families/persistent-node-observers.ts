/**
 * Observers of persistent znodes: of the members of a group, or of the instances of a service,
 * which they use.
 */
import type { Client } from '@tskeeper/client';
import {
  type Group,
  type Membership,
  type ProviderStrategy,
  randomly,
  roundRobin,
  type ServiceProvider,
  type ServiceDiscovery,
  sticky,
} from '@tskeeper/recipes';
import type { RecipeProcess } from '../recipe-process.ts';
import { textIn } from './persistent-node-rules.ts';
import { RecipeObserver } from './recipe-observer.ts';

/** An observer with one session. */
export interface PersistentNodeObserver {
  readonly observer: RecipeObserver;
  /** Called between other work. */
  readonly turn: () => Promise<void>;
}

/** With `isNameData` the name of a member is its data. */
export function observeMembers(process: RecipeProcess, zk: Client, group: Group, isNameData: boolean): PersistentNodeObserver {
  const observer = new RecipeObserver(process, zk);
  const enough = new AbortController();
  if (process.below(6) === 0) process.clock.after(process.below(2000), () => enough.abort(new Error('has seen enough')));
  const textOf = (data: Uint8Array | null) => textIn(new TextDecoder().decode(data ?? undefined));
  const shownOf = ({ members }: Membership) => new Map(members.map(({ path, name, data }) => [path, isNameData ? name : textOf(data)]));
  const upToDate = () => process.hitMark('a membership observer was up to date');
  observer.checkWhenConnected(group.path, upToDate);
  void observer.follow(group.observe({ signal: enough.signal }), shownOf, enough.signal, ({ isSynced }) => !isSynced);
  return {
    observer,
    turn: async () => {
      if (process.below(3) === 0 && (await observer.checkCaughtUp(group.path))) upToDate();
    },
  };
}

const strategies: readonly ((process: RecipeProcess) => readonly [string, ProviderStrategy])[] = [
  () => ['round robin', roundRobin()],
  () => ['sticky', sticky()],
  (process) => ['random', randomly(() => process.below(1000) / 1000)],
];

export function observeInstances(
  process: RecipeProcess,
  zk: Client,
  registry: ServiceDiscovery<string>,
  service: string,
): PersistentNodeObserver {
  const [way, strategy] = strategies[process.below(strategies.length)]!(process);
  const provider = registry.provider(service, { strategy });
  const path = `${registry.path}/${service}`;
  const look = () =>
    observer.record(new Map(provider.instances.map(({ id, payload }) => [`${path}/${id}`, textIn(payload)])), !provider.isSynced);
  const observer: RecipeObserver = new RecipeObserver(process, zk, look);
  let last: string | undefined;
  return {
    observer,
    turn: async () => {
      await provider.ready({ timeoutMs: 4000 });
      look();
      last = chooseAll(process, way, provider, last);
      if (process.below(3) === 0 && (await observer.checkCaughtUp(path))) process.hitMark('the instances of a service were up to date');
    },
  };
}

/**
 * Nothing can happen between two choices, so they are from the same instances. Returns the id
 * chosen last.
 */
function chooseAll(
  process: RecipeProcess,
  strategyName: string,
  provider: ServiceProvider<string>,
  last: string | undefined,
): string | undefined {
  const there = provider.instances.map(({ id }) => id);
  const chosen = Array.from({ length: there.length + 1 }, () => provider.choose()?.id);
  const isWrong = chosen.some((id) => (id === undefined ? there.length > 0 : !there.includes(id)));
  if (isWrong) process.reportViolation(`chosen: ${String(chosen)} of ${String(there)}`);
  if (there.length > 0) process.hitMark('an instance of a service was used');
  if (strategyName === 'round robin' && new Set(chosen).size !== Math.max(there.length, 1))
    process.reportViolation(`chosen: ${String(chosen)} of ${String(there)}, in turn`);
  if (strategyName === 'sticky') {
    const isChanged = last !== undefined && there.includes(last) && chosen[0] !== last;
    if (isChanged || new Set(chosen).size !== 1) process.reportViolation(`chosen: ${String(chosen)} of ${String(there)}, after ${last}`);
  }
  return chosen.at(-1);
}
