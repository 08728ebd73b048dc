import { connect } from '@tskeeper/client';
import { test } from 'vitest';
import { TestEnsemble } from '../src/index.ts';
test('smoke', async () => {
  await using ensemble = await TestEnsemble.start({ servers: 3, config: { tickTime: 2000 } });
  for (const n of [0, 4]) {
    const clients = await Promise.all(Array.from({ length: n }, () => connect(ensemble.connectString, { sessionTimeoutMs: 10_000, clock: ensemble.clock })));
    for (let i = 0; i < 3; i++) {
      const t = performance.now(); const c = process.cpuUsage();
      await ensemble.advance(900_000);
      const u = process.cpuUsage(c);
      console.log(n, 'per step ms', ((performance.now() - t) / 1000).toFixed(3), 'cpu', ((u.user + u.system) / 1000 / 1000).toFixed(3));
    }
    for (const c of clients) await c.close();
  }
}, 60000);
