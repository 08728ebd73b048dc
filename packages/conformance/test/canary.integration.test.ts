/** Runs each check against a wrong server, which the check has to detect. */
import { createHash } from 'node:crypto';
import type { Client } from '@tskeeper/client';
import { TestEnsemble, TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runnableChecks } from '../src/checks/all.ts';
import { Mismatch } from '../src/expect.ts';
import { CheckContext, type OpenOptions } from '../src/check-context.ts';
import { type CheckResult, checks, Suite, type SuiteOptions } from '../src/index.ts';
import { canaries, clientCanaries, ensembleCanaries, localSessionCanaries, superCanaries, withoutCanary } from './support/canaries.ts';
import { mutations } from './support/mutations.ts';
import { cases, ensembleCases } from './support/defects.ts';
import { WrongServer, type Wrongness } from './support/wrong-server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start({ config: { tickTime: 200, extendedTypesEnabled: true } });
});

afterAll(async () => {
  await server.close();
});

/** A generous time limit: no wrong server is detected by a timeout. */
const ampleMs = 30_000;

function expectFound(result: CheckResult | undefined): void {
  expect(result?.outcome).toBe('failed');
  expect(result?.reason).toMatch(/expected .+; got .+\. Documentation: /s);
}

/** A suite prepared with a correct server, which becomes wrong when a check begins. */
class Shown implements AsyncDisposable {
  readonly #suite: Suite;
  readonly #front: WrongServer;
  readonly #switch: { make: () => Wrongness };

  private constructor(suite: Suite, front: WrongServer, shown: { make: () => Wrongness }) {
    this.#suite = suite;
    this.#front = front;
    this.#switch = shown;
  }

  /** The server at `port` can be made wrong; `connectString` returns a connect string with it. */
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

/**
 * The check fails because of a wrong reply, not because of a timeout; and it passes with the
 * correct server.
 */
async function expectCanary(shown: Shown, name: string, make: () => Wrongness): Promise<void> {
  const result = await shown.run(name, make);
  expectFound(result);
  expect(result.reason).not.toMatch(/^in time:/);
  expect(await shown.run(name)).toMatchObject({ outcome: 'passed' });
}

/** Runs a check with a changed client, connected to a correct server. */
async function runWithClient(name: string, methods: (right: Client) => Partial<Client>): Promise<void> {
  await using suite = await Suite.prepare(server.connectString);
  const rootPath = `${suite.scratchPath}/${name}`;
  const ground = new (class extends CheckContext {
    override async openClient(options?: OpenOptions): Promise<Client> {
      const right = await super.openClient(options);
      const own = methods(right);
      return new Proxy(right, {
        get: (_, key) => {
          const value: unknown = Reflect.get(own, key) ?? Reflect.get(right, key, right);
          return typeof value === 'function' ? value.bind(right) : value;
        },
      });
    }
  })({ facts: suite.facts, rootPath, superAuth: undefined });
  await (await ground.openClient()).create(rootPath);
  try {
    await runnableChecks.find((check) => check.name === name)!.run(ground);
  } finally {
    await ground.end();
  }
}

describe('every check', () => {
  it('has a canary, listed in exactly one table', () => {
    // One check may detect several kinds of wrong servers.
    const own = new Set([...cases, ...ensembleCases].map(({ found }) => found));
    const ofEnsembles = new Set(ensembleCanaries.map(({ check }) => check));
    const all = [
      ...own,
      ...Object.keys(canaries),
      ...ofEnsembles,
      ...new Set(localSessionCanaries.map(({ check }) => check)),
      ...Object.keys(superCanaries),
      ...Object.keys(clientCanaries),
      ...withoutCanary,
    ];
    expect(all.toSorted()).toEqual(checks.map(({ name }) => name).toSorted());
  });
});

describe('a wrong server', () => {
  let shown: Shown;

  beforeAll(async () => {
    shown = await Shown.prepare(server.port, (front) => front);
  });

  afterAll(async () => {
    await shown[Symbol.asyncDispose]();
  });

  for (const { wrong, found, make } of cases) it(`is detected by ${found}: ${wrong}`, () => expectCanary(shown, found, make));

  for (const [check, bugs] of Object.entries(canaries)) {
    for (const bug of [bugs].flat()) it(`is detected by ${check}: ${bug}`, () => expectCanary(shown, check, mutations[bug]!));
  }
});

describe('a wrong client', () => {
  for (const [check, { wrong, methods }] of Object.entries(clientCanaries)) {
    it(`is detected by ${check}: ${wrong}`, async () => {
      await expect(runWithClient(check, methods)).rejects.toThrow(Mismatch);
      await runWithClient(check, () => ({}));
    });
  }
});

describe('a wrong server with a super user', () => {
  for (const [check, bug] of Object.entries(superCanaries)) {
    it(`is detected by ${check}: ${bug}`, async () => {
      const superAuth = 'super:secret';
      const digest = `super:${createHash('sha1').update(superAuth).digest('base64')}`;
      const own = await TestServer.start({ config: { 'DigestAuthenticationProvider.superDigest': digest } });
      try {
        await using shown = await Shown.prepare(own.port, (front) => front, { superAuth });
        await expectCanary(shown, check, mutations[bug]!);
      } finally {
        await own.close();
      }
    });
  }
});

describe('an ensemble with one wrong server', () => {
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
    it(`is detected by ${found}: ${wrong}`, async () => {
      await using shown = await Shown.prepare(ensemble.servers[at]!.port, withFront(at));
      await expectCanary(shown, found, make);
    });
  }

  for (const { check, server: at, bug } of ensembleCanaries) {
    it(`is detected by ${check}: ${bug}`, async () => {
      await using shown = await Shown.prepare(ensemble.servers[at]!.port, withFront(at));
      await expectCanary(shown, check, mutations[bug]!);
    });
  }
});

describe('an ensemble with wrong local sessions', () => {
  for (const { check: name, wrong, expected, actual } of localSessionCanaries) {
    it(`is detected by ${name}: ${wrong}`, async () => {
      const config = { tickTime: 200, localSessionsEnabled: actual !== 'disabled', localSessionsUpgradingEnabled: actual === 'upgradable' };
      await using ensemble = await TestEnsemble.start({ servers: 3, config });
      await using suite = await Suite.prepare(ensemble.connectString);
      const { facts } = suite;
      expect(facts.localSessions).toBe(actual);
      const rootPath = `${suite.scratchPath}/canary`;
      const ground = new CheckContext({ facts: { ...facts, localSessions: expected }, rootPath, superAuth: undefined });
      try {
        await (await ground.openClient()).create(rootPath);
        const check = runnableChecks.find((each) => each.name === name)!;
        const failed = await check.run(ground).then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(String(failed)).toMatch(
          /EphemeralOnLocalSession|Ephemeral node on local session|the granted timeout at another server: expected 0/,
        );
      } finally {
        await ground.end();
      }
    });
  }
});
