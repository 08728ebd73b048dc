import { type Client, connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceDiscovery, type ServiceSettings, Sessions } from '../../src/index.ts';
import { expire, forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

interface Load {
  readonly load: number;
}

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const api: ServiceSettings<Load> = { name: 'api', address: '10.0.0.1', port: 8080, payload: { load: 1 } };
const path = '/services/api/10.0.0.1:8080';
const utf8 = new TextDecoder();

function load(value: unknown): Load {
  if (typeof (value as Load | null)?.load !== 'number') throw new TypeError('no load');
  return value as Load;
}

const registryOf = (zk: Client | Sessions) => new ServiceDiscovery<Load>(zk, '/services', { payloadValidator: load });
const rawOf = async (at: string) => JSON.parse(utf8.decode((await t.until(t.zk.getData(at))).data ?? undefined)) as unknown;
const sessions = () => t.until(Sessions.start(() => connect('server:2181', t.world.options({ connectTimeoutMs: Infinity }))));

describe('a service registry', () => {
  it("B26: registers an instance as one ephemeral znode in Curator's format, and watches it", async () => {
    const { zk, lines } = await t.recorded();
    await t.until(t.zk.ensurePath('/services/api'));
    const registration = await t.until(registryOf(zk).register(api));
    await t.settle();
    await t.until(registration.unregister());
    expect(lines).toEqual([
      `create ${path} ephemeral`,
      `exists ${path} watch`,
      `removeWatches ${path}`,
      `exists ${path}`,
      `delete ${path}`,
    ]);
    expect(await t.until(t.zk.exists(path))).toBe(null);
    expect(registration.state).toBe('closed');
  });

  it('B26: writes instances as Curator reads them', async () => {
    const registry = new ServiceDiscovery(t.zk, '/services');
    await t.until(
      registry.register({
        name: 'api',
        id: '7f6c',
        address: '10.0.0.1',
        port: 8080,
        sslPort: 8443,
        payload: 'hello',
        registrationTimeMs: 1_700_000_000_000,
        serviceType: 'static',
        uriSpec: '{scheme}://{address}',
      }),
    );
    const { data, stat } = await t.until(t.zk.getData('/services/api/7f6c'));
    expect(utf8.decode(data ?? undefined)).toBe(
      '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":8443,"payload":"hello","registrationTimeUTC":1700000000000,' +
        '"serviceType":"STATIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true}]}}',
    );
    expect(stat.ephemeralOwner).toBe(0n);
  });

  it('B26: finds services and their instances, and skips invalid ones', async () => {
    const registry = registryOf(await t.client());
    expect(await t.until(registry.names())).toEqual([]);
    expect(await t.until(registry.instances('api'))).toEqual([]);
    await t.until(registryOf(t.zk).register({ ...api, address: '10.0.0.2' }));
    await t.until(registryOf(t.zk).register({ ...api, uriSpec: 'x' }));
    await t.until(t.zk.create('/services/api/broken', '{'));
    await t.until(t.zk.create('/services/api/other', '{"name":"api","id":"other","payload":{}}'));
    expect(await t.until(registry.names())).toEqual(['api']);
    const found = await t.until(registry.instances('api'));
    expect(found.map(({ id, payload }) => [id, payload.load])).toEqual([
      ['10.0.0.1:8080', 1],
      ['10.0.0.2:8080', 1],
    ]);
    expect(await t.until(registry.instance('api', '10.0.0.1:8080'))).toEqual(found[0]);
    expect(await t.until(registry.instance('api', 'none'))).toBe(undefined);
    const { ctime } = (await t.until(t.zk.exists(path)))!;
    expect(found[0]).toMatchObject({ registrationTimeMs: ctime, uriSpec: 'x', sslPort: null, enabled: true, serviceType: 'dynamic' });
    expect(await t.until(failureOf(registry.instance('api', 'other')))).toMatchObject({
      code: 'Mismatch',
      message: 'the data of /services/api/other are not an instance of a service: no load',
    });
    const cache = registry.cache('api');
    await t.until(cache.ready());
    expect(cache.instances).toEqual(found);
    expect(cache.get('broken')?.decodeError).toBeInstanceOf(SyntaxError);
    await cache.close();
  });

  it('B26: changes fields of an instance, for its owner and for others, and keeps unknown fields', async () => {
    const registration = await t.until(registryOf(await t.client()).register(api));
    const operator = registryOf(t.zk);
    await t.until(operator.update('api', '10.0.0.1:8080', { enabled: false }));
    const raw = (await rawOf(path)) as object;
    await t.until(t.zk.setData(path, JSON.stringify({ ...raw, zone: 'b' })));
    await t.until(registration.update({ payload: { load: 2 } }));
    expect(await rawOf(path)).toEqual({ ...raw, zone: 'b', enabled: false, payload: { load: 2 } });
    expect(await t.until(failureOf(registration.update({ payload: {} as Load })))).toMatchObject({ code: 'Refused' });
    expect(await t.until(failureOf(operator.update('api', '10.0.0.1:8080', { payload: {} as Load })))).toMatchObject({ code: 'Refused' });
    expect(await t.until(failureOf(operator.update('api', 'none', { enabled: true })))).toMatchObject({ code: 'NoNode' });
    await t.until(t.zk.setData(path, '['));
    expect(await t.until(failureOf(operator.update('api', '10.0.0.1:8080', { enabled: true })))).toMatchObject({ code: 'Mismatch' });
    await t.until(registration.update({ enabled: true }));
    expect(await rawOf(path)).toEqual({ ...raw, zone: 'b', enabled: true, payload: { load: 2 } });
  });

  it('B26: loses no change when an owner makes several at once', async () => {
    const registration = await t.until(registryOf(await t.client()).register(api));
    const changes = [{ port: 1 }, { sslPort: 2 }, { enabled: false }, { payload: { load: 4 } }];
    await t.until(Promise.all(changes.map((change) => registration.update(change))));
    expect(await rawOf(path)).toMatchObject({ port: 1, sslPort: 2, enabled: false, payload: { load: 4 } });
    const { backward } = t.world.cnxn;
    backward.cut();
    const slow = registration.update({ port: 5 });
    const late = failureOf(registration.update({ sslPort: 6 }, { timeoutMs: 200 }));
    await t.pass(300);
    expect(await t.until(late, 100)).toMatchObject({ code: 'TimedOut' });
    backward.heal();
    await t.until(slow);
    expect(await rawOf(path)).toMatchObject({ port: 5, sslPort: 2 });
  });

  it('B26: registers again when its znode is deleted, and in the next session when the last one ends', async () => {
    const many = await sessions();
    const registration = await t.until(registryOf(many).register(api));
    const states: string[] = [];
    registration.onStateChange((state) => states.push(state));
    await t.until(t.zk.delete(path));
    await t.settle();
    expect(states).toEqual(['absent', 'present']);
    await t.until(registration.update({ payload: { load: 3 } }));
    t.world.break();
    await t.pass(1000);
    await expire(t, many.client);
    await t.world.untilSo(() => states.at(-1) === 'present');
    expect(await rawOf(path)).toMatchObject({ payload: { load: 3 } });
    expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(many.client.sessionId);
    await t.until(registration.unregister());
    await t.until(many.close());
    expect(await t.until(t.zk.exists(path))).toBe(null);
  });

  it('CURATOR-164, CURATOR-617: does not register again an instance that is unregistered while its session ends', async () => {
    const many = await sessions();
    const all = await Promise.all(
      (['dynamic', 'static'] as const).map((serviceType) => t.until(registryOf(many).register({ ...api, id: serviceType, serviceType }))),
    );
    const { client } = many;
    t.world.wire.name('server', []);
    for (const cnxn of [...t.world.wire.cnxns].filter(({ dialer }) => dialer.address !== '10.1.0.1')) t.world.break(cnxn);
    await t.settle();
    await t.until(Promise.all(all.map((each) => each.unregister())));
    t.world.wire.name('server', [t.world.address]);
    await expire(t, client);
    await t.world.untilSo(() => many.client !== client);
    await t.pass(500);
    expect(await t.until(registryOf(t.zk).instances('api'))).toEqual([]);
    await t.until(many.close());
  });

  it('B26: ends when its client ends, with the same reason', async () => {
    const zk = await t.client();
    const registration = await t.until(registryOf(zk).register(api));
    await expire(t, zk);
    await t.settle();
    expect(registration.signal.reason).toMatchObject({ code: 'Lost' });
    expect(await t.until(failureOf(registration.update({ enabled: false })))).toMatchObject({ code: 'Lost' });
    expect(await t.until(t.zk.exists(path))).toBe(null);
  });

  it('B26: waits while another session holds the id, unless it takes the id over', async () => {
    const before = await t.client();
    await t.until(registryOf(before).register(api));
    const late = failureOf(registryOf(t.zk).register(api, { timeoutMs: 500 }));
    await t.pass(600);
    expect(await t.until(late)).toMatchObject({ code: 'TimedOut' });
    expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(before.sessionId);
    const waiting = registryOf(t.zk).register(api);
    await t.settle();
    await expire(t, before);
    const registration = await t.until(waiting);
    expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(t.zk.sessionId);
    await t.until(registration.unregister());
    const dead = await t.client();
    await t.until(dead.create(path, '{}', { mode: 'ephemeral', parents: 'container' }));
    await t.until(registryOf(t.zk).register(api, { takeOver: true }));
    expect(await rawOf(path)).toMatchObject({ payload: { load: 1 } });
  });

  it('B26: leaves one znode when the reply to its creation is lost, and none when the reply to its deletion is lost', async () => {
    const deaf = await forgetful(t);
    await t.until(t.zk.ensurePath('/services/api'));
    deaf.lose('create2');
    const registration = await t.until(registryOf(deaf.zk).register(api));
    expect(await t.childrenOf('/services/api')).toEqual(['10.0.0.1:8080']);
    deaf.lose('setData');
    await t.until(registration.update({ payload: { load: 2 } }));
    expect(await rawOf(path)).toMatchObject({ payload: { load: 2 } });
    deaf.lose('delete');
    await t.until(registration.unregister());
    await t.pass(2000);
    expect(deaf.lost).toBe(3);
    expect(await t.childrenOf('/services/api')).toEqual([]);
  });

  it('B26: sends a constant number of requests, however many other instances there are', async () => {
    const clients = await Promise.all([t.client(), t.client()]);
    const others = Array.from({ length: 100 }, (_, n) => registryOf(clients[n % 2]!).register({ ...api, port: n }));
    await t.until(Promise.all(others));
    const { zk, lines } = await t.recorded();
    const registration = await t.until(registryOf(zk).register(api));
    await t.settle();
    await t.until(registration.unregister());
    expect(lines.length).toBe(5);
  });

  it('B26: rejects invalid arguments', async () => {
    const registry = registryOf(t.zk);
    const make = (more: object) => failureOf(registry.register({ ...api, ...more }));
    expect(await make({ name: 'a/b' })).toEqual(
      new TypeError('the name or the id of a service must be a non-empty string without "/", not "a/b"'),
    );
    expect(await make({ id: '' })).toBeInstanceOf(TypeError);
    expect(await make({ uriSpec: '{a' })).toBeInstanceOf(TypeError);
    expect(await make({ payload: {} })).toMatchObject({ code: 'Refused', message: `invalid payload for ${path}: no load` });
    expect(await t.until(registry.names())).toEqual([]);
  });
});
