/**
 * Clients that only add to one long list, many at a time and each value once, and the check of that
 * list at the end. Every acknowledged line is read from every server, one by one.
 */
import { type CreateRequest, CreateMode, openAcl, type GetDataReply, type GetChildren2Reply } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import { type ClientWorld, RawClient, type Recording } from '@tskeeper/simulator';
import { eventually } from '@tskeeper/harness';

export const appendLogPath = '/ledger';
const prefix = `${appendLogPath}/n-`;
const inFlight = 16;
/**
 * At most a hundred lines per second and writer: the proof of an episode takes more than
 * proportionally longer with more.
 */
const appendIntervalMs = 20;
const entriesAtOnce = 2;
/** Pending requests of one reader. */
const readsInFlightMax = 200;
const answerMaxMs = 30_000;
/** Time limit for the whole list of one server. */
const readMaxMs = 120_000;

export class AppendLogWriter extends RawClient {
  #entries = 0;
  #stopped = false;

  /**
   * Adds lines at a steady pace, without waiting for replies; so requests are pending whenever a
   * fault starts.
   */
  begin(world: ClientWorld): void {
    const go = () => {
      if (this.#stopped) return;
      for (let count = 0; count < entriesAtOnce && this.ready && this.outstandingCount < inFlight; count++) {
        const data = Buffer.from(`${this.name} line ${++this.#entries}`);
        this.send('create', { path: prefix, data, acl: openAcl, flags: CreateMode.persistentSequential });
      }
      world.clock.after(appendIntervalMs, go);
    };
    go();
  }

  stop(): void {
    this.#stopped = true;
  }
}

/** Every acknowledged line, by its path, and every line ever sent. */
export function appendLogOf(recording: Recording): {
  readonly acknowledged: ReadonlyMap<string, string>;
  readonly sent: ReadonlySet<string>;
} {
  const acknowledged = new Map<string, string>();
  const sent = new Set<string>();
  for (const { requests } of recording.cnxns) {
    for (const { name, record, reply } of requests) {
      if (name !== 'create') continue;
      const { path, data } = record as CreateRequest;
      if (path !== prefix || data === null) continue;
      const line = Buffer.from(data).toString('latin1');
      sent.add(line);
      if (reply?.err === 0) acknowledged.set((reply.body as { readonly path: string }).path, line);
    }
  }
  return { acknowledged, sent };
}

/**
 * Reads the list from one server; a line that is lost, there twice, or was never sent is a fault.
 * Returns the number of acknowledged lines that were read.
 */
export async function readBack(world: ClientWorld, server: string, name: string, random: SeededRandom): Promise<number> {
  const { recording } = world;
  const reader = await connectTo(world, server, name, random);
  if (reader === undefined) {
    recording.violations.push(`${server} accepts no session`);
    return 0;
  }
  try {
    return await readList(reader, recording, server);
  } finally {
    await closeClient(reader);
  }
}

/** Closes a client's session, and the client with it. */
export async function closeClient(client: RawClient): Promise<void> {
  client.send('closeSession', undefined);
  client.abandon();
  await eventually(() => !client.ready, 5000, 5);
  client.reset();
}

/** A client that knows only this server. */
export async function connectTo(world: ClientWorld, server: string, name: string, random: SeededRandom): Promise<RawClient | undefined> {
  const { clock, recording } = world;
  const only: ClientWorld = {
    clock,
    recording,
    servers: world.servers.filter((each) => each.name === server),
    clientNetwork: (client, address) => world.clientNetwork(client, address),
    link: (a, b) => world.link(a, b),
  };
  const client = new RawClient(only, random, { name, address: '127.0.0.1', timeoutMs: 30_000, credentials: 'alice:secret' });
  if (await eventually(() => client.ready, answerMaxMs, 5)) return client;
  client.abandon();
  return undefined;
}

async function readList(reader: RawClient, recording: Recording, server: string): Promise<number> {
  const { acknowledged, sent } = appendLogOf(recording);
  const isLate = deadline(readMaxMs);
  // From here on everything acknowledged at any server must be visible here.
  let listing: Asked;
  while (listing?.reply === undefined && !isLate()) {
    await eventually(() => reader.ready, answerMaxMs, 5);
    reader.send('sync', { path: appendLogPath });
    listing = reader.send('getChildren2', { path: appendLogPath, watch: false });
    await eventually(() => reader.outstandingCount === 0, answerMaxMs, 5);
  }
  if (listing?.reply === undefined) {
    recording.violations.push(`${server} does not answer`);
    return 0;
  }
  const { children } = listing.reply.body as GetChildren2Reply;
  const paths = new Set([...acknowledged.keys(), ...children.map((child) => `${appendLogPath}/${child}`)]);
  const found = new Map<string, string | undefined>();
  // After a lost connection the rest is read on the next one.
  while (found.size < paths.size && !isLate()) await readMissing(reader, paths, found);
  const unanswered = paths.size - found.size;
  if (unanswered > 0) recording.violations.push(`${server} does not answer for ${unanswered} lines of ${paths.size}`);
  else recording.violations.push(...checkAppendLog(acknowledged, sent, found).map((fault) => `${server}: ${fault}`));
  return acknowledged.size;
}

type Asked = ReturnType<RawClient['send']>;

/** Requests once everything that is not known yet. */
async function readMissing(reader: RawClient, paths: ReadonlySet<string>, found: Map<string, string | undefined>): Promise<void> {
  await eventually(() => reader.ready, answerMaxMs, 5);
  const asked = new Map<string, Asked>();
  for (const path of paths) {
    if (found.has(path)) continue;
    if (reader.outstandingCount >= readsInFlightMax) await eventually(() => reader.outstandingCount < readsInFlightMax / 2, answerMaxMs, 1);
    asked.set(path, reader.send('getData', { path, watch: false }));
  }
  await eventually(() => reader.outstandingCount === 0, answerMaxMs, 2);
  for (const [path, request] of asked) {
    const reply = request?.reply;
    if (reply === undefined) continue;
    found.set(path, reply.err === 0 ? Buffer.from((reply.body as GetDataReply).data ?? []).toString('latin1') : undefined);
  }
}

function deadline(ms: number): () => boolean {
  const end = performance.now() + ms;
  return () => performance.now() > end;
}

/** Compares the line found at each path with the acknowledged line, and with all lines sent. */
export function checkAppendLog(
  acknowledged: ReadonlyMap<string, string>,
  sent: ReadonlySet<string>,
  found: ReadonlyMap<string, string | undefined>,
): string[] {
  const violations: string[] = [];
  const seen = new Map<string, string>();
  for (const [path, line] of acknowledged) {
    if (found.get(path) !== line) violations.push(`${path} was acknowledged with "${line}" and holds ${found.get(path) ?? 'nothing'}`);
  }
  for (const [path, line] of found) {
    if (line === undefined) continue;
    const before = seen.get(line);
    if (before !== undefined) violations.push(`"${line}" is there twice: ${before} and ${path}`);
    if (!sent.has(line)) violations.push(`${path} holds "${line}", which no client sent`);
    seen.set(line, path);
  }
  return violations;
}
