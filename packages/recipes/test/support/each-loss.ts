/** Plays what a client does once for each request that it makes, and loses that, or the answer to it: whatever it is, things end as they do without a loss. */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { expect } from 'vitest';
import { fated, type Loss } from './fates.ts';
import type { RecipeWorld } from './recipe-world.ts';
import { recording } from './requests.ts';

/** What a client does below `path`, and what comes of it, the same in each run. Other clients may take part, which lose nothing. */
export type Play = (zk: Client, path: string) => Promise<unknown>;

/** Far beyond what any of them takes. */
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

/** Resolves with how many runs lost something. */
export async function withEachLoss(t: RecipeWorld, play: Play, losses: readonly Loss[] = ['answer', 'request']): Promise<number> {
  const run = async (zk: Client, path: string) => {
    const result = await t.until(play(zk, path));
    await t.pass(600, 300);
    const left = await t.until(shapeOf(t, path));
    await t.until(zk.close());
    return { result, left };
  };
  const lines: string[] = [];
  const wanted = await run(await t.until(connect('server:2181', recording(t.world.options(), lines))), '/once');
  // Without the handshake, and without the end of the session.
  const steps = lines.filter((line) => !line.startsWith('createSession') && !line.startsWith('closeSession'));
  let runs = 0;
  for (const loss of losses) {
    let isLost = true;
    for (let step = 0; isLost; step++) {
      if (step === stepsMax) throw new Error(`no end after ${step} requests`);
      isLost = false;
      const zk = await fated(t, ({ at }) => {
        if (at !== step) return undefined;
        isLost = true;
        return loss;
      });
      const name = `step ${step}, the ${loss} of about: ${steps[step] ?? 'the end'}`;
      const found = await run(zk, `/${loss}-${step}`).catch((error: unknown) => {
        throw new Error(`${name}: ${String(error)}`, { cause: error });
      });
      expect(found, name).toEqual(wanted);
      runs++;
    }
  }
  return runs;
}
