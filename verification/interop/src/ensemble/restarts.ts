/**
 * One cycle: a server is stopped or killed, the others continue, and it comes back. It must join,
 * be synchronized in the expected way, and hold what all the others hold.
 */
import { formatZxid, OpCode } from '@tskeeper/protocol';

import type { Report } from '../report.ts';
import { type EnsemblePeer, type Fields, openAcl, type ProcessEnsemble, RawClient, record, until } from '@tskeeper/harness';
import { compareServers, lastLogged, untilConverged } from './agreement.ts';
import { type SyncMode, syncModeOf } from './sync-mode.ts';

interface Request {
  readonly type: number;
  readonly fields: Fields;
}

export interface RestartContext {
  readonly ensemble: ProcessEnsemble;
  readonly report: Report;
  /** Prefix of the checks' names. */
  readonly name: string;
}

let batch = 0;

/** Writes this many txns through one server: creates, changes and deletes. All must succeed. */
export async function write(port: number, count: number): Promise<void> {
  const client = await RawClient.connectOrThrow(port, 30_000);
  const top = `/batch-${++batch}`;
  const data = Buffer.from(`written as batch ${batch}`);
  const create = (at: string, flags = 0): Request => ({ type: OpCode.create, fields: record.create(at, data, openAcl, flags) });
  const requests = [create(top)];
  for (let i = 1; i < count; i++) {
    // Few znodes and many txns, so that the trees can be compared quickly.
    if (i % 50 === 1) requests.push(create(`${top}/s-`, 2));
    else requests.push({ type: OpCode.setData, fields: record.setData(top, Buffer.from(`${i} of batch ${batch}`), -1) });
  }
  for (let from = 0; from < requests.length; from += 200) {
    const errors = await client.callAll(requests.slice(from, from + 200));
    const refused = errors.find((error) => error !== 0);
    if (refused !== undefined) throw new Error(`a write was answered with ${refused}`);
  }
  await client.close();
}

/** Requires that all running servers hold the same; otherwise `name` fails. */
export async function expectAgreement({ ensemble, report }: RestartContext, name: string, remark = ''): Promise<void> {
  const { differences, znodes, zxid } = await compareServers(ensemble);
  if (differences.length > 0) report.fail(name, `\n    ${differences.slice(0, 20).join('\n    ')}`);
  else report.pass(`${name}${remark} (${znodes} znodes at ${zxid})`);
}

function roleOf(member: EnsemblePeer): 'follower' | 'observer' {
  return member.role === 'observer' ? 'observer' : 'follower';
}

export interface LearnerRestart {
  readonly sid: number;
  readonly end: 'stop' | 'kill';
  /** Writes in the meantime, through each of the running servers in turn. */
  readonly writes: number;
  /** The expected synchronization, if a server logs it. */
  readonly expect: SyncMode;
}

/** A learner is away for a while. */
export async function restartLearner(cycles: RestartContext, { sid, end, writes, expect }: LearnerRestart): Promise<void> {
  const { ensemble, report } = cycles;
  const member = ensemble.peer(sid);
  const leader = await ensemble.leader();
  const name = `${cycles.name}: ${member.name}, ${roleOf(member)} of ${leader.kind}, ${end}, back after ${writes} txns by ${expect}`;
  try {
    await untilConverged(ensemble);
    await (end === 'kill' ? ensemble.kill(sid) : ensemble.stop(sid));
    const writers = ensemble.running;
    const share = Math.ceil(writes / writers.length);
    for (const writer of writers) await write(writer.port, share);
    await ensemble.launch([sid]);
    await ensemble.untilMode([sid], roleOf(member));
    const mode = await syncModeOf(member, leader);
    if (mode !== undefined && mode !== expect) report.fail(name, `it was synchronized by ${mode}`);
    else await expectAgreement(cycles, name);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  }
}

/**
 * The leader ends, another one takes over, and the old one comes back as a follower. Returns the
 * new leader.
 */
export async function replaceLeader(cycles: RestartContext, end: 'stop' | 'kill', expectLeader: number): Promise<void> {
  const { ensemble, report } = cycles;
  const old = await ensemble.leader();
  const name = `${cycles.name}: ${old.name} leads, ${end}, server ${expectLeader} takes over, and the old leader comes back`;
  try {
    await untilConverged(ensemble);
    await (end === 'kill' ? ensemble.kill(old.sid) : ensemble.stop(old.sid));
    const next = await ensemble.leader();
    if (next.sid !== expectLeader) throw new Error(`server ${next.sid} leads`);
    await ensemble.untilServing();
    await write(next.port, 10);
    await ensemble.launch([old.sid]);
    await ensemble.untilMode([old.sid], 'follower');
    await expectAgreement(cycles, name, `, led by ${next.kind}`);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  }
}

export interface UncommittedTail {
  /** Txns that only the leader has logged when all voters are killed. */
  readonly tail: number;
  /**
   * Writes before it comes back: without any, it can truncate its log; with some, it needs a
   * snapshot.
   */
  readonly writes: number;
}

/**
 * The leader logs txns that no other server receives, since the others are stopped; then all are
 * killed. The others continue without it, and its extra txns must be gone everywhere when it is
 * back.
 */
export async function restartWithUncommittedTail(cycles: RestartContext, { tail, writes }: UncommittedTail): Promise<void> {
  const { ensemble, report } = cycles;
  const old = await ensemble.leader();
  const others = ensemble.running.filter(({ sid, role }) => role === 'participant' && sid !== old.sid).map(({ sid }) => sid);
  const expect: SyncMode = writes === 0 ? 'TRUNC' : 'SNAP';
  const name = `${cycles.name}: ${old.name} led and logged ${tail} txns alone, all killed, back after ${writes} other txns by ${expect}`;
  try {
    await untilConverged(ensemble);
    const before = await lastLogged(old);
    // Its session must not end, which would be a txn, before the server that has to truncate is
    // back.
    const client = await RawClient.connectOrThrow(old.port, 600_000);
    const { err } = await client.call(OpCode.create, record.create('/tail', null, openAcl, 0));
    if (err !== 0 && err !== -110) throw new Error(`/tail was answered with ${err}`);
    await untilConverged(ensemble);
    for (const sid of others) ensemble.peer(sid).process!.pause();
    const start = await lastLogged(old);
    if (start <= before) throw new Error('the log of the leader has not grown');
    const lost = Array.from({ length: tail }, (_, i) => ({
      type: OpCode.create,
      fields: record.create(`/tail/lost-${i}`, null, openAcl, 0),
    }));
    client.send(lost);
    await until(
      `only ${old.name} has logged ${tail} txns`,
      async () => ((await lastLogged(old)) >= start + tail ? true : undefined),
      10_000,
      () => ensemble.evidence(),
    );
    await ensemble.kill(old.sid);
    client.abandon();
    for (const sid of others) await ensemble.kill(sid);
    for (const sid of others) {
      const last = await lastLogged(ensemble.peer(sid));
      if (last > start)
        throw new Error(`${ensemble.peer(sid).name} has logged up to ${formatZxid(last)} as well, after ${formatZxid(start)}`);
    }
    await ensemble.launch(others);
    // No writes before it is back: after a single txn of the new epoch, truncation would not
    // suffice.
    await ensemble.untilServing(others);
    const leader = await ensemble.leader();
    if (writes > 0) await write(leader.port, writes);
    await ensemble.launch([old.sid]);
    await ensemble.untilMode([old.sid], 'follower');
    const mode = await syncModeOf(old, leader);
    const witness = await RawClient.connectOrThrow(old.port, 30_000);
    const { value } = await witness.call(OpCode.getChildren, record.pathAndWatch('/tail', false));
    await witness.close();
    await ensemble.untilServing();
    if (mode !== undefined && mode !== expect) report.fail(name, `it was synchronized by ${mode}\n${await ensemble.evidence()}`);
    else if (value.children!.length > 0) report.fail(name, `${value.children!.length} of the lost txns still exist`);
    else await expectAgreement(cycles, name, `, led by ${leader.kind}`);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  }
}
