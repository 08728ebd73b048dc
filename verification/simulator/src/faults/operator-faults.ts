/** What an operator asks of servers at a bad moment: another leader, fewer connections, or the end of a session. */
import type { Actor } from '../clients/actor.ts';
import { LibraryClient } from '../clients/library-client.ts';
import { RawClient } from '../clients/raw-client.ts';
import type { Run } from '../run/run.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { Fault } from './fault.ts';
import { pauseServer } from './process-faults.ts';

/** Why a transfer was refused, or what became of it: the name of a mark, by the sentence. */
export const transferOutcomes: Readonly<Record<string, RegExp>> = {
  'a transfer was refused: not leading': /leads, so ask that one|no server leads now/,
  'a transfer was refused: leads already': /it leads already/,
  'a transfer was refused: not a voter': /it has no vote/,
  'a transfer was refused: not in step': /it is not in step/,
  'a transfer was refused: under way': /being given to a server already/,
  'a transfer was refused: reconfiguration pending': /a reconfiguration is pending/,
  'a transfer failed, and the leader went on': /has not taken the lead in time/,
  'a transfer failed, and another server was elected': /was elected instead/,
};
export const transferredMark = 'the lead was transferred';

export const transferLead: Fault = {
  id: 'F37',
  description: 'an operator gives the lead to another server, which may be any, while clients write; often one of the two then fails',
  ensembleOnly: true,
  inject(run, random) {
    const server = (random.below(8) > 0 ? run.leader : undefined) ?? run.anyServer();
    if (random.below(4) > 0) write(run);
    const target = random.below(4) === 0 ? undefined : 1 + random.below(run.world.servers.length);
    const named = target === undefined ? undefined : run.world.servers[target - 1];
    // A target that stands still does not acknowledge what is proposed meanwhile.
    if (random.below(4) === 0 && named !== undefined && named !== server) pauseServer(run, named, 50 + random.below(600));
    // A target that is away is not in step, nor is one that has just returned.
    if (random.below(6) === 0 && named !== undefined && named !== server) kill(run, named, random.below(300));
    run.schedule(random.below(20), 'transfer', undefined, () => {
      if (run.isHealed || !transfer(run, server, target)) return;
      if (random.below(4) === 0) transfer(run, server, undefined);
      write(run);
      if (named !== undefined && random.below(4) === 0) {
        killAfterHandOver(run, server, named, 1000 + random.below(4000));
        return;
      }
      const victim = [server, named, named, undefined][random.below(4)];
      if (victim !== undefined)
        run.schedule(random.below(30), 'killed in a transfer', undefined, () => kill(run, victim, random.below(100)));
    });
  },
};

function transfer(run: Run, server: ServerHost, target: number | undefined): boolean {
  const { process } = server;
  if (process?.isServing !== true || server.isPaused) return false;
  process.runtime!.transferLeadership(target).then(
    () => run.hitMark(transferredMark),
    ({ message }: Error) => {
      for (const [mark, pattern] of Object.entries(transferOutcomes)) if (pattern.test(message)) run.hitMark(mark);
    },
  );
  return true;
}

/** As long as a transfer takes at most. */
const handOverMsMax = 600;
const lookIntervalMs = 0.5;

/** Kills the server that is to lead after the old leader has resigned, and before the others have met it. */
function killAfterHandOver(run: Run, old: ServerHost, next: ServerHost, downMs: number): void {
  const { process } = old;
  const untilMs = run.nowMs + handOverMsMax;
  const look = (): void => {
    if (run.isHealed || run.nowMs > untilMs || old.process !== process || next.role === 'leader') return;
    if (old.role === 'leader') {
      run.schedule(lookIntervalMs, 'handed over?', undefined, look);
      return;
    }
    run.hitMark('a server that was to lead was killed');
    kill(run, next, downMs);
  };
  look();
}

function kill(run: Run, server: ServerHost, downMs: number): void {
  if (run.isHealed || server.process === undefined) return;
  server.kill();
  run.restartAfter(server, downMs);
}

function write(run: Run): void {
  for (const actor of run.actors) if (actor.ready) writeBy(actor, run);
}

function writeBy(actor: Actor, run: Run): void {
  const data = Buffer.from(`operator ${run.nowMs} ${actor.name}`);
  actor.submit({ name: 'setData', record: { path: '/', data, version: -1 } });
}

export const shedConnections: Fault = {
  id: 'F37',
  description: 'an operator lets a server close a share of its connections',
  inject(run, random) {
    const server = run.anyServer();
    const { process } = server;
    if (process?.isServing !== true || server.isPaused) return;
    if (random.below(2) === 0) write(run);
    process.runtime!.shedConnections(random.below(101) / 100).then(
      (count) => (count > 0 ? run.hitMark('connections were shed') : undefined),
      () => undefined,
    );
  },
};

export const sessionEndedMark = 'an operator ended a session';

export const expireSession: Fault = {
  id: 'F37',
  description: 'an operator ends the session of a client, at any server, while the client writes',
  inject(run, random) {
    const { actors } = run;
    const clients = actors.filter((actor) => (actor instanceof RawClient || actor instanceof LibraryClient) && actor.ready);
    const client = clients[random.below(Math.max(1, clients.length))] as RawClient | LibraryClient | undefined;
    const server = run.anyServer();
    if (client === undefined || client.session === 0n) return;
    const { session } = client;
    run.schedule(random.below(10), 'ends a session', undefined, () => {
      if (run.isHealed || server.isPaused || !serves(server)) return;
      run.world.recording.endedByOperator.add(session);
      server.process!.runtime!.expireSession(session).then(
        (ended) => (ended ? run.hitMark(sessionEndedMark) : undefined),
        () => undefined,
      );
    });
    // Some of these are on their way to the leader when it ends the session.
    for (let left = random.below(4); left > 0; left--) writeBy(client, run);
  },
};

/** A server in read-only mode has only sessions of its own. */
function serves({ process, role }: ServerHost): boolean {
  return process?.isServing === true && role !== 'read-only';
}
