/** Runs the checks of our recipes beside those of kazoo and Curator, with one server. */
import assert from 'node:assert/strict';

import { connect } from '@tskeeper/client';

import { RawClient, type ServerProcess, sessionPasswd } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { barrierChecks } from './barrier-checks.ts';
import { cacheChecks } from './cache-checks.ts';
import { curatorQueueChecks } from './curator-queue-checks.ts';
import { discoveryChecks } from './discovery-checks.ts';
import { electionChecks } from './election-checks.ts';
import { quadraticTraffic } from './quadratic-traffic.ts';
import type { Check, RecipeCheckContext } from './check-context.ts';
import { groupChecks } from './group-checks.ts';
import { handoverTraffic } from './handover-traffic.ts';
import { leaseChecks } from './lease-checks.ts';
import { lockChecks } from './lock-checks.ts';
import { queueChecks } from './queue-checks.ts';
import { queueTraffic } from './queue-traffic.ts';
import { revocationChecks } from './revocation-checks.ts';
import { partitionChecks } from './partition-checks.ts';
import { valueChecks } from './value-checks.ts';
import { RecipeClient, type RecipeClientKind, type RecipeClientPrograms } from './recipe-client.ts';
import { broadcastTraffic } from './broadcast-traffic.ts';
import { stepsPerCase, type Traffic, trafficOf, withCrowd } from './traffic.ts';

const checks = [
  ...lockChecks,
  ...revocationChecks,
  ...electionChecks,
  ...barrierChecks,
  ...queueChecks,
  ...curatorQueueChecks,
  ...groupChecks,
  ...partitionChecks,
  ...leaseChecks,
  ...discoveryChecks,
  ...valueChecks,
  ...cacheChecks,
];

/** So that a slow machine ends no session of a living process. */
const sessionTimeoutMs = 10_000;

/** Number of concurrent checks. */
const checksAtOnce = 4;

export async function runRecipes(server: ServerProcess, programs: RecipeClientPrograms, report: Report): Promise<void> {
  const started: RecipeClient[] = [];
  const start = async (kind: RecipeClientKind): Promise<RecipeClient> => {
    const peer = await RecipeClient.start(programs, kind, server.connectString, sessionTimeoutMs);
    started.push(peer);
    return peer;
  };
  const zk = await connect(server.connectString);
  try {
    const [ours, kazoo, Curator] = await Promise.all([start('ours'), start('kazoo'), start('Curator')]);
    const runOne = async (check: Check, index: number): Promise<void> => {
      const title = `recipes on ${server.kind}: ${check.name}`;
      const context: RecipeCheckContext = {
        server,
        clients: { ours, kazoo, Curator },
        startClient: start,
        killClient: (peer) => kill(peer, server),
        zk,
        root: `/recipes-${index}`,
      };
      await report.check(title, async () => {
        if (check.hasRoot === true) await zk.create(context.root);
        await check.run(context);
      });
    };
    // Each has its own path, and many mostly wait for the end of a session.
    const left = checks.entries();
    const worker = async () => {
      for (const [index, check] of left) await runOne(check, index);
    };
    await Promise.all(Array.from({ length: checksAtOnce }, worker));
  } finally {
    await Promise.all(started.map((peer) => peer.kill()));
    await zk.close();
  }
}

/**
 * Its session would live as long as those of all others. It is resumed once more, by a client that
 * requests the shortest timeout and then stays silent: so it expires soon, whenever the process is
 * killed.
 */
async function kill(peer: RecipeClient, { port }: ServerProcess): Promise<void> {
  const { kind, sessionId } = peer;
  await peer.kill();
  const last = await RawClient.connect(port, { timeOut: 1, sessionId, passwd: sessionPasswd(sessionId) });
  assert(last !== undefined, `the session of ${kind} had ended before it was killed`);
  last.abandon();
}

/**
 * ZooKeeper sends its statistics in one piece more, or less, when its numbers have grown. At most
 * this many looks belong to a step; a herd would cause a hundred.
 */
const counterReadsMax = 25;

/** By the counters of the whole server, so no other client may be connected. */
export async function countRequests(server: ServerProcess, report: Report): Promise<void> {
  const { connectString } = server;
  await withCrowd(connectString, 101, async (clients) => {
    for (const [index, [name, { setUp, expected, isUpperBound }]] of Object.entries({
      ...handoverTraffic,
      ...queueTraffic,
      ...broadcastTraffic,
      ...quadraticTraffic,
    }).entries()) {
      const { received, sent } = expected(clients.length);
      const title = `recipes on ${server.kind}: with 100 waiters, ${name}, and that takes ${received} requests`;
      await report.check(title, async () => {
        const traffic = await trafficOf(setUp, connectString, clients, `/herd-${index}`);
        // Together, as ZooKeeper counts what it sends on another thread.
        const sum = (each: (step: Traffic) => number) => traffic.reduce((total, step) => total + each(step), 0);
        const asked = sum((step) => step.received);
        assert(isUpperBound === true ? asked <= stepsPerCase * received : asked === stepsPerCase * received, JSON.stringify(traffic));
        assert(sum((step) => step.sent) <= stepsPerCase * (sent + counterReadsMax), JSON.stringify(traffic));
      });
    }
  });
}
