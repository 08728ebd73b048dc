/**
 * Data as text and as JSON, and what `console.log` and `JSON.stringify` print of a client and its
 * answers.
 */
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, DataFormatError, formatSessionId, formatZxid } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';

let world: ClientWorld;
let zk: Client;

beforeAll(async () => {
  world = await ClientWorld.start();
  zk = await world.connect();
});

afterAll(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

describe('text', () => {
  it.each(['', 'plain', 'größer \u{1f600}', '\ufeffmarked'])('%j is read as it was written', async (text) => {
    const { path } = await go(zk.create('/text-', text, { mode: 'persistentSequential' }));
    const got = await go(zk.getText(path));
    expect(got.text).toBe(text);
    expect(got.stat).toEqual((await go(zk.getData(path))).stat);
  });

  it('is null if the znode has no data, and NoNode if there is no znode', async () => {
    await go(zk.create('/text-null', null));
    expect((await go(zk.getText('/text-null'))).text).toBe(null);
    await expect(go(zk.getText('/text-none'))).rejects.toMatchObject({ code: 'NoNode', op: 'getText', path: '/text-none' });
  });

  it('that is not UTF-8 causes an error, and is not decoded differently', async () => {
    const data = Buffer.from([0x61, 0xff]);
    await go(zk.create('/text-bytes', data));
    const error = await go(zk.getText('/text-bytes')).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DataFormatError);
    expect(error).toMatchObject({ name: 'DataFormatError', op: 'getText', path: '/text-bytes' });
    expect((error as DataFormatError).message).toBe('getText /text-bytes: the 2 bytes of data are not UTF-8; read them with getData');
    expect(Buffer.from((error as DataFormatError).data)).toEqual(data);
    // The connection still works.
    expect((await go(zk.getData('/text-bytes'))).stat.dataLength).toBe(2);
    expect(zk.state).toBe('connected');
  });

  it('that is not UTF-8 causes an error with the stack of the caller', async () => {
    await go(zk.create('/text-stack', Buffer.from([0xff])));
    async function theCallerThatWaits(): Promise<void> {
      await zk.getText('/text-stack');
    }
    const error = await go(theCallerThatWaits()).catch((thrown: unknown) => thrown);
    expect((error as Error).stack).toContain('theCallerThatWaits');
  });

  it('getText sets the requested watch', async () => {
    await go(zk.create('/text-watch', 'x'));
    const seen: string[] = [];
    await go(zk.getText('/text-watch', { watch: ({ type }) => void seen.push(type) }));
    await go(zk.setJson('/text-watch', 1));
    expect(seen).toEqual(['NodeDataChanged']);
  });
});

describe('JSON', () => {
  it.each([[{ a: [1, 'two', null] }], [null], [0], [''], [false]])('%j is read as it was written', async (value) => {
    const { path } = await go(zk.createJson('/json-', value, { mode: 'persistentSequential' }));
    expect((await go(zk.getJson(path))).value).toEqual(value);
    const stat = await go(zk.setJson(path, [value], { version: 0 }));
    expect(await go(zk.getJson<unknown[]>(path))).toEqual({ value: [value], stat });
  });

  it('is undefined if the znode has no data: null, or zero bytes', async () => {
    await go(zk.create('/json-null', null));
    await go(zk.create('/json-empty', ''));
    expect((await go(zk.getJson('/json-null'))).value).toBe(undefined);
    expect((await go(zk.getJson('/json-empty'))).value).toBe(undefined);
  });

  it('that is invalid causes a SyntaxError that names the znode', async () => {
    await go(zk.create('/json-bad', '{ a: 1 }'));
    const error = await go(zk.getJson('/json-bad')).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SyntaxError);
    expect((error as Error).message).toMatch(
      /^getJson \/json-bad: the 8 bytes of data are not JSON( at position \d+)?; read them with getData$/,
    );
    await expect(go(zk.getJson('/json-none'))).rejects.toMatchObject({ code: 'NoNode', op: 'getJson' });
    await expect(go(zk.setJson('/json-bad', 1, { version: 7 }))).rejects.toMatchObject({ code: 'BadVersion', op: 'setJson' });
    await expect(go(zk.createJson('/json-bad', 1))).rejects.toMatchObject({ code: 'NodeExists', op: 'createJson' });
  });

  it('that is invalid causes an error with its path, and never with its content', async () => {
    await go(zk.create('/json-secret', 'password=hunter2'));
    const error = await go(zk.getJson('/json-secret')).catch((thrown: unknown) => thrown);
    expect((error as Error).message).toBe('getJson /json-secret: the 16 bytes of data are not JSON; read them with getData');
    // A log that prints the whole error does not contain the bytes in any form.
    expect(inspect(error)).not.toMatch(/hunter2|112, *97|70 61 73/);
    expect(Buffer.from((error as DataFormatError).data).toString()).toBe('password=hunter2');
  });

  it('is written with the options of create and setData', async () => {
    await go(zk.createJson('/json/below', { a: 1 }, { parents: true, idempotent: true }));
    await go(zk.setJson('/json/below', { a: 2 }, { idempotent: true, version: 0 }));
    expect((await go(zk.getText('/json/below'))).text).toBe('{"a":2}');
  });
});

it('JSON.stringify writes the zxids of a Stat as ZooKeeper prints them, and BigInt parses them', async () => {
  const { stat } = await go(zk.create('/stat', 'x', { mode: 'ephemeral' }));
  const written = JSON.parse(JSON.stringify({ stat })).stat;
  expect(written).toEqual({
    ...stat,
    czxid: formatZxid(stat.czxid),
    mzxid: formatZxid(stat.mzxid),
    pzxid: formatZxid(stat.pzxid),
    ephemeralOwner: formatSessionId(zk.sessionId),
  });
  expect(Object.keys(written)).toEqual(Object.keys(stat));
  expect(BigInt(written.czxid)).toBe(stat.czxid);
  expect(BigInt.asIntN(64, BigInt(written.ephemeralOwner))).toBe(zk.sessionId);
});

it('console.log prints a client and a Stat, and never the password', async () => {
  const shown = inspect(zk.chroot('/app'), { colors: false });
  expect(shown).toMatch(
    /^ClientView \{\s+state: 'connected',\s+sessionId: '0x[0-9a-f]+',\s+server: 'server:2181',\s+chroot: '\/app'\s+\}$/,
  );
  expect(inspect(zk)).toMatch(/^Client \{/);
  expect(shown).not.toContain(Buffer.from(zk.sessionPassword).toString('hex').slice(0, 6));
  expect(inspect((await go(zk.exists('/')))!)).toMatch(/^Stat \{\s+czxid: 0n,/);
});
