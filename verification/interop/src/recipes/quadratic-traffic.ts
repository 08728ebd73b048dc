/**
 * Recipes in which every client watches every other one, as their pages describe: one step costs as
 * many requests as there are other clients, and those of all clients n squared.
 */
import { type Participation, SimpleBarrier, type Site, TwoPhaseCommit } from '@tskeeper/recipes';

import { participantCount, participantsOf, stepPaths } from './participants.ts';
import type { SetUpCrowd, TrafficCase } from './traffic.ts';

/**
 * Each step has its own barrier, at which all but one wait, and which is for one more than there
 * will be.
 */
const oneMore: SetUpCrowd = async (clients, path) => {
  const [last, ...others] = clients;
  const barriers = stepPaths(path).map((each) => (zk: typeof last) => SimpleBarrier.create(zk!, each, clients.length + 1));
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
const lastOneOut: SetUpCrowd = async (clients, path) => {
  const own: Participation[] = [];
  const waits: Promise<void>[][] = [];
  for (const each of stepPaths(path)) {
    const barriers = await Promise.all(
      participantsOf(clients).map((zk) => SimpleBarrier.create(zk, each, participantCount(clients.length))),
    );
    const [last, ...others] = await Promise.all(barriers.map((barrier) => barrier.enter()));
    own.push(last!);
    waits.push(others.map((other) => other.leave()));
  }
  for (const each of waits.flat()) each.catch(() => undefined);
  return {
    // Its own znode, and those who wait watch that all have left.
    watches: own.length * participantCount(clients.length),
    async step() {
      await Promise.all([own.shift()!.leave(), ...waits.shift()!]);
    },
  };
};

/** Each step is its own transaction, which all have joined. */
const votes: SetUpCrowd = async (clients, path) => {
  const zks = participantsOf(clients);
  const names = zks.map((_, at) => `site-${at}`);
  const transactions: Site[][] = [];
  for (const each of stepPaths(path)) {
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

export const quadraticTraffic: Readonly<Record<string, TrafficCase>> = {
  'one more client joins a simple barrier': {
    setUp: oneMore,
    // It looks for the root and what is above, makes its znode and watches it, and lists; the
    // others list.
    expected: (clients) => ({ received: clients + 4, sent: 2 * clients + 3 }),
  },
  'the last one leaves a simple barrier': {
    setUp: lastOneOut,
    // It deletes its znode, which it watches; all of them list, and take the watch of that away.
    expected: (clients) => ({ received: 2 * participantCount(clients) + 1, sent: 3 * participantCount(clients) + 1 }),
  },
  'sites vote, and each watches the votes': {
    setUp: votes,
    // Each writes one, receives the event of each, and reads it.
    expected: (clients) => ({
      received: participantCount(clients) + participantCount(clients) ** 2,
      sent: participantCount(clients) + 2 * participantCount(clients) ** 2,
    }),
  },
};
