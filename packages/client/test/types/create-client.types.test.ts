/**
 * Clients before their session exists, text and JSON: the compiler checks the assertions
 * (`npm run check`).
 */
import { expect, expectTypeOf, it } from 'vitest';
import {
  type Client,
  type ConnectFailure,
  connect,
  createClient,
  DataFormatError,
  type GetJsonResult,
  type GetTextResult,
  NodeTransport,
  type NodeTransportOptions,
  type ServerList,
  type Stat,
} from '../../src/index.ts';

interface Settings {
  readonly colour: string;
}

async function calls(zk: Client): Promise<void> {
  expectTypeOf(await zk.getText('/a')).toEqualTypeOf<GetTextResult>();
  expectTypeOf((await zk.getText('/a')).text).toEqualTypeOf<string | null>();
  expectTypeOf(await zk.getJson('/a')).toEqualTypeOf<GetJsonResult>();
  expectTypeOf((await zk.getJson<Settings>('/a')).value).toEqualTypeOf<Settings | undefined>();
  expectTypeOf(await zk.setJson('/a', { colour: 'red' }, { version: 1 })).toEqualTypeOf<Stat>();
  expectTypeOf((await zk.createJson('/a', [1])).path).toEqualTypeOf<string>();
  expectTypeOf(await zk.ready()).toEqualTypeOf<void>();
  zk.on('connectFailed', (failure) => expectTypeOf(failure).toEqualTypeOf<ConnectFailure>());
  // @ts-expect-error there is no such event
  zk.on('expired', () => {});
}

function creation(): void {
  expectTypeOf(createClient('a', { keepProcessAlive: false })).toEqualTypeOf<Client>();
  expectTypeOf(createClient).parameters.toEqualTypeOf<Parameters<typeof connect>>();
  expectTypeOf<Parameters<typeof connect>[0]>().toEqualTypeOf<ServerList>();
  expectTypeOf<ConstructorParameters<typeof NodeTransport>[0]>().toEqualTypeOf<NodeTransportOptions | undefined>();
  expectTypeOf<DataFormatError>().toExtend<SyntaxError>();
  // @ts-expect-error the unit is in the name
  createClient('a', { connectTimeout: 5 });
}

it('a client of createClient has the asserted types', () => {
  expect([calls, creation].map((each) => each.name)).toEqual(['calls', 'creation']);
});
