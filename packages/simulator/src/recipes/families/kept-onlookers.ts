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
  type ServiceRegistry,
  sticky,
} from '@tskeeper/recipes';
import type { RecipeProcess } from '../recipe-process.ts';
import { wordOf } from './kept-rules.ts';
import { Onlooker } from './onlooker.ts';

/** An observer with one session. */
export interface KeptOnlooker {
  readonly onlooker: Onlooker;
  /** Called between other work. */
  readonly turn: () => Promise<void>;
}

/** With `isNameData` the name of a member is its data. */
export function lookOnAtMembers(process: RecipeProcess, zk: Client, group: Group, isNameData: boolean): KeptOnlooker {
  const onlooker = new Onlooker(process, zk);
  const enough = new AbortController();
  if (process.below(6) === 0) process.clock.after(process.below(2000), () => enough.abort(new Error('has seen enough')));
  const textOf = (data: Uint8Array | null) => wordOf(new TextDecoder().decode(data ?? undefined));
  const shownOf = ({ members }: Membership) => new Map(members.map(({ path, name, data }) => [path, isNameData ? name : textOf(data)]));
  const upToDate = () => process.note('who looks on at members was up to date');
  onlooker.checkWhenConnected(group.path, upToDate);
  void onlooker.follow(group.observe({ signal: enough.signal }), shownOf, enough.signal, ({ inStep }) => !inStep);
  return {
    onlooker,
    turn: async () => {
      if (process.below(3) === 0 && (await onlooker.catchesUp(group.path))) upToDate();
    },
  };
}

const strategies: readonly ((process: RecipeProcess) => readonly [string, ProviderStrategy])[] = [
  () => ['round robin', roundRobin()],
  () => ['sticky', sticky()],
  (process) => ['random', randomly(() => process.below(1000) / 1000)],
];

export function useInstances(process: RecipeProcess, zk: Client, registry: ServiceRegistry<string>, service: string): KeptOnlooker {
  const [way, strategy] = strategies[process.below(strategies.length)]!(process);
  const provider = registry.provider(service, { strategy });
  const path = `${registry.path}/${service}`;
  const look = () =>
    onlooker.shows(new Map(provider.instances.map(({ id, payload }) => [`${path}/${id}`, wordOf(payload)])), !provider.inStep);
  const onlooker: Onlooker = new Onlooker(process, zk, look);
  let last: string | undefined;
  return {
    onlooker,
    turn: async () => {
      await provider.ready({ timeoutMs: 4000 });
      look();
      last = useSome(process, way, provider, last);
      if (process.below(3) === 0 && (await onlooker.catchesUp(path))) process.note('the instances of a service were up to date');
    },
  };
}

/**
 * Nothing can happen between two choices, so they are from the same instances. Returns the id
 * chosen last.
 */
function useSome(process: RecipeProcess, way: string, provider: ServiceProvider<string>, last: string | undefined): string | undefined {
  const there = provider.instances.map(({ id }) => id);
  const chosen = Array.from({ length: there.length + 1 }, () => provider.choose()?.id);
  const isWrong = chosen.some((id) => (id === undefined ? there.length > 0 : !there.includes(id)));
  if (isWrong) process.complain(`chosen: ${String(chosen)} of ${String(there)}`);
  if (there.length > 0) process.note('an instance of a service was used');
  if (way === 'round robin' && new Set(chosen).size !== Math.max(there.length, 1))
    process.complain(`chosen: ${String(chosen)} of ${String(there)}, in turn`);
  if (way === 'sticky') {
    const isChanged = last !== undefined && there.includes(last) && chosen[0] !== last;
    if (isChanged || new Set(chosen).size !== 1) process.complain(`chosen: ${String(chosen)} of ${String(there)}, after ${last}`);
  }
  return chosen.at(-1);
}
