import type { Stat } from '@tskeeper/client';
import { describe, expect, it } from 'vitest';
import { parseInstance, parseRawInstance, mergeRawInstance } from '../../src/discovery/instance-json.ts';
import { type ServiceInstance, buildUri } from '../../src/index.ts';
import { curatorInstances } from './curator-instances.ts';

const stat = { ctime: 5 } as Stat;
const bytes = (text: string) => new TextEncoder().encode(text);
const read = (text: string) => parseInstance(parseRawInstance(bytes(text)), stat, undefined);

describe('the JSON of an instance', () => {
  it.each(curatorInstances)("B26: is read and written in Curator's format: %s", (text) => {
    const instance = read(text);
    expect(instance).toMatchObject({ name: 'api', id: '7f6c', address: '10.0.0.1', port: 8080, registrationTimeMs: 1_700_000_000_000 });
    expect(JSON.stringify(mergeRawInstance({}, instance))).toBe(text.replace(',"enabled":true', ''));
    expect(JSON.stringify(mergeRawInstance(parseRawInstance(bytes(text)), instance))).toBe(text);
  });

  it('B26: contains the fields of Curator: types, times, addresses, and whether the instance is enabled', () => {
    expect(curatorInstances.map((text) => read(text).serviceType)).toEqual([
      'dynamic',
      'static',
      'permanent',
      'dynamicSequential',
      'dynamic',
      'dynamic',
    ]);
    expect(curatorInstances.map((text) => read(text).enabled)).toEqual([true, true, true, false, true, true]);
    expect(read(curatorInstances[1])).toMatchObject({ uriSpec: '{scheme}://{address}:{port}/x', payload: 'hello', sslPort: 8443 });
    expect(buildUri(read(curatorInstances[1]))).toBe('https://10.0.0.1:8080/x');
    expect(read('{"name":"a","id":"b"}')).toEqual({
      name: 'a',
      id: 'b',
      address: null,
      port: null,
      sslPort: null,
      payload: null,
      registrationTimeMs: 5,
      serviceType: 'dynamic',
      uriSpec: null,
      enabled: true,
    });
  });

  it('B26: keeps unknown fields, and writes `enabled` only if needed', () => {
    const raw = parseRawInstance(bytes('{"name":"a","zone":"b","id":"c"}'));
    expect(mergeRawInstance(raw, { enabled: true, port: 7 })).toEqual({ name: 'a', zone: 'b', id: 'c', port: 7 });
    const disabled = mergeRawInstance(raw, { enabled: false });
    expect(disabled).toEqual({ name: 'a', zone: 'b', id: 'c', enabled: false });
    expect(mergeRawInstance(disabled, { enabled: true })).toEqual({ name: 'a', zone: 'b', id: 'c', enabled: true });
    expect(mergeRawInstance({ uriSpec: { parts: [] } }, { uriSpec: null, payload: null })).toEqual({ uriSpec: null, payload: null });
  });

  it.each([
    ['[]', 'an instance must be a JSON object'],
    ['null', 'an instance must be a JSON object'],
    ['{"id":"a"}', 'the field name is missing'],
    ['{"name":"a"}', 'the field id is missing'],
    ['{"name":"a","id":"b","port":"80"}', 'port must be a number, not "80"'],
    ['{"name":"a","id":"b","enabled":1}', 'enabled must be a boolean, not 1'],
    ['{"name":"a","id":"b","serviceType":"LOCAL"}', 'unknown serviceType "LOCAL"'],
    ['{"name":"a","id":"b","uriSpec":{}}', 'the uriSpec must have an array of parts'],
  ])('B26: is rejected when it is %s: %s', (text, why) => {
    expect(() => read(text)).toThrow(new TypeError(why));
  });

  it('B26: yields the URIs that its uriSpec describes', () => {
    const instance: ServiceInstance = {
      ...read(curatorInstances[0]),
      uriSpec: '{scheme}://{address}:{port}/{ path }?{[}{service-type}{]}{none}',
    };
    expect(buildUri(instance, { path: 'x' })).toBe('http://10.0.0.1:8080/x?{dynamic}');
    expect(buildUri(instance, { port: 1 })).toBe('http://10.0.0.1:1/?{dynamic}');
    expect(buildUri({ ...instance, uriSpec: null })).toBe(undefined);
    for (const uriSpec of ['{a', 'a}', '{a{b}}']) expect(() => buildUri({ ...instance, uriSpec }), uriSpec).toThrow(TypeError);
    expect(
      read('{"name":"a","id":"b","uriSpec":{"parts":[{"value":"{x}","variable":false},{"value":"id","variable":true}]}}').uriSpec,
    ).toBe('{[}x{]}{id}');
  });
});
