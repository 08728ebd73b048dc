/** Faults of connections and of the links that carry them. */
import type { PipeConditions } from '@tskeeper/runtime/internal';
import type { Fault } from './fault.ts';

export const brokenCnxn: Fault = {
  id: 'F15, F17',
  description: 'a connection is reset, half closed, or broken after any byte, possibly within a frame',
  inject(run, random) {
    const actor = run.anyActor();
    const { wire } = actor;
    switch (random.below(4)) {
      case 0:
        actor.reset();
        return;
      case 1:
        actor.halfClose();
        return;
      case 2:
        wire?.forward.resetAfter(wire.forward.deliveredBytes + random.below(300));
        return;
      default:
        wire?.backward.resetAfter(wire.backward.deliveredBytes + random.below(300));
    }
  },
};

const healthyManners = new WeakMap<object, PipeConditions>();

export const slowPipe: Fault = {
  id: 'F16, F29, F32',
  description: 'bytes are delayed, arrive one by one, or are not read for a while',
  inject(run, random) {
    const { wire } = run.anyActor();
    if (wire === undefined) return;
    const pipe = random.below(2) === 0 ? wire.forward : wire.backward;
    const { conditions } = pipe;
    // The state before any of these faults: another may have changed the pipe, or may do so before
    // this one ends.
    const well = healthyManners.get(pipe) ?? { ...conditions };
    healthyManners.set(pipe, well);
    switch (random.below(4)) {
      case 0:
        conditions.delayMs = random.below(150);
        break;
      case 1:
        conditions.pieceBytes = 1 + random.below(12);
        conditions.pieceIntervalMs = random.below(64) / 64;
        break;
      case 2:
        conditions.windowBytes = random.below(2) * 17;
        break;
      default:
        pipe.cut();
    }
    pipe.conditionsChanged();
    run.schedule(random.below(1200), 'wire well', undefined, () => {
      // What the final healing has repaired stays repaired.
      if (!run.isHealed) Object.assign(conditions, well);
      pipe.heal();
      pipe.conditionsChanged();
    });
  },
};

export const clientLinkCut: Fault = {
  id: 'F18, F28',
  description: 'the link between a client and a server is cut: nothing passes and neither side is notified',
  inject(run, random) {
    const link = run.world.link(run.anyActor().name, run.anyServer().name);
    link.cut();
    run.schedule(random.below(2500), 'link well', undefined, () => link.heal());
  },
};
