/**
 * Every check against a tskeeper ensemble, with its first sessions at a follower and others at the
 * leader.
 */
import { createHash } from 'node:crypto';
import { TestEnsemble } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checks, Suite } from '../src/index.ts';

let ensemble: TestEnsemble;
let suite: Suite;
const superAuth = 'super:secret';

beforeAll(async () => {
  const superDigest = `super:${createHash('sha1').update(superAuth).digest('base64')}`;
  const config = { tickTime: 200, reconfigEnabled: true, 'DigestAuthenticationProvider.superDigest': superDigest };
  ensemble = await TestEnsemble.start({ servers: 3, config });
  const [follower] = ensemble.followers;
  const others = ensemble.servers.filter(({ sid }) => sid !== follower!.sid);
  // Most checks use the first server: a server that forwards writes can get more wrong.
  const connectString = [follower!, ...others].map((server) => server.connectString).join(',');
  suite = await Suite.prepare(connectString, { slow: true, timeoutMs: 4500, superAuth });
});

afterAll(async () => {
  await suite.close();
  await ensemble.close();
});

/**
 * What an ensemble without extended types cannot run, nor one whose lines name no client ports:
 * `npm run interop -- --only conformance` runs `config.reconfig`.
 */
const notApplicable = [
  'config.reconfig',
  'create.ttl',
  'create.flags',
  'multi.modes',
  'local-sessions.own-server-only',
  'local-sessions.first-ephemeral',
];

describe('a tskeeper ensemble', () => {
  for (const check of checks) {
    it(`${check.name}: ${check.title}`, async () => {
      const { outcome, reason } = await suite.run(check);
      expect({ outcome, reason }).toMatchObject(
        notApplicable.includes(check.name) ? { outcome: 'notApplicable' } : { outcome: 'passed', reason: undefined },
      );
    });
  }
});

describe.each([
  ['enabled', {}],
  ['upgradable', { localSessionsUpgradingEnabled: true }],
] as const)('a tskeeper ensemble with local sessions %s', (mode, more) => {
  it('is recognised as such, and passes the checks of local sessions', async () => {
    await using own = await TestEnsemble.start({ servers: 3, config: { tickTime: 200, localSessionsEnabled: true, ...more } });
    await using local = await Suite.prepare(own.connectString);
    expect(local.facts.localSessions).toBe(mode);
    const selected = checks.filter(({ name }) => name.startsWith('local-sessions.'));
    expect(selected).toHaveLength(2);
    for (const check of selected) expect(await local.run(check)).toMatchObject({ outcome: 'passed', reason: undefined });
    // A session without an ephemeral does not move.
    expect(await local.run(checks.find(({ name }) => name === 'ensemble.session-moved')!)).toMatchObject({ outcome: 'notApplicable' });
  });
});
