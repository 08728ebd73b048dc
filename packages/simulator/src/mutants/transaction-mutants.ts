/** The transactions' part of the zoo: what is easily got wrong with a two-phase commit. */
import type { Mutant } from './mutant.ts';

const folder = 'packages/recipes/src/transactions';
const votes = `${folder}/votes.ts`;
const decision = `${folder}/decision.ts`;
const ending = `${folder}/ending.ts`;
const twoPhaseCommit = `${folder}/two-phase-commit.ts`;

export const transactionMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries<Omit<Mutant, 'hunter'>>({
    'vote-over-vote': {
      what: 'a vote is written whatever stands there',
      from: 'C1-33',
      file: votes,
      replace: 'version: ballot.version, signal }',
      by: 'version: -1, signal }',
    },
    'vote-forgotten-by-its-site': {
      what: 'a site that comes back votes anew',
      from: 'C1-33',
      file: votes,
      replace: 'signal }))) {\n    if (ballot.vote !== undefined) return ballot.vote;',
      by: 'signal }))) {',
    },
    'gone-is-abort': {
      what: 'a site that is gone counts as one that aborts, without a vote in its place',
      from: 'C1-37',
      file: votes,
      replace: "return cast(zk, path, 'abort', ballot, signal);",
      by: "return 'abort';",
    },
    'votes-unwatched': {
      what: 'votes are read once',
      from: 'C1-33',
      file: votes,
      replace: 'const options = { ...untilTheEnd, watch: watch.listener, signal };',
      by: 'const options = { ...untilTheEnd, signal };',
    },
    'last-vote-decides': {
      what: 'when all votes are in, the last of them is the decision',
      from: 'C1-34',
      file: decision,
      replace: "if (vote === 'abort' || missing === 0) resolve(vote);",
      by: 'if (missing === 0) resolve(vote);',
    },
    'those-who-are-left-decide': {
      what: 'where a site has gone the votes of the others are counted',
      from: 'C1-34',
      file: decision,
      replace: "if (children.includes('decision')) return undefined;",
      by: '',
    },
    'presumed-abort': {
      what: 'a vote that is gone while votes are counted is taken for an abort',
      from: 'C1-34',
      file: decision,
      replace: "if (KeeperError.is(error, 'NoNode')) return recorded(transaction, signal);\n    throw error;\n  } finally {",
      by: "if (KeeperError.is(error, 'NoNode')) return 'abort';\n    throw error;\n  } finally {",
    },
    'coordinator-not-missed': {
      what: 'nobody hears that the coordinator is gone',
      from: 'C1-36',
      file: decision,
      replace: '{ ...options, watch: gone.listener }',
      by: 'options',
    },
    'goes-without-a-decision': {
      what: 'a site goes, and leaves no decision behind',
      from: 'C1-34',
      file: ending,
      replace: '...(recorded === null ? [op.create(path, decision, { acl })] : []), ',
      by: '',
    },
    'begun-without-a-word': {
      what: 'nothing tells whether a beginning that was not answered was one',
      from: 'C1-32',
      file: twoPhaseCommit,
      replace: "      op.create(beginning, null, { mode: 'ephemeral', acl }),\n",
      by: '',
    },
  }).map(([name, mutant]) => [name, { hunter: 'recipes/transactions', ...mutant }]),
);
