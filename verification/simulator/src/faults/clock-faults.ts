import type { Fault } from './fault.ts';

const minuteMs = 60_000;
const yearMinutes = 525_600;

export const wallClock: Fault = {
  id: 'F13',
  description: 'the wall clock of a server jumps by minutes or years, forwards or backwards',
  inject(run, random) {
    const server = run.anyServer();
    const minutes = 10 + random.below(random.below(2) === 0 ? 120 : 10 * yearMinutes);
    const offsetMs = server.wallOffsetMs + (random.below(2) === 0 ? minutes : -minutes) * minuteMs;
    // So far from every other setting that a timestamp identifies the setting it was made with.
    const { wallClocks } = run.world.recording;
    if (wallClocks.some((clock) => Math.abs(clock.offsetMs - offsetMs) < 5 * minuteMs)) return;
    server.setWallClock(offsetMs);
  },
};
