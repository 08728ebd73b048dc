/**
 * Code that does not compile. The compiler checks the assertions (`npm run check`); none of this is
 * run.
 */
import type { Client, CreateOp, Stat } from '@tskeeper/client';
import { expectTypeOf, it } from 'vitest';
import {
  type CachedZnode,
  jsonCodec,
  type ListedValue,
  Model,
  type ModelValue,
  type ParamNames,
  type ParentTemplate,
  PathTemplate,
  type StandardSchema,
  textCodec,
} from '../../src/index.ts';

declare const zk: Client;
declare const anyTemplate: string;
declare const numbersFromText: StandardSchema<{ sum: string }, { sum: number }>;

interface Order {
  readonly sum: number;
}

export async function models(): Promise<void> {
  expectTypeOf<ParamNames<'/users/{user}/orders/{order}'>>().toEqualTypeOf<'user' | 'order'>();
  expectTypeOf<ParamNames<'/settings'>>().toEqualTypeOf<never>();
  expectTypeOf<ParentTemplate<'/users/{user}/orders/{order}'>>().toEqualTypeOf<'/users/{user}/orders'>();
  expectTypeOf<ParentTemplate<'/users'>>().toEqualTypeOf<''>();
  expectTypeOf<ParentTemplate<'/{zone}/users'>>().toEqualTypeOf<'/{zone}'>();

  const orders = new Model('/users/{user}/orders/{order}', { codec: jsonCodec<Order>() });
  const order = orders.at(zk, { user: 7, order: 'a' });
  expectTypeOf(await order.get()).toEqualTypeOf<ModelValue<Order>>();
  expectTypeOf(await order.find()).toEqualTypeOf<ModelValue<Order> | undefined>();
  expectTypeOf(await order.set({ sum: 1 })).toEqualTypeOf<Stat>();
  expectTypeOf(order.op.create({ sum: 1 })).toEqualTypeOf<CreateOp>();
  expectTypeOf(order.cache().znode).toEqualTypeOf<CachedZnode<Order> | undefined>();
  const below = orders.children(zk, { user: '7' });
  expectTypeOf(await below.list()).toEqualTypeOf<readonly ListedValue<'/users/{user}/orders/{order}', Order>[]>();
  expectTypeOf((await below.list())[0]!.params).toEqualTypeOf<{ readonly user: string; readonly order: string }>();
  for await (const now of order.watch()) expectTypeOf(now).toEqualTypeOf<ModelValue<Order> | undefined>();

  // @ts-expect-error a parameter is missing
  void orders.at(zk, { user: 7 });
  // @ts-expect-error all are missing
  void orders.at(zk);
  // @ts-expect-error there is no such parameter
  void orders.at(zk, { user: 7, order: 1, item: 2 });
  // @ts-expect-error the parent has no parameter of this name
  void orders.children(zk, { user: 7, order: 1 });
  // @ts-expect-error not a value of the model
  void order.create({ sum: 'much' });
  // @ts-expect-error nor here
  void order.op.set('much');
  // @ts-expect-error nor the result of an updater
  void order.update((value) => value?.sum);
  // @ts-expect-error what is read cannot be changed
  (await order.get()).value.sum = 7;

  const settings = new Model('/settings', { codec: textCodec });
  expectTypeOf((await settings.at(zk).get()).value).toEqualTypeOf<string>();
  void settings.children(zk);
  // @ts-expect-error there are no parameters
  void settings.at(zk, { user: 7 });

  const parsed = new Model('/sums/{sum}', { codec: jsonCodec(numbersFromText) });
  const sum = parsed.at(zk, { sum: 1 });
  expectTypeOf((await sum.get()).value).toEqualTypeOf<{ sum: number }>();
  void sum.set({ sum: '12' });
  // @ts-expect-error the schema's input is written, not its output
  void sum.set({ sum: 12 });
  const judged = jsonCodec((value) => Number(value));
  expectTypeOf<ReturnType<typeof judged.decode>>().toEqualTypeOf<number>();

  void new Model('/leases/{lease}', { codec: textCodec, mode: 'persistentWithTtl', ttlMs: 1000 });
  // @ts-expect-error a TTL needs a mode that has one
  void new Model('/leases/{lease}', { codec: textCodec, ttlMs: 1000 });

  // A template that is known only at run time accepts any parameters.
  const template = new PathTemplate(anyTemplate);
  expectTypeOf(template.path({ user: 7 })).toEqualTypeOf<string>();
  expectTypeOf(template.match('/a')).toEqualTypeOf<Readonly<Record<string, string>> | undefined>();
}

it('the types of models describe what their paths need and what their znodes have', () => {
  expectTypeOf(models).returns.resolves.toBeVoid();
});
