/** What our recipes ask of a server with many that wait, by its own counters. */
import assert from 'node:assert/strict';

import type { Check } from './ground.ts';
import { scenes, steps, trafficOf } from './herd.ts';

/** These look at the counters of the whole server, so nothing else may be under way. */
export const herdChecks: readonly Check[] = Object.entries(scenes).map(([name, { gather, costs }]) => ({
  name: `with 100 that wait, ${name}, and that takes ${costs.received} requests`,
  async run({ server, root }) {
    const traffic = await trafficOf(gather, server.connectString, 101, root);
    assert.deepEqual(
      traffic.map(({ received }) => received),
      traffic.map(() => costs.received),
    );
    // ZooKeeper counts what it sends on another thread, so the last of it may be missing still.
    const sent = traffic.reduce((sum, step) => sum + step.sent, 0);
    assert(sent <= steps * costs.sent, `${sent} packets went out in ${steps} steps, and not ${costs.sent} in each`);
  },
}));
