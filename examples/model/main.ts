/**
 * Znodes with types: orders of users, as JSON that is validated at each read and write.
 *
 *   main.js <connect string> add <user> <item> <count> [times]     adds so many of an item to the order of a user, so many times
 *   main.js <connect string> list <user>                           prints all orders of a user
 */
import { connect } from '@tskeeper/client';
import { jsonCodec, Model } from '@tskeeper/recipes';

interface Order {
  readonly item: string;
  readonly count: number;
}

function order(value: unknown): Order {
  const { item, count } = value as Partial<Order>;
  if (typeof item !== 'string' || typeof count !== 'number' || !(count > 0))
    throw new TypeError('an order has an item and a count above 0');
  return { item, count };
}

const orders = new Model('/users/{user}/orders/{order}', { codec: jsonCodec(order) });

const [hosts, what, user, item, more, times = '1'] = process.argv.slice(2);
const isComplete = what === 'list' || (what === 'add' && item !== undefined && more !== undefined);
if (hosts === undefined || user === undefined || !isComplete) {
  console.error('usage: main.js <connect string> add <user> <item> <count> [times] | list <user>');
  process.exit(2);
}

await using zk = await connect(hosts, { sessionTimeoutMs: 3000 });
if (what === 'list') {
  const all = await orders.children(zk, { user }).list();
  for (const { value } of all.toSorted((one, other) => (one.value.item < other.value.item ? -1 : 1)))
    console.log(`${value.item} ${value.count}`);
} else {
  const znode = orders.at(zk, { user, order: item! });
  for (let time = 0; time < Number(times); time++) {
    // Written only if no other client has written meanwhile; otherwise read again and retried.
    const left = await znode.update((before) => ({ item: item!, count: (before?.count ?? 0) + Number(more) }), { create: true });
    console.log(`${item} ${left!.value.count}`);
  }
}
