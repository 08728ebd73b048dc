/**
 * Runs a client's program once for each request that it sends, and loses that request or its reply:
 * in each case the program ends as without a loss.
 */
import { type Client, type ConnectOptions, KeeperError } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import { expect } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { type Departing, fated, type Loss } from './fates.ts';
import type { RecipeWorld } from './recipe-world.ts';
import { recording } from './requests.ts';

/**
 * What a client does below `path`, with the same result in each run. Other clients may take part;
 * they lose nothing.
 */
export type Play = (zk: Client, path: string) => Promise<unknown>;

/**
 * For clients that receive no replies. Longer than a reconnect takes, so that a request that waits
 * for it has not timed out by then.
 */
const requestTimeoutMs = 400;
/** More than any of them needs. */
const stepsMax = 150;

/** The znodes below `path`, without guids and numbers. */
export async function shapeOf(t: RecipeWorld, path: string): Promise<readonly string[]> {
  const shape: string[] = [];
  try {
    for await (const { path: each } of t.zk.walk(path)) shape.push(each.slice(path.length).replaceAll(/_c_[0-9a-f-]{36}-|\d{10}/g, ''));
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  return shape.toSorted();
}

/**
 * Loses each request, or in `npm test` every sixth, and expects that the client has no watch left
 * in the end. Resolves with the number of requests.
 */
export async function withEachLoss(
  t: RecipeWorld,
  play: Play,
  losses: readonly Loss[] = ['answer', 'request', 'silence'],
): Promise<number> {
  const run = async (path: string, lossAt: (at: number) => Loss | undefined, options?: ConnectOptions) => {
    let isOver = false;
    let hasWatches = false;
    const fateOf = ({ at, opCode }: Departing) => {
      if (!isOver) return lossAt(at);
      hasWatches ||= opCode === OpCode.setWatches || opCode === OpCode.setWatches2;
      return undefined;
    };
    const zk = await fated(t, fateOf, options);
    const result = await t.until(play(zk, path));
    await t.pass(1500, 300);
    const left = await t.until(shapeOf(t, path));
    // With the next connection it would set any remaining watches again.
    isOver = true;
    t.world.break();
    await t.world.untilSo(() => zk.state === 'connected');
    await t.until(zk.close());
    return { result, left, hasWatches };
  };
  const lines: string[] = [];
  const wanted = await run('/once', () => undefined, recording(t.world.options(), lines));
  expect(wanted.hasWatches).toBe(false);
  const stride = breadth(6, 1);
  let requests = 0;
  for (const loss of losses) {
    let isLost = true;
    for (let step = breadth({ answer: 1, request: 4, silence: 2 }[loss], 0); isLost; step += stride) {
      if (step >= stepsMax) throw new Error(`no end after ${step} requests`);
      isLost = false;
      const lossAt = (at: number) => {
        if (at !== step) return undefined;
        isLost = true;
        return loss;
      };
      const name = `step ${step}, the ${loss} of about: ${lines[step] ?? 'the end'}`;
      const found = await run(`/${loss}-${step}`, lossAt, loss === 'silence' ? { requestTimeoutMs } : {}).catch((error: unknown) => {
        throw new Error(`${name}: ${String(error)}`, { cause: error });
      });
      expect(found, name).toEqual(wanted);
      requests += stride;
    }
  }
  return requests;
}
