/**
 * Local sessions in mixed ensembles: at a server of either kind, under a leader of either kind, with
 * and without upgrading. What clients get at each place must be what they get from ZooKeeper's
 * servers alone.
 */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { type EnsemblePeer, openAcl, type PeerSpec, type ProcessEnsemble, RawClient, record, type ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { createEnsemble } from './ensemble.ts';
import { createFields, errorOf, isThere, resume, timeOut } from './session-moves.ts';
import { compareTranscripts, type EnsembleJustification, type Transcript, TranscriptWriter } from './transcripts.ts';

const ours: ServerKind = 'ours';
const java39: ServerKind = 'java-3.9.5';
const java38: ServerKind = 'java-3.8.0';

/** By place: two followers, the leader, and an observer. Those of the bounded form come first. */
const castings: readonly (readonly ServerKind[])[] = [
  [java39, java39, java39, java39],
  [ours, java39, java39, ours],
  [java39, ours, ours, java39],
  [java38, ours, java39, ours],
  [ours, java38, ours, java38],
  [java39, ours, java38, ours],
];
const boundedCastings = 3;
const places = ['follower', 'other follower', 'leader', 'observer'];
const leaderSid = 3;
const observerSid = 4;

/** Two ticks: the shortest. */
const shortTimeOut = 1000;
const goneMs = 30_000;
const ephemeral = 1;
const container = 4;
const persistentWithTtl = 5;

interface Journey {
  readonly ensemble: ProcessEnsemble;
  /** The server at which the session begins. */
  readonly home: EnsemblePeer;
  readonly other: EnsemblePeer;
  /** Prefix of paths and steps. */
  readonly name: string;
  readonly to: TranscriptWriter;
}

const pathOf = ({ home, other }: Journey, name: string): string => `/${name}-${home.sid}-${other.sid}`;

/** A session that never owns an ephemeral znode. */
async function stayLocal(journey: Journey): Promise<void> {
  const { home, other, to, name } = journey;
  const note = (step: string, result: unknown): void => to.note(`${name}: ${step}`, result);
  const session = await RawClient.connectOrThrow(home.port, timeOut);
  note('the first byte of its id', session.sessionId >> 56n);
  note('a create', await errorOf(session, OpCode.create, createFields(pathOf(journey, 'local'), 0)));
  note('a container', await errorOf(session, OpCode.createContainer, createFields(pathOf(journey, 'container'), container)));
  const ttl = record.createTTL(pathOf(journey, 'ttl'), null, openAcl, persistentWithTtl, 3_600_000n);
  note('a TTL', await errorOf(session, OpCode.createTTL, ttl));
  const parts = [
    { type: OpCode.create, fields: createFields(pathOf(journey, 'part'), 0) },
    { type: OpCode.check, fields: record.pathAndInt('/', -1) },
  ];
  note('a multi', await errorOf(session, OpCode.multi, record.multi(parts)));
  note('at another server', (await resume(other, session)).outcome);
  note('a read after that', await errorOf(session, OpCode.exists, record.pathAndWatch('/', false)));
  note('with a wrong password', (await resume(home, session, { passwd: Buffer.alloc(16, 7) })).outcome);
  note('a read after that, too', await errorOf(session, OpCode.exists, record.pathAndWatch('/', false)));
  const again = await resume(home, session);
  note('at its server', again.outcome);
  session.abandon();
  if (again.client === undefined) return;
  note('a write there', await errorOf(again.client, OpCode.setData, record.setData(pathOf(journey, 'local'), null, 0)));
  await again.client.close();
  note('after its end', (await resume(home, session)).outcome);
}

/** A silent one expires at its own server. */
async function expire({ ensemble, home, other, to, name }: Journey): Promise<void> {
  const session = await RawClient.connectOrThrow(home.port, shortTimeOut);
  session.abandon();
  const id = `0x${session.sessionId.toString(16)}`;
  await ensemble.until(
    `${home.name} has forgotten session ${id}`,
    async () => !(await home.ask('dump')).toLowerCase().includes(id) || undefined,
    goneMs,
    home.sid,
  );
  // The server may still be closing its connections, the new one among them: so refused or closed.
  to.note(`${name}: a silent session is alive at its server`, (await resume(home, session)).outcome === 'resumed');
  to.note(`${name}: a silent session is alive at another`, (await resume(other, session)).outcome === 'resumed');
}

/** The ways to ask for an ephemeral znode. The first one that succeeds makes the session global. */
async function askForEphemerals(journey: Journey, first: 'create' | 'create2' | 'multi'): Promise<void> {
  const { ensemble, home, other, to, name } = journey;
  const note = (step: string, result: unknown): void => to.note(`${name}: ${first} of an ephemeral: ${step}`, result);
  const session = await RawClient.connectOrThrow(home.port, timeOut);
  const path = pathOf(journey, `own-${first}`);
  const part = { type: OpCode.create, fields: createFields(path, ephemeral) };
  const answer =
    first === 'multi'
      ? await session.call(OpCode.multi, record.multi([part]))
      : await session.call(OpCode[first], createFields(path, ephemeral));
  note(
    'the answer',
    answer.value.results === undefined ? answer.err : answer.value.results.map(({ err, value }) => value?.err ?? err).join(),
  );
  const owned = await session.call(OpCode.exists, record.pathAndWatch(path, false));
  note('its owner', owned.err === 0 ? owned.value.stat!.ephemeralOwner === session.sessionId : owned.err);
  note('as seen at another server', await isThere(other, path));
  const moved = await resume(other, session);
  note('the session at another server', moved.outcome);
  const there = moved.client ?? session;
  note('another one', await errorOf(there, OpCode.create, createFields(`${path}-2`, ephemeral)));
  const back = await resume(home, session);
  note('the session at its server', back.outcome);
  if (back.client !== undefined) {
    // This server may not have applied yet what the other one has answered.
    await back.client.call(OpCode.multi, record.multi([]));
    note(
      'its ephemeral znodes',
      (await back.client.call(OpCode.getEphemerals, record.pathOnly('/'))).value.ephemerals!.toSorted((a, b) => (a! < b! ? -1 : 1)).join(),
    );
    await back.client.close();
  }
  await ensemble.until(`${path} is gone`, async () => !(await isThere(other, path)) || undefined, goneMs);
  note('after its end, at its server', (await resume(home, session)).outcome);
  note('after its end, at another', (await resume(other, session)).outcome);
  session.abandon();
  moved.client?.abandon();
}

/** A create that fails for another reason: whether the session is global afterwards. */
async function failToCreate(journey: Journey): Promise<void> {
  const { home, other, to, name } = journey;
  const session = await RawClient.connectOrThrow(home.port, timeOut);
  to.note(`${name}: an ephemeral without a parent`, await errorOf(session, OpCode.create, createFields('/none/child', ephemeral)));
  const moved = await resume(other, session);
  to.note(`${name}: an ephemeral without a parent: the session at another server`, moved.outcome);
  await (moved.client ?? session).close();
  session.abandon();
}

/** An ephemeral znode of a silent client is deleted. */
async function expireWithEphemeral(journey: Journey): Promise<void> {
  const { ensemble, home, other, to, name } = journey;
  // Not the shortest, since all processes here may pause for that long.
  const session = await RawClient.connectOrThrow(home.port, 5 * shortTimeOut);
  const path = pathOf(journey, 'dies');
  to.note(`${name}: an ephemeral of a client that falls silent`, await errorOf(session, OpCode.create, createFields(path, ephemeral)));
  session.abandon();
  await ensemble.until(`${path} is gone`, async () => !(await isThere(other, path)) || undefined, goneMs);
  to.note(`${name}: a silent session with an ephemeral is alive at another server`, (await resume(other, session)).outcome === 'resumed');
}

async function transcriptOf(kinds: readonly ServerKind[], upgrading: boolean): Promise<Transcript> {
  const specs = kinds.map((kind, index): PeerSpec => {
    const sid = index + 1;
    return { sid, kind, role: sid === observerSid ? 'observer' : 'participant' };
  });
  const ensemble = await createEnsemble(specs, { config: { localSessionsEnabled: true, localSessionsUpgradingEnabled: upgrading } });
  const to = new TranscriptWriter();
  try {
    // The intended leader is in the first quorum.
    await ensemble.launch([2, leaderSid]);
    await ensemble.untilServing([2, leaderSid]);
    await ensemble.launch([1, observerSid]);
    const leader = await ensemble.untilServing([1, observerSid]);
    if (leader.sid !== leaderSid) throw new Error(`server ${leader.sid} leads instead of server ${leaderSid}`);
    const pairs = ensemble.peers.flatMap((home) => ensemble.peers.filter((other) => other !== home).map((other) => [home, other] as const));
    await Promise.all(
      pairs.map(async ([home, other]) => {
        const journey = { ensemble, home, other, to, name: `${places[home.sid - 1]} and ${places[other.sid - 1]}` };
        await Promise.all([expire(journey), expireWithEphemeral(journey)]);
        await stayLocal(journey);
        for (const first of ['create', 'create2', 'multi'] as const) await askForEphemerals(journey, first);
        await failToCreate(journey);
      }),
    );
    return to.transcript;
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${await ensemble.evidence()}`, { cause: error });
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

const isMulti = /: multi of an ephemeral: the answer$/;

export const localSessionDifferences: readonly EnsembleJustification[] = [
  {
    id: 'ephemeral-in-multi-on-local-session',
    explains: (step, expected, found) =>
      isMulti.test(step) && expected === String(ErrorCode.SessionExpired) && found === String(ErrorCode.EphemeralOnLocalSession),
  },
];

export async function runLocalSessions(bounded: boolean, report: Report): Promise<void> {
  const chosen = bounded ? castings.slice(0, boundedCastings) : castings;
  for (const upgrading of [true, false]) {
    const name = `local sessions ${upgrading ? 'with' : 'without'} upgrading`;
    const justified = upgrading ? [] : localSessionDifferences;
    await compareTranscripts({ name, castings: chosen, transcriptOf: (kinds) => transcriptOf(kinds, upgrading), justified }, report);
  }
}
