/** The checks are shown servers that are wrong, and each has to say so. */
import { TestEnsemble, TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CheckResult, checks, Suite } from '../src/index.ts';
import { cases, ensembleCases } from './support/wrongnesses.ts';
import { WrongServer } from './support/wrong-server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start({ config: { tickTime: 200, extendedTypesEnabled: true } });
});

afterAll(async () => {
  await server.close();
});

/** Some servers are found by what does not come in time. */
const shortMs = 1000;

async function resultsOf(connectString: string, names: readonly string[], timeoutMs: number): Promise<CheckResult[]> {
  await using suite = await Suite.prepare(connectString, { slow: true, timeoutMs });
  const results: CheckResult[] = [];
  for (const name of names) results.push(await suite.run(checks.find((check) => check.name === name)!));
  return results;
}

function expectFound(result: CheckResult | undefined): void {
  expect(result?.outcome).toBe('failed');
  expect(result?.reason).toMatch(/expected .+; came .+\. Documentation: /s);
}

describe('a server that is wrong', () => {
  for (const { wrong, found, make } of cases) {
    it(`is found by ${found}: ${wrong}`, async () => {
      await using front = await WrongServer.start(server.port, make);
      expectFound((await resultsOf(front.connectString, [found], shortMs))[0]);
    });
  }

  it('is what those checks look for: the right one passes all of them through the same proxy', async () => {
    await using front = await WrongServer.start(server.port, () => ({}));
    const results = await resultsOf(
      front.connectString,
      cases.map(({ found }) => found),
      4500,
    );
    expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
  });
});

describe('an ensemble of which one server is wrong', () => {
  let ensemble: TestEnsemble;

  beforeAll(async () => {
    ensemble = await TestEnsemble.start({ servers: 3 });
  });

  afterAll(async () => {
    await ensemble.close();
  });

  for (const { wrong, found, server: at, make } of ensembleCases) {
    it(`is found by ${found}: ${wrong}`, async () => {
      await using front = await WrongServer.start(ensemble.servers[at]!.port, make);
      const servers = ensemble.servers.map(({ connectString }, index) => (index === at ? front.connectString : connectString));
      expectFound((await resultsOf(servers.join(','), [found], shortMs))[0]);
    });
  }
});
