/** What holders have written, one znode after the other. */
import type { Client } from '@tskeeper/client';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';

/** In the order in which they were written. */
export async function entriesOf(world: ClientWorld, zk: Client, log: string): Promise<readonly string[]> {
  await world.untilSo(() => zk.state === 'connected');
  const { children } = await world.until(zk.getChildren(log));
  const found = await world.until(Promise.all(children.toSorted().map((name) => zk.getData(`${log}/${name}`))));
  return found.map(({ data }) => new TextDecoder().decode(data ?? undefined));
}

/** No entry of a former holder follows one of a later holder. */
export function assertInOrder(log: string, tokens: readonly string[]): void {
  tokens.forEach((token, at) => {
    if (at > 0 && BigInt(token) < BigInt(tokens[at - 1]!))
      throw new Error(`${log}: entry ${at} of holder ${token} follows one of holder ${tokens[at - 1]}`);
  });
}
