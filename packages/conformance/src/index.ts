export type { Check, Need } from './check.ts';
export { checks } from './checks/all.ts';
export { type CommandEnvironment, exitCodes, main } from './command/main.ts';
export type { Facts, LocalSessionMode, ServerFacts, SessionTimeouts } from './facts.ts';
export { formatRelease, parseRelease, type Release } from './release.ts';
export { type CheckResult, type Outcome, Suite, type SuiteOptions } from './suite.ts';
