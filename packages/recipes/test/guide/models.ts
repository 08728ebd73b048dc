/** The code in docs/guides/recipes/models.md. */
import { type Client, type ClientView, op } from '@tskeeper/client';
import { Election, jsonCodec, Migrations, Model, SchemaSet } from '@tskeeper/recipes';

export interface Order {
  readonly item: string;
  readonly count: number;
}

/**
 * Validates each value that is read or is to be written. A schema of Zod, Valibot, ArkType or
 * another library works too: `jsonCodec(z.object({ ... }))`.
 */
function order(value: unknown): Order {
  const { item, count } = value as Partial<Order>;
  if (typeof item !== 'string' || typeof count !== 'number') throw new TypeError('an order has an item and a count');
  return { item, count };
}

export const orders = new Model('/users/{user}/orders/{order}', { codec: jsonCodec(order) });

/** Adds to an order, also while others add to it; creates the order if it does not exist. */
export async function addTo(zk: Client, user: string, item: string, more: number): Promise<number> {
  const znode = orders.at(zk, { user, order: item });
  const left = await znode.update((before) => ({ item, count: (before?.count ?? 0) + more }), { create: true });
  return left!.value.count;
}

/** Reads, decides, and deletes the order only if it has not changed since it was read. */
export async function cancel(zk: Client, user: string, item: string, mayCancel: (value: Order) => Promise<boolean>): Promise<boolean> {
  const znode = orders.at(zk, { user, order: item });
  const { value, stat } = await znode.get();
  if (!(await mayCancel(value))) return false;
  await znode.delete({ version: stat.version });
  return true;
}

/** Reads all orders of a user, by item. */
export async function countsOf(zk: Client, user: string): Promise<Map<string, number>> {
  const all = await orders.children(zk, { user }).list();
  return new Map(all.map(({ params, value }) => [params.order, value.count]));
}

/** Keeps the same in a cache. Reports data that are not an order as an error. */
export async function report(zk: Client, user: string, tell: (line: string) => void, signal: AbortSignal): Promise<void> {
  await using cache = orders.children(zk, { user }).cache();
  for await (const change of cache.changes({ signal })) {
    if (change.kind !== 'created' && change.kind !== 'changed') continue;
    const { path, data, decodeError } = change.after;
    tell(data === undefined ? `${path}: ${String(decodeError)}` : `${path}: ${data.count}`);
  }
}

/**
 * What this program may write, and where. The view applies these rules to all writes, also to those
 * of recipes.
 */
export function guarded(zk: Client): ClientView {
  const schemas = new SchemaSet(
    [
      orders.schema,
      { path: '/users/{user}', ephemeral: 'cannot', sequential: 'cannot', canBeDeleted: false },
      { path: '/election/{candidate}', ephemeral: 'must' },
    ],
    { unmatched: 'refused' },
  );
  return schemas.view(zk);
}

/** Leads, through the view. */
export async function lead(zk: Client, work: (zk: ClientView) => Promise<void>): Promise<void> {
  const view = guarded(zk);
  await new Election(view, '/election').run(async () => await work(view));
}

/**
 * Applies each migration once, in this order; the first process to get here does it. Call this when
 * the program starts.
 */
export async function prepare(zk: Client): Promise<readonly string[]> {
  const migrations = new Migrations(zk, '/migrations', [
    { name: 'users', ops: [op.create('/users'), op.create('/users/admin')] },
    { name: 'orders of the admin', ops: [op.create('/users/admin/orders')] },
  ]);
  return await migrations.migrate({ timeoutMs: 30_000 });
}
