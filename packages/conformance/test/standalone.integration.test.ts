/** Every check against a standalone tskeeper server. */
import { TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checks, Suite } from '../src/index.ts';

let server: TestServer;
let suite: Suite;

beforeAll(async () => {
  server = await TestServer.start({ config: { tickTime: 200, extendedTypesEnabled: true } });
  suite = await Suite.prepare(server.connectString, { slow: true, timeoutMs: 4500 });
});

afterAll(async () => {
  await suite.close();
  await server.close();
});

/** What one server without a super user cannot run. */
const notApplicable = checks.filter(
  ({ name }) => /^(?:ensemble|local-sessions)\./.test(name) || ['acl.super', 'config.reconfig', 'create.ttl-switched-off'].includes(name),
);

describe('a standalone tskeeper server', () => {
  for (const check of checks) {
    it(`${check.name}: ${check.title}`, async () => {
      const { outcome, reason } = await suite.run(check);
      expect({ outcome, reason }).toMatchObject(
        notApplicable.includes(check) ? { outcome: 'notApplicable' } : { outcome: 'passed', reason: undefined },
      );
    });
  }
});
