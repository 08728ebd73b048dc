/** How to choose one of several instances. */
import { checkArgumentCount, checkFunction } from '../validation.ts';
import type { ServiceInstance } from './service-instance.ts';

/**
 * Chooses one of the usable instances, which are sorted by id; undefined if there are none. It has
 * state of its own, so use one for each provider.
 */
export type ProviderStrategy = <Payload>(instances: readonly ServiceInstance<Payload>[]) => ServiceInstance<Payload> | undefined;

/** One after another. (Curator's RoundRobinStrategy.) */
export function roundRobin(): ProviderStrategy {
  checkArgumentCount(arguments.length, 0, 'roundRobin()');
  let next = 0;
  return (instances) => {
    if (instances.length === 0) return undefined;
    const at = next % instances.length;
    next = at + 1;
    return instances[at];
  };
}

/**
 * A random one, by a function that returns numbers from 0 to below 1: `randomly(Math.random)`.
 * (Curator's RandomStrategy.)
 */
export function randomly(random: () => number): ProviderStrategy {
  checkArgumentCount(arguments.length, 1, 'randomly(random)');
  checkFunction(random, 'random');
  return (instances) => instances[Math.floor(random() * instances.length)];
}

/**
 * The same one as long as it is usable, and then another one, which `by` chooses. Default: one
 * after another. (Curator's StickyStrategy.)
 */
export function sticky(by: ProviderStrategy = roundRobin()): ProviderStrategy {
  checkArgumentCount(arguments.length, 1, 'sticky(by)');
  checkFunction(by, 'by');
  let id: string | undefined;
  return (instances) => {
    const chosen = instances.find((each) => each.id === id) ?? by(instances);
    id = chosen?.id;
    return chosen;
  };
}
