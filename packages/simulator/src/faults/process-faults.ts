/** What happens to a server's process, and to the machine under it. */
import type { Fault } from './fault.ts';
import { survival } from './survival.ts';

export const kill: Fault = {
  id: 'F1',
  what: 'the process ends without warning',
  strike(stage, random) {
    const server = stage.anyServer();
    if (server.process === undefined) return;
    server.kill();
    stage.superviseAfter(server, random.below(6400) / 64);
  },
};

export const power: Fault = {
  id: 'F3',
  what: 'the machine goes dark; of what was not synced any part survives, in any order, torn anywhere',
  strike(stage, random) {
    const server = stage.anyServer();
    if (server.process === undefined) return;
    server.losePower(survival(random));
    stage.superviseAfter(server, random.below(12_800) / 64);
  },
};

export const stop: Fault = {
  id: 'F23',
  what: 'an operator stops the server and starts it again',
  strike(stage, random) {
    const server = stage.anyServer();
    const { process } = server;
    if (process?.runtime === undefined) return;
    void process.close().then(() =>
      stage.after(5, 'stopped', process, () => {
        server.kill();
        stage.superviseAfter(server, random.below(3200) / 64);
      }),
    );
  },
};

export const pause: Fault = {
  id: 'F14',
  what: 'the process stands still (SIGSTOP), and goes on as if nothing had been',
  strike(stage, random) {
    const { name, process } = stage.anyServer();
    const ms = random.below(2) === 0 ? 300 + random.below(1200) : 1 + random.below(100);
    if (process === undefined || process.pausedUntilMs > stage.nowMs) return;
    stage.world.recording.pauses.push({ server: name, fromMs: stage.nowMs, toMs: stage.nowMs + ms });
    process.pause(ms);
    stage.note(ms > 400 ? 'long pause' : 'short pause');
  },
};
