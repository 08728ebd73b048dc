/**
 * Runs a small world without further faults: everything that was sent arrives, every disk answers,
 * and time passes equally for all. From every state that faults have led to, the ensemble must come
 * to serve within a bound.
 */
import type { Millis } from '@tskeeper/protocol';
import { chosen } from './choice.ts';
import { Violation } from './invariants.ts';
import type { SmallWorld } from './small-world.ts';

/**
 * `all`: every server that is down starts, every link is healed, and at the end every server
 * serves. `core`: links stay cut if a quorum is connected without them, servers stay down if a
 * quorum is up without them; at the end a quorum serves.
 */
export type Peace = 'all' | 'core';

/**
 * A server that has looked for long without success asks again after a minute, and the first time
 * each may answer something different.
 */
const calmMaxMs = 150_000;
const stepsMax = 20_000;

/**
 * Returns how long it took, in time that passes for all servers. Throws a `Violation` if it takes
 * too long.
 */
export function bringCalm(world: SmallWorld, peace: Peace): Millis {
  world.cease(peace);
  let passedMs = 0;
  for (let step = 0; !isCalm(world, peace); step++) {
    const code = world.choices().find((each) => happensByItself.has(chosen(each).kind) || world.isDue(each));
    if (code !== undefined) {
      world.make(code);
    } else {
      const ms = world.nextDeadlineMs();
      if (ms !== undefined) passedMs += ms;
      if (ms === undefined || passedMs > calmMaxMs)
        throw new Violation('Liveness', `after ${passedMs} ms without faults:\n${world.describe()}`);
      world.pass(ms);
    }
    if (step > stepsMax) throw new Violation('Liveness', `after ${step} steps without faults, ${passedMs} ms:\n${world.describe()}`);
  }
  return passedMs;
}

const happensByItself: ReadonlySet<string> = new Set(['packet', 'log', 'file', 'dial', 'notify', 'refused']);

function isCalm(world: SmallWorld, peace: Peace): boolean {
  const { servers } = world;
  const serving = servers.filter(({ peer }) => peer?.server !== undefined);
  const leader = serving.find(({ peer }) => peer!.role === 'leading');
  if (leader === undefined) return false;
  if (peace === 'all') return serving.length === servers.length;
  return world.isQuorum(serving);
}
