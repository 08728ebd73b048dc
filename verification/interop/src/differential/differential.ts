/**
 * The differential run: one random stream of requests to two servers that start empty, and a
 * comparison of everything they send.
 *
 * A round has some dozens of requests, then a ping on every connection so that all events have
 * arrived, then the comparison. Clients that lost their connection on either side are reconnected
 * on both before the next round, so one difference is not counted many times.
 */
import { Random } from '../random.ts';
import { Comparison, type Difference } from './compare.ts';
import { clientCount, Generator, type GeneratorOptions } from './generator.ts';
import { Side } from './side.ts';
import type { Step } from './step.ts';

/** Requests between two comparisons. Long enough for effects to interact, short enough to read. */
const roundSize = 120;
/** More differences than anyone reads: the servers have diverged for good. */
const differencesMax = 5000;

export interface DifferentialOptions {
  readonly portA: number;
  readonly portB: number;
  readonly seed: number;
  readonly operations: number;
  /** Requests that the stream omits. */
  readonly generator?: GeneratorOptions;
  /** Ends the run early, with the results so far. */
  readonly stopWhen?: () => boolean;
}

export interface DifferentialResult {
  /** Requests sent to each server, a multi counted once; pings between rounds are not counted. */
  readonly operations: number;
  readonly rounds: number;
  readonly replies: number;
  readonly events: number;
  /** Requests by opcode; those inside a multi are counted as well. */
  readonly byOpcode: ReadonlyMap<string, number>;
  readonly differences: readonly Difference[];
}

export async function runDifferential({
  portA,
  portB,
  seed,
  operations,
  generator: generatorOptions,
  stopWhen,
}: DifferentialOptions): Promise<DifferentialResult> {
  const generator = new Generator(new Random(seed), generatorOptions);
  const a = new Side(portA, clientCount, { zxid: (zxid) => zxid });
  // Declared before the comparison, which needs the names of both sides.
  const b: Side = new Side(portB, clientCount, { zxid: (zxid) => comparison.toSecondZxid(zxid) });
  const comparison = new Comparison(a.sessionNames, b.sessionNames);
  let asked = 0;
  const both = async (steps: readonly Step[]): Promise<void> => {
    for (const step of steps) {
      asked += requestsIn(step);
      await Promise.all([a.run(step), b.run(step)]);
    }
  };
  let round = 0;
  let steps = generator.initialSteps();
  for (;;) {
    await both(steps);
    await Promise.all([a.settle(), b.settle()]);
    const logsA = a.takeLogs();
    for (const { message, op } of logsA.flat()) {
      if (message.kind !== 'reply') continue;
      generator.zxidSeen(message.zxid);
      if (op !== undefined && message.err === 0 && op.text.startsWith('create')) rememberSequentialPath(generator, message.body);
    }
    comparison.compareRound(round, logsA, b.takeLogs(), lastActor(steps));
    round += 1;
    if (asked >= operations || comparison.differences.length > differencesMax || stopWhen?.() === true) break;
    await both(reconnectSteps(generator, a, b));
    steps = generator.round(roundSize);
  }
  await Promise.all([a.end(), b.end()]);
  return {
    operations: asked,
    rounds: round,
    replies: comparison.messagesCompared,
    events: comparison.eventsCompared,
    byOpcode: generator.counts,
    differences: comparison.differences,
  };
}

function requestsIn(step: Step): number {
  switch (step.kind) {
    case 'sequential':
    case 'pipelined':
      return step.ops.length;
    case 'concurrent':
      return step.parts.reduce((sum, part) => sum + part.ops.length, 0);
    case 'cut':
      return 0;
    default:
      return 1;
  }
}

/**
 * The path in a CreateResponse, which begins every reply to a create. Kept if the server chose the
 * name, so that it can be used again.
 */
function rememberSequentialPath(generator: Generator, body: Buffer): void {
  if (body.length < 4) return;
  const path = body.toString('utf8', 4, 4 + body.readInt32BE(0));
  if (/\d{10}$/.test(path)) generator.sequentialCreated(path);
}

function lastActor(steps: readonly Step[]): number {
  const last = steps.findLast((step) => 'client' in step);
  return last !== undefined && 'client' in last ? last.client : 0;
}

/** Steps that give every client of both sides a connection with a session. */
function reconnectSteps(generator: Generator, a: Side, b: Side): Step[] {
  const steps: Step[] = [];
  for (let client = 0; client < clientCount; client++) {
    if (a.isConnected(client) && b.isConnected(client)) continue;
    const kept = a.hasSession(client) && b.hasSession(client);
    a.drop(client, !kept);
    b.drop(client, !kept);
    steps.push(...(kept ? generator.reattach(client) : generator.newSession(client)));
  }
  return steps;
}
