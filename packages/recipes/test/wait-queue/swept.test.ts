/**
 * Servers delete a container that has been empty for a while, also at the moment when a recipe is
 * about to create a child.
 */
import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Lock } from '../../src/index.ts';
import { type Departing, fated } from '../support/fates.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import { recording } from '../support/requests.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start({ containerCheckIntervalMs: 5000 });
});

afterEach(async () => {
  await t.close();
});

const path = '/lock';

/** Resolves when the existing znode has been deleted. */
function deleted(): Promise<void> {
  return new Promise((resolve, reject) => {
    const found = t.zk.exists(path, { watch: ({ type }) => type === 'NodeDeleted' && resolve() });
    found.then((stat) => stat ?? reject(new Error(`${path} was gone before`)), reject);
  });
}

describe('a queue whose container the server sweeps', () => {
  it('C3-22: is created again by a create that was in flight and found the container gone', async () => {
    const first = await t.until(new Lock(t.zk, path).acquire());
    await t.until(first.release());
    const lines: string[] = [];
    let creates = 0;
    const isFirst = ({ opCode }: Departing) => opCode === OpCode.create2 && creates++ === 0;
    const zk = await fated(t, (request) => (isFirst(request) ? { ahead: deleted } : undefined), recording(t.world.options(), lines));
    lines.length = 0;
    const held = await t.until(new Lock(zk, path).acquire());
    expect(lines.slice(0, 4)).toEqual([
      // This create is delayed until the container is gone, and fails with NoNode.
      'create /lock/guid-lock- ephemeral sequential',
      'exists /lock',
      'createContainer /lock container',
      'create /lock/guid-lock- ephemeral sequential',
    ]);
    // The numbers begin anew with the container.
    expect(held.path).toMatch(/^\/lock\/_c_[0-9a-f-]{36}-lock-0000000000$/);
    expect(await t.childrenOf(path)).toEqual([held.path.slice(path.length + 1)]);
  });
});
