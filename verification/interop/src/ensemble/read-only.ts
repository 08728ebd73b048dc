/**
 * Read-only mode in mixed ensembles. A server without a quorum serves reads: once beside servers that
 * have one and that it cannot reach, and once until the others are back. Clients take their sessions
 * from one to the others; what they keep and lose must be what they keep and lose with ZooKeeper's
 * servers alone.
 */
import { OpCode } from '@tskeeper/protocol';
import {
  type EnsemblePeer,
  type ProcessEnsemble,
  RawClient,
  record,
  reservePorts,
  type ServerKind,
  type Settings,
} from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { createEnsemble } from './ensemble.ts';
import { createFields, errorOf, isThere, resume, timeOut } from './session-moves.ts';
import { compareTranscripts, type EnsembleJustification, type Transcript, TranscriptWriter } from './transcripts.ts';

const ours: ServerKind = 'ours';
const java39: ServerKind = 'java-3.9.5';
const java38: ServerKind = 'java-3.8.0';

/** Server 1 loses the others. Those of the bounded form come first. */
const castings: readonly (readonly ServerKind[])[] = [
  [java39, java39, java39],
  [ours, java39, java39],
  [java39, ours, ours],
  [ours, java38, java39],
  [java38, ours, ours],
  [ours, java39, ours],
];
const boundedCastings = 3;
const lonelySid = 1;
const othersSids = [2, 3];
const ephemeral = 1;

/** No server is at the addresses of the others, and they do not find it either. */
async function lonelyConfig(): Promise<Settings> {
  const lines: Record<string, string> = {};
  for (const sid of [lonelySid, ...othersSids]) {
    const { quorum, election } = await reservePorts();
    lines[`server.${sid}`] = `127.0.0.1:${quorum}:${election}`;
  }
  return lines;
}

class ReadOnlyRun {
  readonly #ensemble: ProcessEnsemble;
  readonly #to = new TranscriptWriter();

  constructor(ensemble: ProcessEnsemble) {
    this.#ensemble = ensemble;
  }

  async run(): Promise<Transcript> {
    const ensemble = this.#ensemble;
    const lonely = ensemble.peer(lonelySid);
    await ensemble.start([lonelySid, ...othersSids]);
    const native = await this.#owner(lonely, '/native');
    const visitor = await this.#owner(ensemble.peer(2), '/visitor');
    await ensemble.untilConverged();
    await ensemble.stop(lonelySid);
    await ensemble.launch([lonelySid], { config: await lonelyConfig() });
    await this.#untilReadOnly(lonely);
    // The others may have lost their leader with it.
    await ensemble.untilServing(othersSids);
    await this.#beside(lonely, native, visitor);
    await ensemble.kill(lonelySid);
    await ensemble.start([lonelySid]);
    await this.#untilTheOthersReturn(lonely);
    return this.#to.transcript;
  }

  /** A session with an ephemeral znode, which every server knows. */
  async #owner(at: EnsemblePeer, path: string): Promise<RawClient> {
    const client = await RawClient.connectOrThrow(at.port, timeOut);
    const err = await errorOf(client, OpCode.create, createFields(path, ephemeral));
    if (err !== 0) throw new Error(`create ${path} had the result ${err}`);
    return client;
  }

  #untilReadOnly(lonely: EnsemblePeer): Promise<true> {
    const isReadOnly = async (): Promise<true | undefined> => (await lonely.ask('isro')).trim() === 'ro' || undefined;
    return this.#ensemble.until(`${lonely.name} is read-only`, isReadOnly, undefined, lonelySid);
  }

  /** Opens a session of a client that accepts a read-only server. */
  async #open(at: EnsemblePeer, what: string): Promise<RawClient | undefined> {
    const client = await RawClient.connect(at.port, { timeOut, readOnly: true });
    this.#to.note(what, client === undefined ? 'closed' : client.isReadOnly ? 'read-only' : 'read-write');
    return client;
  }

  /** Takes a session to a server; what it may do there, and what it owns. */
  async #take(at: EnsemblePeer, session: RawClient, what: string, own?: string): Promise<void> {
    const to = this.#to;
    const { outcome, client } = await resume(at, session, { readOnly: true });
    to.note(what, outcome);
    if (client === undefined) return;
    to.note(`${what}: read-only`, client.isReadOnly);
    await this.#use(client, what);
    if (own !== undefined) to.note(`${what}: its ephemeral`, await errorOf(client, OpCode.exists, record.pathAndWatch(own, false)));
    client.abandon();
  }

  async #use(client: RawClient, what: string): Promise<void> {
    const to = this.#to;
    to.note(`${what}: a read`, await errorOf(client, OpCode.getData, record.pathAndWatch('/', false)));
    to.note(`${what}: a write`, await errorOf(client, OpCode.setData, record.setData('/', null, -1)));
    to.note(`${what}: a sync`, await errorOf(client, OpCode.sync, record.pathOnly('/')));
  }

  /** It cannot reach the others, and clients can. */
  async #beside(lonely: EnsemblePeer, native: RawClient, visitor: RawClient): Promise<void> {
    const to = this.#to;
    const [second, third] = othersSids.map((sid) => this.#ensemble.peer(sid)) as [EnsemblePeer, EnsemblePeer];
    const unwilling = await RawClient.connect(lonely.port, { timeOut });
    to.note('a client that does not accept a read-only server', unwilling === undefined ? 'closed' : 'accepted');
    const fresh = await this.#open(lonely, 'a new session at the lonely server');
    if (fresh !== undefined) {
      await this.#use(fresh, 'a new session there');
      to.note('its create of an ephemeral', await errorOf(fresh, OpCode.create, createFields('/e', ephemeral)));
      await this.#take(second, fresh, 'the new session at the second');
      await this.#take(third, fresh, 'the new session at the third');
      await this.#take(lonely, fresh, 'the new session at the lonely server again');
      fresh.abandon();
    }
    await this.#take(lonely, native, 'a session that began there', '/native');
    await this.#take(second, native, 'the same at the second', '/native');
    await this.#take(third, native, 'the same at the third', '/native');
    await this.#take(lonely, visitor, 'a session of the second at the lonely server', '/visitor');
    await this.#take(third, visitor, 'the same at the third after that', '/visitor');
    const willing = await this.#open(third, 'a client that accepts a read-only server, at the third');
    if (willing === undefined) return;
    await this.#take(lonely, willing, 'its session at the lonely server');
    await this.#take(second, willing, 'its session at the second');
    willing.abandon();
    for (const [session, path] of [
      [native, '/native'],
      [visitor, '/visitor'],
    ] as const) {
      const { client } = await resume(third, session);
      await client?.close();
      session.abandon();
      to.note(`${path} after the end of its session`, await isThere(second, path));
    }
  }

  /** The server becomes read-only while clients are connected, and leaves that mode. */
  async #untilTheOthersReturn(lonely: EnsemblePeer): Promise<void> {
    const to = this.#to;
    const ensemble = this.#ensemble;
    const owner = await this.#owner(lonely, '/owned');
    const plain = await RawClient.connectOrThrow(lonely.port, timeOut);
    await ensemble.untilConverged();
    await ensemble.kill(...othersSids);
    await this.#untilReadOnly(lonely);
    to.note('a read over the old connection', await errorOf(owner, OpCode.exists, record.pathAndWatch('/', false)));
    await this.#take(lonely, owner, 'a session with an ephemeral at the server without quorum', '/owned');
    await this.#take(lonely, plain, 'a session without one at the server without quorum');
    const fresh = await this.#open(lonely, 'a new session at the server without quorum');
    await ensemble.launch(othersSids);
    await ensemble.untilServing([lonelySid, ...othersSids]);
    await ensemble.until(`${lonely.name} is not read-only`, async () => (await lonely.ask('isro')).trim() === 'rw' || undefined);
    const second = ensemble.peer(2);
    if (fresh !== undefined) {
      to.note('a read over its connection when the others are back', await errorOf(fresh, OpCode.exists, record.pathAndWatch('/', false)));
      await this.#take(second, fresh, 'the session of the read-only server at another, when the others are back');
      await this.#take(lonely, fresh, 'the session of the read-only server at its own, when the others are back');
    }
    await this.#take(lonely, owner, 'the session with an ephemeral at its server, when the others are back', '/owned');
    await this.#take(second, owner, 'the session with an ephemeral at another, when the others are back', '/owned');
    await this.#take(lonely, plain, 'the session without one at its server, when the others are back');
    await this.#take(second, plain, 'the session without one at another, when the others are back');
    for (const session of [owner, plain, fresh]) session?.abandon();
  }
}

async function transcriptOf(kinds: readonly ServerKind[], hasLocalSessions: boolean): Promise<Transcript> {
  const ensemble = await createEnsemble(
    kinds.map((kind, index) => ({ sid: index + 1, kind, role: 'participant' as const })),
    {
      config: { localSessionsEnabled: hasLocalSessions, localSessionsUpgradingEnabled: hasLocalSessions },
      properties: { 'readonlymode.enabled': true },
    },
  );
  try {
    return await new ReadOnlyRun(ensemble).run();
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${await ensemble.evidence()}`, { cause: error });
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

const isUnknownThere = /at the (?:lonely server|server without quorum)$/;

export const readOnlyDifferences: readonly EnsembleJustification[] = [
  {
    id: 'read-only-server-declares-no-end',
    explains: (step, expected, found) => isUnknownThere.test(step) && expected === 'refused' && found === 'closed',
  },
];

export async function runReadOnly(bounded: boolean, report: Report): Promise<void> {
  for (const hasLocalSessions of bounded ? [true] : [true, false]) {
    await compareTranscripts(
      {
        name: `read-only mode ${hasLocalSessions ? 'with' : 'without'} local sessions`,
        castings: bounded ? castings.slice(0, boundedCastings) : castings,
        transcriptOf: (kinds) => transcriptOf(kinds, hasLocalSessions),
        justified: hasLocalSessions ? readOnlyDifferences : [],
      },
      report,
    );
  }
}
