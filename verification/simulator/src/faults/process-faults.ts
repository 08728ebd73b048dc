/** Faults of a server's process and of the machine it runs on. */
import type { Millis } from '@tskeeper/protocol';
import type { Run } from '../run/run.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { Fault } from './fault.ts';
import { drawCrashChoice } from './crash-choice.ts';

export const kill: Fault = {
  id: 'F1',
  description: 'the process ends without warning',
  inject(run, random) {
    const server = run.anyServer();
    if (server.process === undefined) return;
    server.kill();
    run.restartAfter(server, random.below(6400) / 64);
  },
};

export const powerLoss: Fault = {
  id: 'F3',
  description:
    'the machine loses power, at times while its clients write; any part of what was not synced survives, in any order, torn anywhere',
  inject(run, random) {
    const server = run.anyServer();
    const { process } = server;
    if (process === undefined) return;
    const isWriting = random.below(4) > 0;
    if (isWriting) writeFromAllClients(run, 'power');
    run.schedule(isWriting ? random.below(640) / 64 : 0, 'power', undefined, () => {
      if (run.isHealed || server.process !== process) return;
      server.losePower(drawCrashChoice(random));
      run.restartAfter(server, random.below(12_800) / 64);
    });
  },
};

function writeFromAllClients(run: Run, what: string): void {
  for (const actor of run.actors) {
    const data = Buffer.from(`${what} ${run.nowMs} ${actor.name}`);
    if (actor.ready) actor.submit({ name: 'setData', record: { path: '/', data, version: -1 } });
  }
}

export const gracefulRestart: Fault = {
  id: 'F23',
  description: 'an operator stops the server and starts it again',
  inject(run, random) {
    stopAndStart(run, run.anyServer(), random.below(3200) / 64);
  },
};

function stopAndStart(run: Run, server: ServerHost, downMs: Millis): void {
  const { process } = server;
  if (process?.runtime === undefined) return;
  void process.close().then(() =>
    run.schedule(5, 'stopped', process, () => {
      server.kill();
      run.restartAfter(server, downMs);
    }),
  );
}

export const pause: Fault = {
  id: 'F14',
  description: 'the process is paused (SIGSTOP) and then continues',
  inject(run, random) {
    // A paused leader affects every server, so prefer it.
    const server = (random.below(2) === 0 ? run.leader : undefined) ?? run.anyServer();
    const ms = random.below(2) === 0 ? 300 + random.below(1200) : 1 + random.below(100);
    pauseServer(run, server, ms);
  },
};

/**
 * In multiples of syncLimit: the others have dropped the server, elected another leader and
 * written.
 */
const beyondSyncLimits = 3;

export const longPause: Fault = {
  id: 'F14, F21',
  description: 'a server is paused for up to three times syncLimit while others write; as it wakes, a client reads what they changed',
  ensembleOnly: true,
  inject(run, random) {
    const serving = run.world.servers.filter(({ role }) => role === 'leader' || role === 'follower' || role === 'observer');
    const server = (random.below(2) === 0 ? run.leader : undefined) ?? serving[random.below(serving.length)];
    if (server === undefined) return;
    const { syncLimitTicks = 0, tickMs } = run.world.recording.limits;
    const syncLimitMs = syncLimitTicks * tickMs;
    const { process } = server;
    if (process === undefined) return;
    const ms = syncLimitMs + random.below((beyondSyncLimits - 1) * syncLimitMs);
    const reader = run.strangers.addReader(server);
    // The reader must be connected first.
    run.schedule(120, 'long pause', undefined, () => {
      if (run.isHealed || server.process !== process || !pauseServer(run, server, ms)) {
        reader.leave();
        return;
      }
      for (const at of [ms / 2, (ms * 3) / 4]) run.schedule(at, 'others write', undefined, () => writeFromAllClients(run, 'standstill'));
      // Just before the server wakes, so that the read is waiting then, and just after.
      for (const at of [ms - 3, ms + 1]) run.schedule(at, 'a question', undefined, () => reader.ask());
      run.schedule(ms + 300, 'reader leaves', undefined, () => reader.leave());
    });
  },
};

export function pauseServer(run: Run, { name, process }: ServerHost, ms: Millis): boolean {
  if (process === undefined || process.pausedUntilMs > run.nowMs) return false;
  const { limits, pauses } = run.world.recording;
  pauses.push({ server: name, fromMs: run.nowMs, toMs: run.nowMs + ms });
  process.pause(ms);
  run.hitMark(ms > 400 ? 'long pause' : 'short pause');
  if (limits.syncLimitTicks !== undefined && ms > limits.syncLimitTicks * limits.tickMs) run.hitMark('pause beyond syncLimit');
  return true;
}

export const killLeader: Fault = {
  id: 'F1',
  description: 'the process of the leader ends without warning',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    if (leader === undefined) return;
    leader.kill();
    run.restartAfter(leader, random.below(3) === 0 ? random.below(3000) : random.below(100));
  },
};

export const failNewLeader: Fault = {
  id: 'F1, F14, F21',
  description:
    'the leader ends, and the next one, after its election and before it serves, ends too or is paused for up to three times syncLimit',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    leader?.kill();
    if (leader !== undefined) run.restartAfter(leader, random.below(600));
    whenElected(run, run.world.servers, random.below(15), (server) => {
      run.hitMark('a new leader was failed');
      if (random.below(2) === 0) {
        const { syncLimitTicks = 0, tickMs } = run.world.recording.limits;
        pauseServer(run, server, syncLimitTicks * tickMs * (1 + random.below(128) / 64));
        return;
      }
      server.kill();
      run.restartAfter(server, random.below(1500));
    });
  },
};

const pollMs: Millis = 3;
const pollsMax = 500;

/**
 * Strikes `afterMs` after one of these servers was elected, if it still runs, whatever stage it
 * leads in.
 */
function whenElected(
  run: Run,
  servers: readonly ServerHost[],
  afterMs: Millis,
  inject: (server: ServerHost) => void,
  polls = pollsMax,
): void {
  if (run.isHealed || polls === 0) return;
  const server = servers.find(({ process }) => {
    const place = process?.runtime?.inspect.ensemble();
    return place?.state === 'leading' && place.phase !== 'broadcast';
  });
  if (server === undefined) {
    run.schedule(pollMs, 'a look for a new leader', undefined, () => whenElected(run, servers, afterMs, inject, polls - 1));
    return;
  }
  const { process } = server;
  run.schedule(afterMs, 'new leader', undefined, () => {
    if (!run.isHealed && server.process === process) inject(server);
  });
}

export const isolateAndKillLeader: Fault = {
  id: 'F1, F21',
  description:
    'the leader is alone with its clients, and a moment later its process ends: the end of its log is nowhere else and must be truncated',
  ensembleOnly: true,
  inject(run, random) {
    const { leader } = run;
    if (leader === undefined) return;
    const others = run.world.servers.filter((server) => server !== leader);
    const ms = 20 + random.below(150);
    // The process ends before the cut heals, so packets that the cut holds back never arrive.
    run.cutLinks([leader], others, ms + 5, 'one way');
    writeFromAllClients(run, 'lonely');
    const { process } = leader;
    const isQuiet = random.below(4) > 0;
    run.schedule(ms, 'lonely end', undefined, () => {
      if (run.isHealed || leader.process !== process) return;
      leader.kill();
      if (random.below(4) === 0) {
        // It returns before the others have another leader, is elected with everything it has, and
        // synchronises the others to that. Then it is away for long.
        run.restartAfter(leader, random.below(10));
        whenElected(run, [leader], random.below(40), () => {
          leader.kill();
          run.restartAfter(leader, 600 + random.below(1500));
        });
        return;
      }
      // It returns after the others have begun another epoch. If that epoch has a txn, it receives
      // a snapshot and nothing is truncated.
      if (isQuiet) run.cutLinks(run.actors, others, 200 + random.below(600));
      run.restartAfter(leader, 20 + random.below(200));
    });
  },
};

export const longDowntime: Fault = {
  id: 'F1, F20',
  description: 'a server that is not the leader is down for long while the others continue',
  ensembleOnly: true,
  inject(run, random) {
    const others = run.world.servers.filter(({ role, process }) => role !== 'leader' && process !== undefined);
    const server = others[random.below(others.length)];
    if (server === undefined) return;
    server.kill();
    run.restartAfter(server, 200 + random.below(1500));
  },
};

export const killAll: Fault = {
  id: 'F2',
  description: 'all processes end at once and restart in any order, some much later',
  ensembleOnly: true,
  inject(run, random) {
    for (const server of run.world.servers) {
      server.kill();
      run.restartAfter(server, random.below(3) === 0 ? random.below(4000) : random.below(150));
    }
  },
};

export const powerLossAll: Fault = {
  id: 'F3',
  description: 'all machines lose power at once and return in any order, some much later',
  ensembleOnly: true,
  inject(run, random) {
    for (const server of run.world.servers) {
      server.losePower(drawCrashChoice(random));
      run.restartAfter(server, random.below(3) === 0 ? random.below(4000) : random.below(150));
    }
  },
};

export const rollingRestart: Fault = {
  id: 'F23',
  description: 'an operator restarts the servers one after the other',
  ensembleOnly: true,
  inject(run, random) {
    let ms = 0;
    for (const server of run.world.servers) {
      run.schedule(ms, 'rolling restart', undefined, () => {
        if (!run.isHealed) stopAndStart(run, server, random.below(100));
      });
      ms += 100 + random.below(600);
    }
  },
};
