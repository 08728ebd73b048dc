/**
 * Kills a server repeatedly while clients write, and checks afterwards what it had acknowledged.
 *
 * Every client has its own register, and all add to one queue of sequential znodes; every value is
 * written once. So every value found at the end is either acknowledged and there, pending when the
 * server died and there or not, or wrong.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { AclEntry, ConnectResponse, Operation, Reply } from '@tskeeper/simulator';
import { Prng } from '../model/operations.ts';
import { type Endpoint, OperationClient } from '@tskeeper/harness';

export interface RunningServer {
  readonly endpoint: Endpoint;
  /** Sends SIGKILL and waits for the end. Throws if the server had ended by itself. */
  kill(): Promise<void>;
}

export interface KillOptions {
  /** Starts a server on the files of the last one, and resolves when it accepts clients. */
  readonly start: () => Promise<RunningServer>;
  readonly kills: number;
  readonly clients: number;
  readonly seed: number;
  /** Falsifies the record of acknowledgements, for the canary. */
  readonly forge?: (acknowledged: Map<string, string>) => void;
}

export interface KillReport {
  readonly kills: number;
  readonly acknowledged: number;
  readonly unknown: number;
  /** How often a session was resumed after a kill. */
  readonly reattached: number;
  readonly wrong: readonly string[];
}

const open: readonly AclEntry[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
const sessionTimeoutMs = 30_000;
const inFlight = 8;

/** One client's record of its requests. */
class Writer {
  readonly register: string;
  readonly #name: string;
  /** Value of a queue item -> the path acknowledged for it. */
  readonly acknowledgedItems = new Map<string, string>();
  readonly attemptedItems = new Set<string>();
  lastAcknowledged = 0;
  lastAttempted = 0;
  acknowledgedWrites = 0;
  reattached = 0;
  refused: string | undefined;
  #session: ConnectResponse | undefined;
  #client: OperationClient | undefined;

  constructor(name: string) {
    this.#name = name;
    this.register = `/kill/${name}`;
  }

  /** Writes until it is stopped or the connection ends. Returns the number of acknowledgements. */
  async work(endpoint: Endpoint, stopped: () => boolean): Promise<number> {
    const client = await OperationClient.open(endpoint).catch(() => undefined);
    if (client === undefined) return 0;
    this.#client = client;
    const again = this.#session;
    const session = await client.openSession(sessionTimeoutMs, again);
    if (session === undefined) return 0;
    if (session.timeOut === 0) this.refused = `the session of ${this.#name} was refused after a restart`;
    if (session.timeOut === 0) return 0;
    if (again !== undefined) this.reattached++;
    this.#session = session;
    const workers = Array.from({ length: inFlight }, () => this.#write(client, stopped));
    const counts = await Promise.all(workers);
    if (!stopped()) client.destroy();
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async #write(client: OperationClient, stopped: () => boolean): Promise<number> {
    let count = 0;
    while (!stopped() && !client.closed) {
      const number = ++this.lastAttempted;
      const value = `${this.#name}:${number}`;
      const item = number % 2 === 0;
      if (item) this.attemptedItems.add(value);
      const operation: Operation = item
        ? { kind: 'create', path: '/kill/queue/q-', data: value, acl: open, flags: 2 }
        : { kind: 'setData', path: this.register, data: value, version: -1 };
      const reply = await client.call(operation);
      if (reply === undefined) return count;
      if (reply.err !== 0) throw new Error(`${value} was refused with ${reply.err}`);
      count++;
      this.acknowledgedWrites++;
      if (item) this.acknowledgedItems.set(value, reply.body!.path!);
      else this.lastAcknowledged = Math.max(this.lastAcknowledged, number);
    }
    return count;
  }

  async close(): Promise<void> {
    if (this.#client?.closed === false) await this.#client.call({ kind: 'closeSession' });
    this.#client?.destroy();
  }
}

export async function runKills(options: KillOptions): Promise<KillReport> {
  const random = new Prng(options.seed);
  const writers = Array.from({ length: options.clients }, (_, index) => new Writer(`w${index}`));
  let server = await options.start();
  try {
    await prepare(server.endpoint, writers);
    for (let kill = 0; kill < options.kills; kill++) {
      const { endpoint } = server;
      const work = writers.map((writer) => writer.work(endpoint, () => false));
      await delay(30 + random.below(400));
      await server.kill();
      await Promise.all(work);
      server = await options.start();
    }
    let stopped = false;
    const { endpoint } = server;
    const last = writers.map((writer) => writer.work(endpoint, () => stopped));
    await delay(200);
    stopped = true;
    await Promise.all(last);
    return await readBack(endpoint, options, writers);
  } finally {
    for (const writer of writers) await writer.close();
    await server.kill();
  }
}

async function prepare(endpoint: Endpoint, writers: readonly Writer[]): Promise<void> {
  const client = await OperationClient.open(endpoint);
  await client.openSession(sessionTimeoutMs);
  for (const path of ['/kill', '/kill/queue', ...writers.map(({ register }) => register)]) {
    await client.call({ kind: 'create', path, data: '', acl: open, flags: 0 });
  }
  await client.call({ kind: 'closeSession' });
  client.destroy();
}

async function readBack(endpoint: Endpoint, { kills, forge }: KillOptions, writers: readonly Writer[]): Promise<KillReport> {
  const wrong: string[] = [];
  const client = await OperationClient.open(endpoint);
  await client.openSession(sessionTimeoutMs);
  const ask = async (operation: Operation): Promise<Reply> => {
    const reply = await client.call(operation);
    if (reply === undefined) throw new Error('the connection was lost while reading back');
    return reply;
  };
  for (const writer of writers) {
    if (writer.refused !== undefined) wrong.push(writer.refused);
    const { body } = await ask({ kind: 'getData', path: writer.register, watch: false });
    const found = Number(body!.data!.split(':')[1] ?? 0);
    if (found < writer.lastAcknowledged || found > writer.lastAttempted) {
      wrong.push(
        `${writer.register} holds ${found}; ${writer.lastAcknowledged} was acknowledged, ${writer.lastAttempted} was the last sent`,
      );
    }
    const sets = Math.ceil(writer.lastAttempted / 2);
    if (body!.stat!.version > sets) wrong.push(`${writer.register} was changed ${body!.stat!.version} times by ${sets} writes`);
  }
  const acknowledged = new Map(writers.flatMap((writer) => [...writer.acknowledgedItems]));
  forge?.(acknowledged);
  const attempted = new Set(writers.flatMap((writer) => [...writer.attemptedItems]));
  const seen = new Map<string, string>();
  for (const name of (await ask({ kind: 'getChildren', path: '/kill/queue', watch: false })).body!.children!) {
    const path = `/kill/queue/${name}`;
    const value = (await ask({ kind: 'getData', path, watch: false })).body!.data!;
    if (seen.has(value)) wrong.push(`${value} is there twice: ${seen.get(value)} and ${path}`);
    if (!attempted.has(value)) wrong.push(`${path} holds ${value}, which no client sent`);
    seen.set(value, path);
  }
  for (const [value, path] of acknowledged) {
    if (seen.get(value) !== path) wrong.push(`${value} was acknowledged as ${path} and is ${seen.get(value) ?? 'gone'}`);
  }
  await ask({ kind: 'closeSession' });
  client.destroy();
  const sum = (of: (writer: Writer) => number): number => writers.reduce((total, writer) => total + of(writer), 0);
  const known = sum((writer) => writer.acknowledgedWrites);
  return {
    kills,
    acknowledged: known,
    unknown: sum((writer) => writer.lastAttempted) - known,
    reattached: sum((writer) => writer.reattached),
    wrong,
  };
}
