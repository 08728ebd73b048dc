import {
  CreateMode,
  ErrorCode,
  type MultiOp,
  OpCode,
  openAcl,
  readMultiReply,
  sessionHigh,
  sessionLow,
  writeCreateRequest,
  writeMultiRequest,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { silentObserver } from '../src/index.ts';
import { StepBudget } from '../src/step-budget.ts';
import { Stepper } from './support/stepper.ts';

const session = 0x0100_0000_0000_0001n;
const cnxn = 1;

/** A core with steps of this many units, and its reports of steps that ended early. */
function withSteps(stepUnits: number) {
  const ended: string[] = [];
  const stepper = new Stepper(
    (replica) => replica.sessions.open(sessionHigh(session), sessionLow(session), 10_000),
    { stepUnits },
    { ...silentObserver, stepYielded: (kind) => void ended.push(kind) },
  );
  stepper.attach(cnxn, session);
  stepper.reset();
  return { stepper, ended };
}

function creates(count: number): MultiOp[] {
  return Array.from({ length: count }, (_, at) => ({
    kind: 'create',
    path: `/e${at}`,
    data: null,
    acl: openAcl,
    flags: CreateMode.ephemeral,
  }));
}

describe('a step budget', () => {
  it('of any size lets every kind of work advance by at least one item', () => {
    const limits = Object.values(new StepBudget(1)) as number[];
    expect(limits.every((limit) => limit >= 1)).toBe(true);
  });

  it.each([1, 4, 24])('of %i units is respected by validation, applying, reads and the end of a session', (stepUnits) => {
    const { stepper, ended } = withSteps(stepUnits);
    stepper.ask(cnxn, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops: creates(20) }));
    stepper.ask(cnxn, 2, OpCode.getEphemerals, (writer) => writer.ustring(null));
    stepper.ask(cnxn, 3, OpCode.create, (writer) => writeCreateRequest(writer, { path: '/p', data: null, acl: openAcl, flags: 0 }));
    stepper.ask(cnxn, 4, OpCode.closeSession, () => undefined);
    stepper.finish();
    const [multi, listed, created, closed] = stepper.received;
    expect(readMultiReply(multi!.body).results.length).toBe(20);
    expect(listed!.body.vector(4, (from) => from.text('a path'))).toHaveLength(20);
    expect([created!.header.err, closed!.header.err]).toEqual([ErrorCode.Ok, ErrorCode.Ok]);
    expect(stepper.replica.tree.ephemeralCount).toBe(0);
    expect(ended.filter((kind) => kind === 'request').length).toBeGreaterThan(20);
    expect(ended.filter((kind) => kind === 'commit').length).toBeGreaterThan(10);
  });

  it('of unlimited size does small work at once', () => {
    const { stepper, ended } = withSteps(16_384);
    stepper.ask(cnxn, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops: creates(20) }));
    stepper.finish();
    expect(ended).toEqual([]);
  });
});
