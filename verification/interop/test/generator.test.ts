/** The random stream: repeatable, and without the requests that it must never send. */
import { OpCode } from '@tskeeper/protocol';
import { expect, test } from 'vitest';

import { Generator } from '../src/differential/generator.ts';
import type { Op, Step } from '../src/differential/step.ts';
import { Random } from '../src/random.ts';
import { requestBody } from '@tskeeper/harness';

const view = { zxid: (zxid: number) => zxid };

function opsOf(step: Step): readonly Op[] {
  switch (step.kind) {
    case 'sequential':
    case 'pipelined':
      return step.ops;
    case 'concurrent':
      return step.parts.flatMap((part) => part.ops);
    case 'last':
      return [step.op];
    default:
      return [];
  }
}

function stream(seed: number, rounds: number): Step[] {
  const generator = new Generator(new Random(seed));
  const steps = generator.initialSteps();
  for (let i = 0; i < rounds; i++) steps.push(...generator.round(120));
  return steps;
}

test('a seed gives the same requests each time, and another seed gives others', () => {
  const bytes = (seed: number) =>
    stream(seed, 10)
      .flatMap(opsOf)
      .map((op) => requestBody(1, op.type, op.fields(view)).toString('hex'));
  expect(bytes(5)).toEqual(bytes(5));
  expect(bytes(5)).not.toEqual(bytes(6));
});

test('no createTTL has a negative ttl without a ttl flag, alone or in a multi: a Java server would not survive it', () => {
  const asked = stream(1, 100)
    .flatMap(opsOf)
    .flatMap(({ text }) => [...text.matchAll(/createTTL \S+ flags=(\S+) ttl=(\S+)/g)]);
  expect(asked.length).toBeGreaterThan(100);
  for (const [, flags, ttl] of asked) expect(!ttl!.startsWith('-') || flags === '5' || flags === '6').toBe(true);
});

test('a setACL is never followed by a pipelined write', () => {
  for (const step of stream(2, 100)) {
    if (step.kind !== 'pipelined') continue;
    const at = step.ops.findIndex((op) => op.type === OpCode.setACL);
    expect(at === -1 || at === step.ops.length - 1).toBe(true);
  }
});

test('the requests contain every opcode of a client', () => {
  const seen = new Set(
    stream(3, 400)
      .flatMap(opsOf)
      .map((op) => op.type),
  );
  // closeSession is its own step, notification and error are among the unknown opcodes, and
  // createSession is never sent.
  // The operators' requests and pages are ours alone, and Keeper's operations are off by default.
  const operators: number[] = [OpCode.getLeader, OpCode.transferLeader, OpCode.shedConnections];
  const ours: number[] = [...operators, OpCode.getChildrenPage, OpCode.getChildrenDataPage, OpCode.keeperMulti];
  const isOfKeeper = (type: number): boolean => type >= OpCode.filteredList && type <= OpCode.listRecursive;
  const never: number[] = [OpCode.closeSession, OpCode.notification, OpCode.error, OpCode.createSession, ...ours];
  const missing = Object.entries(OpCode).filter(([, type]) => !seen.has(type) && !never.includes(type) && !isOfKeeper(type));
  expect(missing).toEqual([]);
});
