/** An operator who waits until another server leads. */
import { describe, expect, it } from 'vitest';
import { EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';
import { addressOf } from './ports/peer-rig.ts';

describe('A62: a transfer of the lead that an operator waits for', () => {
  it('fails when the server that gave the lead away finds no leader in time', async () => {
    const rig = await EnsembleRuntimeRig.start();
    const [old, [target]] = [rig.leader, rig.learners];
    // Time for a cut, before it finds the new leader.
    rig.rig.wire.conditionsOf = () => ({ delayMs: 50 });
    let outcome: unknown;
    old.runtime!.transferLeadership(target!.sid).then(
      (sid) => (outcome = sid),
      (error: unknown) => (outcome = error),
    );
    await rig.until(() => old.role !== 'leader', 1000);
    for (const { sid } of rig.learners) if (sid !== old.sid) rig.rig.wire.cut(addressOf(old.sid), addressOf(sid));
    await rig.rig.run(14_000, 100);
    expect(outcome).toBeUndefined();
    await rig.rig.run(2000, 100);
    expect(outcome).toEqual(new Error(`server ${target!.sid} has not taken the lead: this server has found no leader for 15 s`));
  });
});
