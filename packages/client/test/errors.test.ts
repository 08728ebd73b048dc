/**
 * The error of a failed call: the same for every method, with a stack that shows the line that
 * waits.
 */
import { ErrorCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect, KeeperError, type KeeperErrorCode, type Outcome } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { methods, methodsOfClient } from './support/methods.ts';
import { ScriptedTransport } from './support/scripted-transport.ts';

/** Calls of several steps in which another method fails, by their options. */
const variants: Readonly<Record<string, (zk: Client, path: string) => Promise<unknown>>> = {
  'create with parents': (zk, path) => zk.create(path, null, { parents: true }),
  'create with protection': (zk, path) => zk.create(path, null, { protection: true }),
  'delete idempotent': (zk, path) => zk.delete(path, { idempotent: true }),
  'delete guaranteed': (zk, path) => zk.delete(path, { guaranteed: true }),
  'setData idempotent': (zk, path) => zk.setData(path, 'x', { idempotent: true }),
  'getData linearizable': (zk, path) => zk.getData(path, { linearizable: true }),
  'getData with retry': (zk, path) => zk.getData(path, { retry: true }),
};
const all = Object.entries({ ...methods, ...variants });
/** Calls about the session, the ensemble or several paths. */
const pathless = ['addAuth', 'whoAmI', 'multi', 'multiRead', 'getLeader'];
const configured = ['getConfig', 'reconfig', 'transferLeader', 'shedConnections'];

const methodOf = (title: string) => title.split(' ')[0]!;
function pathOf(title: string, path: string): string | undefined {
  const method = methodOf(title);
  return pathless.includes(method) ? undefined : configured.includes(method) ? '/zookeeper/config' : path;
}

async function theCallerThatWaits(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return undefined;
}

let world: ClientWorld;
beforeEach(async () => {
  world = await ClientWorld.start();
});
afterEach(() => world.close());

interface Received {
  readonly op: string;
  readonly path: string | undefined;
  readonly code: KeeperErrorCode;
  readonly outcome: Outcome;
  readonly retryable: boolean;
}

function expectError(error: unknown, { code, ...received }: Received): void {
  expect(KeeperError.is(error, code)).toBe(true);
  expect(error).toMatchObject({ ...received, code, errno: ErrorCode[code as keyof typeof ErrorCode], name: 'KeeperError' });
  expect((error as Error).stack).toContain('theCallerThatWaits');
}

describe('B31: every method of the client', () => {
  it('is covered by these tests', () => {
    expect(Object.keys(methods).sort()).toEqual(methodsOfClient());
  });

  it.each(all)('%s on a closed client rejects with SessionExpired, not sent, and the stack of the caller', async (title, call) => {
    const zk = await world.connect();
    await world.until(zk.close());
    const error = await world.until(theCallerThatWaits(() => call(zk, '/a')));
    const [method, path] = [methodOf(title), pathOf(title, '/a')];
    expectError(error, { op: method, path, code: 'SessionExpired', outcome: 'notSent', retryable: false });
  });

  /** Calls that survive a lost answer, as long as the session or their own `timeoutMs` allows. */
  const persistent = ['watch', 'addAuth', 'create with protection'];
  it.each(all.filter(([title]) => !persistent.includes(title)))(
    '%s without an answer rejects with RequestTimeout or ConnectionLoss, and the stack of the caller',
    async (title, call) => {
      const zk = await world.connect({ requestTimeoutMs: 300 });
      const waiting = theCallerThatWaits(() => call(zk, '/a'));
      // The request is sent at the end of the turn, and never arrives.
      await Promise.resolve();
      world.kill();
      const error = await world.until(waiting);
      const { code, outcome } = error as KeeperError;
      expect(['RequestTimeout', 'ConnectionLoss']).toContain(code);
      expectError(error, { op: methodOf(title), path: pathOf(title, '/a'), code, outcome, retryable: true });
    },
  );

  const refused: Readonly<Record<string, KeeperErrorCode>> = {
    create: 'NoNode',
    delete: 'NoNode',
    getACL: 'NoNode',
    getAllChildrenNumber: 'NoNode',
    getChildren: 'NoNode',
    getData: 'NoNode',
    multi: 'NoNode',
    reconfig: 'ReconfigDisabled',
    removeWatches: 'NoWatcher',
    setACL: 'InvalidACL',
    setData: 'NoNode',
    shedConnections: 'NoAuth',
    transferLeader: 'Unimplemented',
    update: 'NoNode',
    walk: 'NoNode',
  };
  it.each(Object.entries(refused))('%s that a server rejects fails with %s, the path as passed, and no change', async (title, code) => {
    const zk = await world.connect({}, '/app');
    await world.until(zk.ensurePath('/'));
    const error = await world.until(theCallerThatWaits(() => methods[title]!(zk, '/none/b')));
    expectError(error, { op: title, path: pathOf(title, '/none/b'), code, outcome: 'refused', retryable: false });
    await world.until(zk.close());
  });

  const needsPath = Object.keys(methods).filter((title) => pathOf(title, '') === '');
  it.each(needsPath)('%s with an invalid path rejects with BadArguments, not sent', async (title) => {
    const zk = await world.connect();
    const error = await world.until(theCallerThatWaits(() => methods[title]!(zk, 'a//b')));
    expectError(error, { op: title, path: 'a//b', code: 'BadArguments', outcome: 'notSent', retryable: false });
    await world.until(zk.close());
  });
});

describe('connect', () => {
  it('fails like a call if no server is reached', async () => {
    const error = await world.until(theCallerThatWaits(() => connect('nowhere:1', world.options({ connectTimeoutMs: 100 }))));
    expectError(error, { op: 'connect', path: undefined, code: 'ConnectionLoss', outcome: 'notSent', retryable: true });
  });

  it('fails like a call if the session to resume is gone', async () => {
    const session = { id: 0x123n, password: new Uint8Array(16) };
    const error = await world.until(theCallerThatWaits(() => connect('server:2181', world.options({ session }))));
    expectError(error, { op: 'connect', path: undefined, code: 'SessionExpired', outcome: 'notSent', retryable: false });
  });

  it('fails like a call if an identity is rejected', async () => {
    const auth = [{ scheme: 'kerberos', auth: 'x' }];
    const error = await world.until(theCallerThatWaits(() => connect('server:2181', world.options({ auth }))));
    expectError(error, { op: 'connect', path: undefined, code: 'AuthFailed', outcome: 'refused', retryable: false });
  });

  it('rejects invalid options and connect strings with the reason and the stack of the caller', async () => {
    for (const [connectString, options, name] of [
      ['a:b', {}, 'ConnectStringError'],
      ['a', { tls: { ca: 'no-such-file.pem' } }, 'ConnectOptionsError'],
      ['a', { tls: true, transport: new ScriptedTransport() }, 'ConnectOptionsError'],
      ['a', { sessionTimeoutMs: -1 }, 'RangeError'],
    ] as const) {
      const error = await theCallerThatWaits(() => connect(connectString, options));
      expect(error).toMatchObject({ name });
      expect((error as Error).stack).toContain('theCallerThatWaits');
    }
  });
});

describe('two copies of the package in one program', () => {
  it("recognise each other's errors", async () => {
    const again = '../src/keeper-error.ts?copy';
    const { KeeperError: copy } = (await import(again)) as { KeeperError: typeof KeeperError };
    expect(copy).not.toBe(KeeperError);
    const zk = await world.connect();
    const error = await world.until(theCallerThatWaits(() => zk.getData('/none')));
    await world.until(zk.close());
    expect(error).not.toBeInstanceOf(copy);
    expect(copy.is(error)).toBe(true);
    expect(copy.is(error, 'NoNode')).toBe(true);
    expect(copy.is(error, 'NodeExists')).toBe(false);
  });
});
