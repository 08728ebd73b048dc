export { type Check, type Need, NotApplicable } from './check.ts';
export { checks } from './checks/all.ts';
export { main } from './command/main.ts';
export { Mismatch } from './expect.ts';
export type { Facts, ServerFacts } from './facts.ts';
export type { Ground, OpenOptions } from './ground.ts';
export { formatRelease, parseRelease, type Release } from './release.ts';
export { type CheckResult, type Outcome, Suite, type SuiteOptions } from './suite.ts';
