/** Which of several instances to use. */
import { checkCount, checkFunction } from '../given.ts';
import type { ServiceInstance } from './service-instance.ts';

/** Chooses one of those that can be used, which are in the order of their ids; undefined when there are none. Has a memory of its own, so one for each provider. */
export type ProviderStrategy = <Payload>(instances: readonly ServiceInstance<Payload>[]) => ServiceInstance<Payload> | undefined;

/** One after another. (Curator's RoundRobinStrategy.) */
export function roundRobin(): ProviderStrategy {
  checkCount(arguments.length, 0, 'roundRobin()');
  let next = 0;
  return (instances) => {
    if (instances.length === 0) return undefined;
    const at = next % instances.length;
    next = at + 1;
    return instances[at];
  };
}

/** Any of them, by a function that gives numbers from 0 to below 1: `randomly(Math.random)`. (Curator's RandomStrategy.) */
export function randomly(random: () => number): ProviderStrategy {
  checkCount(arguments.length, 1, 'randomly(random)');
  checkFunction(random, 'what gives numbers from 0 to below 1');
  return (instances) => instances[Math.floor(random() * instances.length)];
}

/** The same one for as long as it can be used, and then another, which `by` chooses. Default: one after another. (Curator's StickyStrategy.) */
export function sticky(by: ProviderStrategy = roundRobin()): ProviderStrategy {
  checkCount(arguments.length, 1, 'sticky(by)');
  checkFunction(by, 'what chooses another one');
  let id: string | undefined;
  return (instances) => {
    const chosen = instances.find((each) => each.id === id) ?? by(instances);
    id = chosen?.id;
    return chosen;
  };
}
