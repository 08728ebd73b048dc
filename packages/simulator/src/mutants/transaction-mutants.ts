/** Mutants of the transaction recipe: errors that are easily made with two-phase commit. */
import type { Mutant } from './mutant.ts';

const folder = 'packages/recipes/src/transactions';
const votes = `${folder}/votes.ts`;
const decision = `${folder}/decision.ts`;
const ending = `${folder}/ending.ts`;
const twoPhaseCommit = `${folder}/two-phase-commit.ts`;

export const transactionMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries<Omit<Mutant, 'hunter'>>({
    'vote-over-vote': {
      what: 'a vote is written over any other',
      from: 'C1-33',
      file: votes,
      replace: 'version: ballot.version, signal }',
      by: 'version: -1, signal }',
    },
    'vote-forgotten-by-its-site': {
      what: 'a site that returns votes again',
      from: 'C1-33',
      file: votes,
      replace: 'signal }))) {\n    if (ballot.vote !== undefined) return ballot.vote;',
      by: 'signal }))) {',
    },
    'gone-is-abort': {
      what: 'a missing site counts as an abort without a vote being written for it',
      from: 'C1-37',
      file: votes,
      replace: "return cast(zk, path, 'abort', ballot, signal);",
      by: "return 'abort';",
    },
    'votes-unwatched': {
      what: 'votes are read once, without a watch',
      from: 'C1-33',
      file: votes,
      replace: 'const options = { ...untilTheEnd, watch: watch.listener, signal };',
      by: 'const options = { ...untilTheEnd, signal };',
    },
    'last-vote-decides': {
      what: 'when all votes are in, the last one read is the decision',
      from: 'C1-34',
      file: decision,
      replace: "if (vote === 'abort' || missing === 0) resolve(vote);",
      by: 'if (missing === 0) resolve(vote);',
    },
    'those-who-are-left-decide': {
      what: 'the votes of the remaining sites are counted although a decision is recorded',
      from: 'C1-34',
      file: decision,
      replace: "if (children.includes('decision')) return undefined;",
      by: '',
    },
    'presumed-abort': {
      what: 'a vote that disappears while votes are counted counts as an abort',
      from: 'C1-34',
      file: decision,
      replace: "if (KeeperError.is(error, 'NoNode')) return recorded(transaction, signal);\n    throw error;\n  } finally {",
      by: "if (KeeperError.is(error, 'NoNode')) return 'abort';\n    throw error;\n  } finally {",
    },
    'coordinator-not-missed': {
      what: 'no site notices that the coordinator is gone',
      from: 'C1-36',
      file: decision,
      replace: '{ ...options, watch: gone.listener }',
      by: 'options',
    },
    'goes-without-a-decision': {
      what: 'a site leaves without recording the decision',
      from: 'C1-34',
      file: ending,
      replace: '...(recorded === null ? [op.create(path, decision, { acl })] : []), ',
      by: '',
    },
    'begun-without-a-word': {
      what: 'a begin without a reply cannot be told from one that failed',
      from: 'C1-32',
      file: twoPhaseCommit,
      replace: "      op.create(beginning, null, { mode: 'ephemeral', acl }),\n",
      by: '',
    },
  }).map(([name, mutant]) => [name, { hunter: 'recipes/transactions', ...mutant }]),
);
