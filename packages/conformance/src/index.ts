export { type Check, formatRelease, type Need, NotApplicable, parseRelease, type Release } from './check.ts';
export { checks } from './checks/all.ts';
export { main } from './command/main.ts';
export { Mismatch } from './expect.ts';
export type { Facts, ServerFacts } from './facts.ts';
export type { Ground, OpenOptions } from './ground.ts';
export { type CheckResult, type Outcome, Suite, type SuiteOptions } from './suite.ts';
