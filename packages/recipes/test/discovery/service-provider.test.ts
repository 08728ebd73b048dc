import { connect } from '@tskeeper/client';
import { ErrorCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ProviderStrategy, randomly, roundRobin, type ServiceInstance, ServiceDiscovery, Sessions, sticky } from '../../src/index.ts';
import { ScriptedClient } from '../caches/scripted-client.ts';
import { expire } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

const instance = (id: string): ServiceInstance => ({
  name: 'api',
  id,
  address: id,
  port: 80,
  sslPort: null,
  payload: null,
  registrationTimeMs: 1,
  serviceType: 'dynamic',
  uriSpec: null,
  enabled: true,
});
const [a, b, c] = [instance('a'), instance('b'), instance('c')];
const chosen = (strategy: ProviderStrategy, ...turns: ServiceInstance[][]) => turns.map((instances) => strategy(instances)?.id).join('');

describe('a strategy', () => {
  it('B26: chooses one instance after another, also while instances are added and removed', () => {
    expect(chosen(roundRobin(), [a, b, c], [a, b, c], [a, b, c], [a, b, c], [a, b], [a], [a], [a, b])).toBe('abcabaab');
    expect(chosen(roundRobin(), [], [a, b], [], [a, b])).toBe('ab');
    const turns = Array.from({ length: 300 }, () => [a, b, c]);
    expect(chosen(roundRobin(), ...turns)).toBe('abc'.repeat(100));
  });

  it('B26: chooses randomly, each instance with the same frequency', () => {
    const numbers = [0, 0.34, 0.99, 0.5];
    expect(
      chosen(
        randomly(() => numbers.shift()!),
        [a, b, c],
        [a, b, c],
        [a, b, c],
        [a, b],
      ),
    ).toBe('abcb');
    expect(
      chosen(
        randomly(() => 0.5),
        [],
      ),
    ).toBe('');
  });

  it('B26: keeps one instance as long as it is usable, whatever its fields are', () => {
    expect(chosen(sticky(), [a, b, c], [a, b, c], [b, c], [a, b, c], [], [a, b])).toBe('aacca');
    const strategy = sticky(randomly(() => 0.99));
    expect([strategy([a, b]), strategy([a, { ...b, payload: 2 }, c])?.payload]).toEqual([b, 2]);
  });
});

describe('a service provider', () => {
  let t: RecipeWorld;
  let registry: ServiceDiscovery;

  beforeEach(async () => {
    t = await RecipeWorld.start();
    registry = new ServiceDiscovery(t.zk, '/services');
  });

  afterEach(async () => {
    await t.close();
  });

  const register = (id: string) => t.until(registry.register({ name: 'api', id, address: id }));
  const ids = (provider: { readonly instances: readonly ServiceInstance[] }) => provider.instances.map(({ id }) => id).join('');

  it('B26: chooses among the registered, enabled and included instances, while they are added and removed', async () => {
    const provider = registry.provider('api', { include: ({ id }) => id !== 'x' });
    expect(provider.choose()).toBe(undefined);
    await t.until(provider.ready());
    expect([provider.isSynced, provider.choose()]).toEqual([true, undefined]);
    const [one] = [await register('a'), await register('b'), await register('x')];
    await t.settle();
    expect([1, 2, 3].map(() => provider.choose()?.id)).toEqual(['a', 'b', 'a']);
    await t.until(registry.update('api', 'b', { enabled: false }));
    await t.settle();
    expect(ids(provider)).toBe('a');
    await t.until(one.unregister());
    await t.until(registry.update('api', 'b', { enabled: true }));
    await t.settle();
    expect(ids(provider)).toBe('b');
    await provider.close();
    await t.until(registry.update('api', 'b', { enabled: false }));
    expect(ids(provider)).toBe('b');
    expect(await failureOf(provider.ready())).toMatchObject({ code: 'Closed' });
  });

  it('B26: skips an instance that has failed too often within a time, until that time is over or it is registered again', async () => {
    const provider = registry.provider('api', { downAfterErrors: 2, downForMs: 10_000 });
    const one = await register('a');
    await register('b');
    await t.until(provider.ready());
    const fail = () => provider.noteError(provider.instances.find(({ id }) => id === 'a')!);
    fail();
    expect(ids(provider)).toBe('ab');
    await t.pass(10_000, 1000);
    // The first of these errors is too old.
    fail();
    expect(ids(provider)).toBe('ab');
    await t.pass(4000, 1000);
    fail();
    expect(ids(provider)).toBe('b');
    await t.pass(5900, 100);
    expect(ids(provider)).toBe('b');
    await t.pass(100);
    expect(ids(provider)).toBe('ab');
    fail();
    fail();
    expect(ids(provider)).toBe('b');
    await t.until(one.unregister());
    await t.pass(100);
    await register('a');
    await t.settle();
    expect(ids(provider)).toBe('ab');
  });

  it('B26: shows the last known instances without a connection, is in step again after a reconnect, and continues in the next session', async () => {
    const many = await t.until(Sessions.start(() => connect('server:2181', t.world.options({ connectTimeoutMs: Infinity }))));
    const provider = new ServiceDiscovery(many, '/services').provider('api');
    await register('a');
    await t.until(provider.ready());
    t.world.wire.name('server', []);
    t.world.break();
    await t.settle();
    expect([provider.isSynced, ids(provider)]).toEqual([false, 'a']);
    const { address } = t.world;
    t.world.wire.name('server', [address]);
    await t.world.untilSo(() => provider.isSynced);
    await expire(t, many.client);
    expect(ids(provider)).toBe('a');
    await register('b');
    await t.world.untilSo(() => provider.isSynced && ids(provider) === 'ab');
    await t.until(many.close());
    expect(await failureOf(provider.ready())).toMatchObject({ code: 'Closed' });
  });

  it('B26: is waited for until the timeout or an abort of the signal, and ends when its client ends', async () => {
    const zk = await t.client();
    const { backward } = t.world.cnxn;
    backward.cut();
    const provider = new ServiceDiscovery(zk, '/services').provider('api');
    const late = failureOf(provider.ready({ timeoutMs: 100 }));
    const abort = new AbortController();
    const unwanted = failureOf(provider.ready({ signal: abort.signal }));
    abort.abort(new Error('no longer wanted'));
    await t.pass(200);
    expect(await late).toMatchObject({ code: 'TimedOut' });
    expect(await unwanted).toMatchObject({ message: 'no longer wanted' });
    backward.heal();
    await t.until(provider.ready());
    await expire(t, zk);
    await t.settle();
    expect(await failureOf(provider.ready())).toMatchObject({ code: 'Lost' });
  });

  it('B26: rejects when its client is closed or its instances cannot be read, however late the call', async () => {
    const zk = await t.client();
    await t.until(zk.close());
    const late = new ServiceDiscovery(zk, '/services').provider('api');
    expect(await failureOf(late.ready())).toMatchObject({ code: 'Closed' });
    await late.close();
    const scripted = new ScriptedClient();
    const provider = new ServiceDiscovery(scripted.view, '/services').provider('api');
    const early = failureOf(provider.ready());
    await scripted.reread();
    await scripted.refuse('getChildren /services/api', ErrorCode.Unimplemented);
    expect(await early).toMatchObject({ code: 'Unimplemented' });
    expect(await failureOf(provider.ready())).toMatchObject({ code: 'Unimplemented' });
    expect(scripted.listeners).toBe(0);
    expect(() => new ServiceDiscovery(scripted.view, '/services').provider('a/b')).toThrow(TypeError);
    expect(scripted.listeners).toBe(0);
  });

  it('B26: rejects numbers out of range', () => {
    expect(() => registry.provider('api', { downAfterErrors: 0 })).toThrow(
      new RangeError('downAfterErrors must be a whole number from 1, not 0; if no instance is to be skipped, do not call noteError'),
    );
    expect(() => registry.provider('api', { downForMs: -1 })).toThrow(
      new RangeError('downForMs must be a number of milliseconds from 0, not -1'),
    );
    expect(() => registry.provider('a/b')).toThrow(TypeError);
  });
});
