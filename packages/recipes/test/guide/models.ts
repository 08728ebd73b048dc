/** What docs/guides/recipes/models.md shows. */
import { type Client, type ClientView, op } from '@tskeeper/client';
import { Election, jsonCodec, Migrations, Model, SchemaSet } from '@tskeeper/recipes';

export interface Order {
  readonly item: string;
  readonly count: number;
}

/** Judges what is read, and what is to be written. A schema of Zod, Valibot, ArkType and others does as well: `jsonCodec(z.object({ ... }))`. */
function order(value: unknown): Order {
  const { item, count } = value as Partial<Order>;
  if (typeof item !== 'string' || typeof count !== 'number') throw new TypeError('an order has an item and a count');
  return { item, count };
}

export const orders = new Model('/users/{user}/orders/{order}', { codec: jsonCodec(order) });

/** Adds to an order, whoever else does; makes it if there is none. */
export async function addTo(zk: Client, user: string, item: string, more: number): Promise<number> {
  const znode = orders.at(zk, { user, order: item });
  const left = await znode.update((before) => ({ item, count: (before?.count ?? 0) + more }), { create: true });
  return left!.value.count;
}

/** Reads, thinks for as long as it likes, and writes only if the order is still the one that was read. */
export async function cancel(zk: Client, user: string, item: string, mayCancel: (value: Order) => Promise<boolean>): Promise<boolean> {
  const znode = orders.at(zk, { user, order: item });
  const { value, stat } = await znode.get();
  if (!(await mayCancel(value))) return false;
  await znode.delete({ version: stat.version });
  return true;
}

/** All orders of a user, by item: read now. */
export async function countsOf(zk: Client, user: string): Promise<Map<string, number>> {
  const all = await orders.below(zk, { user }).list();
  return new Map(all.map(({ params, value }) => [params.order, value.count]));
}

/** The same, at hand from now on. Data that are no order are told, and not taken for one. */
export async function report(zk: Client, user: string, tell: (line: string) => void, signal: AbortSignal): Promise<void> {
  await using cache = orders.below(zk, { user }).cache();
  for await (const change of cache.changes({ signal })) {
    if (change.kind !== 'created' && change.kind !== 'changed') continue;
    const { path, data, decodeError } = change.after;
    tell(data === undefined ? `${path}: ${String(decodeError)}` : `${path}: ${data.count}`);
  }
}

/** What this program may write, and where. All that goes through the view is held to it, recipes as well. */
export function guarded(zk: Client): ClientView {
  const schemas = new SchemaSet(
    [
      orders.schema,
      { path: '/users/{user}', ephemeral: 'cannot', sequential: 'cannot', canBeDeleted: false },
      { path: '/election/{candidate}', ephemeral: 'must' },
    ],
    { others: 'refused' },
  );
  return schemas.view(zk);
}

/** Leads, by what is guarded. */
export async function lead(zk: Client, work: (zk: ClientView) => Promise<void>): Promise<void> {
  const view = guarded(zk);
  await new Election(view, '/election').run(async () => await work(view));
}

/** Each applied once, in this order, by whoever comes first. Say this when the program begins. */
export async function prepare(zk: Client): Promise<readonly string[]> {
  const migrations = new Migrations(zk, '/migrations', [
    { name: 'users', ops: [op.create('/users'), op.create('/users/admin')] },
    { name: 'orders of the admin', ops: [op.create('/users/admin/orders')] },
  ]);
  return await migrations.migrate({ timeoutMs: 30_000 });
}
