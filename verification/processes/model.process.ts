/**
 * The model is only useful if the real server agrees with it, reply by reply: Apache ZooKeeper
 * 3.9.5 above all.
 */
import { describe, expect, it } from 'vitest';
import type { Message } from '@tskeeper/simulator';
import { superDigest } from '../model/operations.ts';
import { Lockstep, type LockstepReport } from './lockstep.ts';
import { endpointOf } from '@tskeeper/harness';
import { inFolder, kind, start } from './servers.ts';

/** Per configuration; the comparison has four of them. */
const actions = Number(process.env['TSKEEPER_LOCKSTEP_ACTIONS'] ?? 15_000);
const seed = Number(process.env['TSKEEPER_SEED'] ?? 1);
const slots = 4;

interface Settings {
  readonly extendedTypesEnabled: boolean;
  readonly enforceQuota: boolean;
}

function compare(settings: Settings, count: number, spoil?: (message: Message, at: number) => Message): Promise<LockstepReport> {
  const javaCompatible = kind !== 'ours';
  return inFolder(async (folder) => {
    const properties = {
      'zookeeper.extendedTypesEnabled': settings.extendedTypesEnabled,
      'zookeeper.enforceQuota': settings.enforceQuota,
    };
    const server = await start(folder, kind, properties, javaCompatible ? {} : { 'tskeeper.keeperExtensions': true });
    try {
      return await new Lockstep({
        endpoint: endpointOf(server.connectString),
        model: {
          ...settings,
          javaCompatible,
          keeperExtensions: !javaCompatible,
          superDigest,
          minSessionTimeoutMs: 4000,
          maxSessionTimeoutMs: 40_000,
        },
        profile: { javaSafe: javaCompatible, slots },
        seed,
        actions: count,
        ...(spoil && { spoil }),
      }).run();
    } finally {
      await server.kill();
    }
  });
}

describe(`the model against ${kind}`, () => {
  for (const extendedTypesEnabled of [false, true]) {
    for (const enforceQuota of [false, true]) {
      it(`answers as the server does, extended types ${extendedTypesEnabled}, enforced quotas ${enforceQuota}`, async () => {
        const report = await compare({ extendedTypesEnabled, enforceQuota }, actions);
        console.log(`${report.actions} actions, ${report.messages} messages compared`);
        expect(report.wrong).toBeUndefined();
        expect(report.actions).toBe(actions);
        for (const outcome of ['create -110', 'delete -111', 'setData -103', 'multi 0', 'getData -102', 'removeWatches 0']) {
          expect([...report.outcomes.keys()]).toContain(outcome);
        }
      });
    }
  }

  it('fails the run for one wrong zxid among a thousand messages', async () => {
    const report = await compare({ extendedTypesEnabled: true, enforceQuota: false }, 1500, (message, at) =>
      at === 1000 && message.kind !== 'connected' && message.kind !== 'closed' ? { ...message, zxid: message.zxid + 1 } : message,
    );
    expect(report.wrong).toMatch(/expected/);
  });
});
