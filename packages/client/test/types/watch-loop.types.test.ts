/**
 * What does not compile. The compiler checks the assertions (`npm run check`); nothing of this
 * runs.
 */
import { expectTypeOf, it } from 'vitest';
import type { ChangeType, Client, Reread, ZnodeChange } from '../../src/index.ts';

declare const zk: Client;
declare const isRecursive: boolean;

export async function loops(): Promise<void> {
  for await (const event of zk.watch('/a', { recursive: true })) {
    // @ts-expect-error a Reread has no path: a loop that forgets it does not compile
    void event.path;
    // @ts-expect-error nor a zxid
    void event.zxid;
    // @ts-expect-error a recursive loop never delivers it
    if (event.type === 'NodeChildrenChanged') break;
    // @ts-expect-error nor is there a change of this name
    if (event.type === 'DataChanged') break;
    switch (event.type) {
      case 'NodeCreated':
      case 'NodeDeleted':
      case 'NodeDataChanged':
        expectTypeOf(event.path).toEqualTypeOf<string>();
        expectTypeOf(event.zxid).toEqualTypeOf<bigint | undefined>();
        break;
      case 'Reread':
        expectTypeOf(event).toEqualTypeOf<Reread>();
        break;
      default:
        event satisfies never;
    }
  }

  for await (const event of zk.watch('/a')) {
    if (event.type === 'Reread') expectTypeOf(event.cause).toEqualTypeOf<'started' | 'reconnected' | 'overflowed'>();
    else expectTypeOf(event.type).toEqualTypeOf<ChangeType>();
    if (event.type === 'NodeChildrenChanged') expectTypeOf(event).toEqualTypeOf<ZnodeChange<'NodeChildrenChanged'>>();
  }

  // Whether it is recursive is known only at run time: both kinds of events may arrive.
  for await (const event of zk.watch('/a', { recursive: isRecursive })) {
    if (event.type === 'NodeChildrenChanged') break;
  }

  // @ts-expect-error there is no such option
  zk.watch('/a', { mode: 'persistent' });
  // @ts-expect-error a loop needs a path
  zk.watch();
  // @ts-expect-error it requires `for await`
  for (const _ of zk.watch('/a')) break;
}

it('B32: watch loops have the asserted types', () => {
  expectTypeOf(loops).returns.resolves.toEqualTypeOf<void>();
});
