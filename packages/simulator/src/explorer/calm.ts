/**
 * What becomes of a small world when nothing more goes wrong: everything that was sent arrives, every disk answers, and time passes for all alike.
 * From every state that faults have led to, an ensemble must come to serve again, and within a bound.
 */
import type { Millis } from '@tskeeper/protocol';
import { chosen } from './choice.ts';
import { Violation } from './invariants.ts';
import type { SmallWorld } from './small-world.ts';

/**
 * `all`: what is down starts, what is cut is healed, and in the end everybody serves. `core`: what is cut stays cut if a quorum reaches each other all
 * the same, and what is down stays down if a quorum is up without it; in the end a quorum serves.
 */
export type Peace = 'all' | 'core';

/** Who has asked in vain for long asks again after a minute, and may be told something different by each the first time. */
const calmMaxMs = 150_000;
const stepsMax = 20_000;

/** Returns how long it took, in time that passes for everybody. Throws a `Violation` when it takes too long. */
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
      if (ms === undefined || passedMs > calmMaxMs) throw new Violation('Liveness', `after ${passedMs} ms of peace:\n${world.describe()}`);
      world.pass(ms);
    }
    if (step > stepsMax) throw new Violation('Liveness', `after ${step} steps of peace, ${passedMs} ms:\n${world.describe()}`);
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
