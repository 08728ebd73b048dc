/** Runs the checks of our recipes beside those of kazoo and Curator, against one server. */
import { connect } from '@tskeeper/client';

import type { ServerProcess } from '../../../scripts/server-process.js';
import type { Report } from '../report.ts';
import { electionChecks } from './election-checks.ts';
import type { Check, Ground } from './ground.ts';
import { herdChecks } from './herd-checks.ts';
import { lockChecks } from './lock-checks.ts';
import { Peer, type PeerKind, type PeerPrograms } from './peer.ts';

const checks = [...lockChecks, ...electionChecks];
const alone = herdChecks;

/** Of those who stay, so that a slow machine ends none of their sessions; and of those who are killed. */
const sessionTimeoutMs = 10_000;
const mortalTimeoutMs = 2000;

/** Checks under way at one time. */
const atOnce = 4;

export async function runRecipes(server: ServerProcess, programs: PeerPrograms, report: Report): Promise<void> {
  const started: Peer[] = [];
  const start = async (kind: PeerKind, timeoutMs: number): Promise<Peer> => {
    const peer = await Peer.start(programs, kind, server.connectString, timeoutMs);
    started.push(peer);
    return peer;
  };
  const zk = await connect(server.connectString);
  try {
    const stays = (kind: PeerKind) => start(kind, sessionTimeoutMs);
    const [ours, kazoo, Curator] = await Promise.all([stays('ours'), stays('kazoo'), stays('Curator')]);
    const runOne = async ({ name, run }: Check, index: number): Promise<void> => {
      const title = `recipes on ${server.kind}: ${name}`;
      const ground: Ground = {
        server,
        peers: { ours, kazoo, Curator },
        another: (kind) => start(kind, sessionTimeoutMs),
        mortal: (kind) => start(kind, mortalTimeoutMs),
        zk,
        root: `/recipes-${index}`,
      };
      try {
        await run(ground);
        report.pass(title);
      } catch (error) {
        report.fail(title, error instanceof Error ? (error.stack ?? error.message) : String(error));
      }
    };
    // Each has a path of its own, and many do little but wait for the end of a session.
    const left = checks.entries();
    const worker = async () => {
      for (const [index, check] of left) await runOne(check, index);
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    await Promise.all(started.map((peer) => peer.kill()));
    for (const [index, check] of alone.entries()) await runOne(check, checks.length + index);
  } finally {
    await Promise.all(started.map((peer) => peer.kill()));
    await zk.close();
  }
}
