/**
 * Recipes in which every client watches every other one, as their pages describe: one step costs as
 * many requests as there are other clients, and those of all clients n squared.
 */
import { type Participation, SimpleBarrier, type Site, TwoPhaseCommit } from '@tskeeper/recipes';

import { fellows, fellowsOf, pathsBelow } from './fellows.ts';
import type { Gather, Scene } from './traffic.ts';

/**
 * Each step has its own barrier, at which all but one wait, and which is for one more than there
 * will be.
 */
const oneMore: Gather = async (clients, path) => {
  const [last, ...others] = clients;
  const barriers = pathsBelow(path).map((each) => (zk: typeof last) => SimpleBarrier.at(zk!, each, clients.length + 1));
  const enter = async (open: (typeof barriers)[number], zk: typeof last) => {
    await (await open(zk)).enter();
  };
  for (const open of barriers) {
    await open(last);
    for (const zk of others) void enter(open, zk).catch(() => undefined);
  }
  return {
    // Each its own znode, and who else comes.
    watches: 2 * others.length * barriers.length,
    async step() {
      void enter(barriers.shift()!, last).catch(() => undefined);
    },
  };
};

/** Each step has its own barrier, which all but one have left, and for whom they wait. */
const lastOneOut: Gather = async (clients, path) => {
  const own: Participation[] = [];
  const waits: Promise<void>[][] = [];
  for (const each of pathsBelow(path)) {
    const barriers = await Promise.all(fellowsOf(clients).map((zk) => SimpleBarrier.at(zk, each, fellows(clients.length))));
    const [last, ...others] = await Promise.all(barriers.map((barrier) => barrier.enter()));
    own.push(last!);
    waits.push(others.map((other) => other.leave()));
  }
  for (const each of waits.flat()) each.catch(() => undefined);
  return {
    // Its own znode, and those who wait that nobody is there.
    watches: own.length * fellows(clients.length),
    async step() {
      await Promise.all([own.shift()!.leave(), ...waits.shift()!]);
    },
  };
};

/** Each step is its own transaction, which all have joined. */
const votes: Gather = async (clients, path) => {
  const zks = fellowsOf(clients);
  const names = zks.map((_, at) => `site-${at}`);
  const transactions: Site[][] = [];
  for (const each of pathsBelow(path)) {
    await new TwoPhaseCommit(zks[0]!, each).begin(names);
    transactions.push(await Promise.all(zks.map((zk, at) => new TwoPhaseCommit(zk, each).join(names[at]!))));
  }
  return {
    watches: transactions.length * zks.length ** 2,
    async step() {
      const sites = transactions.shift()!;
      await Promise.all(sites.map((site) => site.vote('commit')));
      await Promise.all(sites.map((site) => site.outcome()));
    },
  };
};

export const bySquares: Readonly<Record<string, Scene>> = {
  'one more client joins a simple barrier': {
    gather: oneMore,
    // It looks for the root and what is above, makes its znode and watches it, and lists; the
    // others list.
    costs: (clients) => ({ received: clients + 4, sent: 2 * clients + 3 }),
  },
  'the last one leaves a simple barrier': {
    gather: lastOneOut,
    // It deletes its znode, which it watches; all of them list, and take the watch of that away.
    costs: (clients) => ({ received: 2 * fellows(clients) + 1, sent: 3 * fellows(clients) + 1 }),
  },
  'sites vote, and each watches the votes': {
    gather: votes,
    // Each writes one, is told of each, and reads it.
    costs: (clients) => ({ received: fellows(clients) + fellows(clients) ** 2, sent: fellows(clients) + 2 * fellows(clients) ** 2 }),
  },
};
