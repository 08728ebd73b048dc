/** Whatever arrives at the port, an honest client gets its replies. */
import { describe, expect, it } from 'vitest';
import { runHostileSockets } from './hostile-sockets.ts';
import { endpointOf } from '@tskeeper/harness';
import { inFolder, kind, start } from './servers.ts';

const attacks = Number(process.env['TSKEEPER_ATTACKS'] ?? 20_000);
const seed = Number(process.env['TSKEEPER_SEED'] ?? 1);
const slowestReplyMsMax = 5000;

describe(`hostile sockets at ${kind}`, () => {
  it(`leave an honest client unharmed over ${attacks} attacks`, async () => {
    await inFolder(async (folder) => {
      const server = await start(folder);
      try {
        const report = await runHostileSockets({ endpoint: endpointOf(server.connectString), seed, attacks });
        console.log(JSON.stringify(report));
        expect(report.wrong).toBeUndefined();
        expect(server.alive).toBe(true);
        expect(report.slowestReplyMs).toBeLessThan(slowestReplyMsMax);
        expect(report.honestReplies).toBeGreaterThan(20);
      } finally {
        await server.kill();
      }
    });
  });

  it('fail the run when one reply to the honest client is wrong', async () => {
    await inFolder(async (folder) => {
      const server = await start(folder);
      try {
        const report = await runHostileSockets({
          endpoint: endpointOf(server.connectString),
          seed,
          attacks: 500,
          spoil: (message) => (message.kind === 'reply' && message.xid === 5 ? { ...message, err: -1 } : message),
        });
        expect(report.wrong).toMatch(/expected/);
      } finally {
        await server.kill();
      }
    });
  });
});
