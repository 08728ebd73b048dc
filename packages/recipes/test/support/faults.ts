/** What goes wrong with a client of a RecipeWorld, at a moment of the test's choice. */
import { type Client, connect, type ConnectOptions, type Transport } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import type { RecipeWorld } from './recipe-world.ts';

/** Ends the session of a client, as the ensemble does with one that it has not heard from. */
export async function expire(t: RecipeWorld, zk: Client): Promise<void> {
  const session = { id: zk.sessionId, password: zk.sessionPassword };
  const other = await t.client({ session });
  await t.until(other.close());
  await t.world.untilSo(() => zk.closedBecause === 'expired');
}

/**
 * A client that never hears the answer to the next request of a kind after `lose`, or to the one with so many others before it after `loseAt`: the connection breaks
 * instead, once it was carried out.
 */
export async function forgetful(
  t: RecipeWorld,
  options: ConnectOptions = {},
): Promise<{
  readonly zk: Client;
  readonly lose: (op: keyof typeof OpCode) => void;
  readonly loseAt: (at: number) => void;
  readonly lost: number;
}> {
  const given = t.world.options(options);
  const wire = given.transport!;
  let wanted: number | undefined;
  let left: number | undefined;
  let lost = 0;
  const transport: Transport = {
    resolve: (host) => wire.resolve!(host),
    connect: (address, sink) => {
      let isDeaf = false;
      const cnxn = wire.connect(address, {
        connected: () => sink.connected(),
        received: (bytes) => {
          if (!isDeaf) sink.received(bytes);
        },
        closed: (error) => sink.closed(error),
      });
      let isHandshake = true;
      return {
        send: (bytes) => {
          const buffer = Buffer.from(bytes);
          for (let at = 0; at < buffer.length; at += 4 + buffer.readInt32BE(at)) {
            const opCode = isHandshake ? undefined : buffer.readInt32BE(at + 8);
            const isLast = opCode !== undefined && opCode !== OpCode.ping && left !== undefined && left-- === 0;
            if (isLast || (opCode !== undefined && opCode === wanted)) {
              wanted = undefined;
              left = undefined;
              isDeaf = true;
              lost++;
              t.world.clock.after(50, () => {
                cnxn.destroy();
                sink.closed('the answer was lost');
              });
            }
            isHandshake = false;
          }
          cnxn.send(bytes);
        },
        end: () => cnxn.end(),
        destroy: () => cnxn.destroy(),
      };
    },
  };
  const zk = await t.until(connect('server:2181', { ...given, transport }));
  return {
    zk,
    lose: (op) => {
      wanted = OpCode[op];
    },
    loseAt: (at) => {
      left = at;
    },
    get lost() {
      return lost;
    },
  };
}
