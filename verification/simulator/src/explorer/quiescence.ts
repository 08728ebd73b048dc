/**
 * Runs a small world without further faults: everything that was sent arrives, every disk answers,
 * and time passes equally for all. From every state that faults have led to, the ensemble must come
 * to serve within a bound.
 */
import type { Millis } from '@tskeeper/protocol';
import { decodeChoice } from './choice.ts';
import { Violation } from './invariants.ts';
import type { SmallWorld } from './small-world.ts';

/**
 * `all`: every server that is down starts, every link is healed, and at the end every member of the
 * configuration in force serves under it, and none is pending. `core`: links stay cut if a quorum is connected without them, servers stay down if a
 * quorum is up without them; at the end a quorum serves.
 */
export type Healing = 'all' | 'core';

/**
 * A server that has looked for long without success asks again after a minute, and the first time
 * each may answer something different.
 */
const recoveryMaxMs = 150_000;
const stepsMax = 20_000;

/**
 * Returns how long it took, in time that passes for all servers. Throws a `Violation` if it takes
 * too long.
 */
export function runToQuiescence(world: SmallWorld, healing: Healing): Millis {
  world.stopFaults(healing);
  let passedMs = 0;
  for (let step = 0; !isServing(world, healing); step++) {
    const code = world.choices().find((each) => faultFreeKinds.has(decodeChoice(each).kind) || world.isDue(each));
    if (code !== undefined) {
      world.apply(code);
    } else {
      // A configuration that arrived meanwhile may need a server or a link that was not needed before.
      world.stopFaults(healing);
      const ms = world.nextDeadlineMs();
      if (ms !== undefined) passedMs += ms;
      if (ms === undefined || passedMs > recoveryMaxMs)
        throw new Violation('Liveness', `after ${passedMs} ms without faults:\n${world.describe()}`);
      world.advanceClocks(ms);
    }
    if (step > stepsMax) throw new Violation('Liveness', `after ${step} steps without faults, ${passedMs} ms:\n${world.describe()}`);
  }
  return passedMs;
}

const faultFreeKinds: ReadonlySet<string> = new Set(['packet', 'log', 'file', 'config', 'dial', 'notify', 'refusal']);

function isServing(world: SmallWorld, healing: Healing): boolean {
  const { servers } = world;
  const serving = servers.filter(({ peer }) => peer?.server !== undefined);
  const leader = serving.find(({ peer }) => peer!.role === 'leading');
  if (leader === undefined) return false;
  return healing === 'all' ? world.isSettled(serving) : world.isQuorum(serving);
}
