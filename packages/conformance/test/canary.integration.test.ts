/** The checks are shown servers that are wrong, and each has to say so. */
import { createHash } from 'node:crypto';
import { TestEnsemble, TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CheckResult, checks, Suite, type SuiteOptions } from '../src/index.ts';
import { canaries, ensembleCanaries, superCanaries, withoutCanary } from './support/canaries.ts';
import { mutations } from './support/mutations.ts';
import { cases, ensembleCases } from './support/wrongnesses.ts';
import { WrongServer, type Wrongness } from './support/wrong-server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start({ config: { tickTime: 200, extendedTypesEnabled: true } });
});

afterAll(async () => {
  await server.close();
});

/** Some servers are found by what does not come in time. */
const shortMs = 1000;
/** All others are found by what comes. */
const ampleMs = 30_000;

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

/** A suite that is prepared by a server which is right, and becomes wrong when a check begins. */
class Shown implements AsyncDisposable {
  readonly #suite: Suite;
  readonly #front: WrongServer;
  readonly #switch: { make: () => Wrongness };

  private constructor(suite: Suite, front: WrongServer, shown: { make: () => Wrongness }) {
    this.#suite = suite;
    this.#front = front;
    this.#switch = shown;
  }

  /** The server at `port` can be made wrong; `connectString` makes one with it. */
  static async prepare(port: number, connectString: (front: string) => string, options: SuiteOptions = {}): Promise<Shown> {
    const shown = { make: (): Wrongness => ({}) };
    const front = await WrongServer.start(port, () => shown.make());
    const suite = await Suite.prepare(connectString(front.connectString), { slow: true, timeoutMs: ampleMs, ...options });
    return new Shown(suite, front, shown);
  }

  async run(name: string, make: () => Wrongness = () => ({})): Promise<CheckResult> {
    this.#switch.make = make;
    try {
      return await this.#suite.run(checks.find((check) => check.name === name)!);
    } finally {
      this.#switch.make = () => ({});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#suite.close();
    await this.#front.close();
  }
}

/** The check turns red by what came, not by what did not come in time; and it is green where the server is right. */
async function expectCanary(shown: Shown, name: string, bug: string): Promise<void> {
  const result = await shown.run(name, mutations[bug]);
  expectFound(result);
  expect(result.reason).not.toMatch(/^in time:/);
  expect(await shown.run(name)).toMatchObject({ outcome: 'passed' });
}

describe('every check', () => {
  it('has a canary, and only one table says which', () => {
    // One check may find several kinds of wrong servers.
    const own = new Set([...cases, ...ensembleCases].map(({ found }) => found));
    const all = [...own, ...Object.keys(canaries), ...Object.keys(ensembleCanaries), ...Object.keys(superCanaries), ...withoutCanary];
    expect(all.toSorted()).toEqual(checks.map(({ name }) => name).toSorted());
  });
});

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

  describe('in one of these ways', () => {
    let shown: Shown;

    beforeAll(async () => {
      shown = await Shown.prepare(server.port, (front) => front);
    });

    afterAll(async () => {
      await shown[Symbol.asyncDispose]();
    });

    for (const [check, bug] of Object.entries(canaries)) {
      it(`is found by ${check}: ${bug}`, () => expectCanary(shown, check, bug));
    }
  });
});

describe('a server with a super user that is wrong', () => {
  for (const [check, bug] of Object.entries(superCanaries)) {
    it(`is found by ${check}: ${bug}`, async () => {
      const superAuth = 'super:secret';
      const digest = `super:${createHash('sha1').update(superAuth).digest('base64')}`;
      const own = await TestServer.start({ config: { 'DigestAuthenticationProvider.superDigest': digest } });
      try {
        await using shown = await Shown.prepare(own.port, (front) => front, { superAuth });
        await expectCanary(shown, check, bug);
      } finally {
        await own.close();
      }
    });
  }
});

describe('an ensemble of which one server is wrong', () => {
  let ensemble: TestEnsemble;

  const withFront = (at: number) => (front: string) =>
    ensemble.servers.map(({ connectString }, index) => (index === at ? front : connectString)).join(',');

  beforeAll(async () => {
    ensemble = await TestEnsemble.start({ servers: 3, config: { tickTime: 200 } });
  });

  afterAll(async () => {
    await ensemble.close();
  });

  for (const { wrong, found, server: at, make } of ensembleCases) {
    it(`is found by ${found}: ${wrong}`, async () => {
      await using front = await WrongServer.start(ensemble.servers[at]!.port, make);
      expectFound((await resultsOf(withFront(at)(front.connectString), [found], shortMs))[0]);
    });
  }

  for (const [check, { server: at, bug }] of Object.entries(ensembleCanaries)) {
    it(`is found by ${check}: ${bug}`, async () => {
      await using shown = await Shown.prepare(ensemble.servers[at]!.port, withFront(at));
      await expectCanary(shown, check, bug);
    });
  }
});
