/** Faults of connections and of the links that carry them. */
import type { PipeManners } from '@tskeeper/runtime/internal';
import type { Fault } from './fault.ts';

export const cut: Fault = {
  id: 'F15, F17',
  what: 'a connection is reset, half closed, or broken after any byte, possibly within a frame',
  strike(stage, random) {
    const actor = stage.anyActor();
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

const wellManners = new WeakMap<object, PipeManners>();

export const badWire: Fault = {
  id: 'F16, F29, F32',
  what: 'bytes are delayed, arrive one by one, or are not read for a while',
  strike(stage, random) {
    const { wire } = stage.anyActor();
    if (wire === undefined) return;
    const pipe = random.below(2) === 0 ? wire.forward : wire.backward;
    const { manners } = pipe;
    // The state before any of these faults: another may have changed the pipe, or may do so before
    // this one ends.
    const well = wellManners.get(pipe) ?? { ...manners };
    wellManners.set(pipe, well);
    switch (random.below(4)) {
      case 0:
        manners.delayMs = random.below(150);
        break;
      case 1:
        manners.pieceBytes = 1 + random.below(12);
        manners.pieceIntervalMs = random.below(64) / 64;
        break;
      case 2:
        manners.windowBytes = random.below(2) * 17;
        break;
      default:
        pipe.hold();
    }
    pipe.changed();
    stage.after(random.below(1200), 'wire well', undefined, () => {
      // What the final healing has repaired stays repaired.
      if (!stage.isHealed) Object.assign(manners, well);
      pipe.release();
      pipe.changed();
    });
  },
};

export const linkCut: Fault = {
  id: 'F18, F28',
  what: 'the link between a client and a server is cut: nothing passes and neither side is notified',
  strike(stage, random) {
    const link = stage.world.link(stage.anyActor().name, stage.anyServer().name);
    link.cut();
    stage.after(random.below(2500), 'link well', undefined, () => link.heal());
  },
};
