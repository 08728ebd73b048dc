/** The code in docs/guides/recipes/names-and-configuration.md. */
import { type Client, KeeperError } from '@tskeeper/client';
import { jsonCodec, SharedValue, TreeCache } from '@tskeeper/recipes';

const utf8 = new TextDecoder();

/** Binds a name to an address; returns false if the name is taken. */
export async function bind(zk: Client, name: string, address: string): Promise<boolean> {
  try {
    await zk.create(`/names/${name}`, address, { parents: true });
    return true;
  } catch (error) {
    if (!KeeperError.is(error, 'NodeExists')) throw error;
    return false;
  }
}

/**
 * The address of a name, or undefined if it is not bound. The read is linearizable: it is at least as
 * new as any earlier answer to any client.
 */
export async function lookUp(zk: Client, name: string): Promise<string | undefined> {
  try {
    const { data } = await zk.getData(`/names/${name}`, { linearizable: true });
    return utf8.decode(data ?? undefined);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
    return undefined;
  }
}

/** Keeps all names in a cache, for a program that looks many up. */
export async function allNames(zk: Client): Promise<(name: string) => string | undefined> {
  const cache = new TreeCache(zk, '/names', { decode: (data) => utf8.decode(data ?? undefined) });
  await cache.ready({ timeoutMs: 30_000 });
  return (name) => cache.get(`/names/${name}`)?.data;
}

interface Settings {
  readonly colour: string;
  readonly cacheMb: number;
}

/** Validates settings that were read or are to be written; throws if they are invalid. */
function checked(value: unknown): Settings {
  const { colour, cacheMb } = value as Partial<Settings>;
  if (typeof colour !== 'string' || typeof cacheMb !== 'number') throw new TypeError('settings are a colour and a cacheMb');
  return { colour, cacheMb };
}

/** Settings of a program: one znode for everything that has to change together. */
export function settingsOf(zk: Client): SharedValue<Settings> {
  return new SharedValue(zk, '/config/app', jsonCodec(checked));
}

/** Applies new settings as they arrive, and keeps the last valid ones. */
export async function configure(
  settings: SharedValue<Settings>,
  take: (settings: Settings) => void,
  warn: (error: unknown) => void,
): Promise<void> {
  for await (const { current, decodeError } of settings.changes()) {
    if (current !== undefined) take(current.value);
    else if (decodeError !== undefined) warn(decodeError);
  }
}
