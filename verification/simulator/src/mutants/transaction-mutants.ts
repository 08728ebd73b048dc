/** Mutants of the transaction recipe: errors that are easily made with two-phase commit. */
import type { Mutant } from './mutant.ts';

export const transactionMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries<Omit<Mutant, 'detector'>>({
    'vote-overwrites-vote': {
      description: 'a vote is written over any other',
      origin: 'C1-33',
      symbol: 'castVote',
      original: 'version: ballot.version, signal }',
      replacement: 'version: -1, signal }',
    },
    'participant-votes-twice': {
      description: 'a site that returns votes again',
      origin: 'C1-33',
      symbol: 'castVote',
      original: 'signal }))) {\n    if (ballot.vote !== undefined) return ballot.vote;',
      replacement: 'signal }))) {',
    },
    'absent-participant-counts-as-abort': {
      description: 'a missing site counts as an abort without a vote being written for it',
      origin: 'C1-37',
      symbol: 'waitForVote',
      original: "return castVote(zk, path, 'abort', ballot, signal);",
      replacement: "return 'abort';",
    },
    'votes-read-once': {
      description: 'votes are read once, without a watch',
      origin: 'C1-33',
      symbol: 'waitForVote',
      original: 'const options = { ...retryForever, watch: watch.listener, signal };',
      replacement: 'const options = { ...retryForever, signal };',
    },
    'last-vote-decides': {
      description: 'when all votes are in, the last one read is the decision',
      origin: 'C1-34',
      symbol: 'countVotes',
      original: "if (vote === 'abort' || missing === 0) resolve(vote);",
      replacement: 'if (missing === 0) resolve(vote);',
    },
    'absent-participants-not-counted': {
      description: 'the votes of the remaining sites are counted although a decision is recorded',
      origin: 'C1-34',
      symbol: 'sitesOf',
      original: "if (children.includes('decision')) return undefined;",
      replacement: '',
    },
    'missing-vote-counts-as-abort': {
      description: 'a vote that disappears while votes are counted counts as an abort',
      origin: 'C1-34',
      symbol: 'countVotes',
      original: "if (KeeperError.is(error, 'NoNode')) return readDecision(transaction, signal);",
      replacement: "if (KeeperError.is(error, 'NoNode')) return 'abort';",
    },
    'coordinator-crash-unnoticed': {
      description: 'no site notices that the coordinator is gone',
      origin: 'C1-36',
      symbol: 'waitForDecision',
      original: '{ ...options, watch: gone.listener }',
      replacement: 'options',
    },
    'participant-leaves-undecided': {
      description: 'a site leaves without recording the decision',
      origin: 'C1-34',
      symbol: 'acknowledgeSite',
      original: '...(recorded === null ? [op.create(path, decision, { acl })] : []), ',
      replacement: '',
    },
    'transaction-start-unmarked': {
      description: 'a begin without a reply cannot be distinguished from one that failed',
      origin: 'C1-32',
      symbol: 'TwoPhaseCommit.#createTransaction',
      original: "      op.create(beginning, null, { mode: 'ephemeral', acl }),\n",
      replacement: '',
    },
  }).map(([name, mutant]) => [name, { detector: 'recipes/transactions', ...mutant }]),
);
