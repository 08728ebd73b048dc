/** Faults of a client of a RecipeWorld, at a moment that the test chooses. */
import type { Client, ConnectOptions } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import { type Departing, type Fate, fated } from './fates.ts';
import type { RecipeWorld } from './recipe-world.ts';

/** Ends the session of a client, as the ensemble does after the session timeout. */
export async function expire(t: RecipeWorld, zk: Client): Promise<void> {
  const session = { id: zk.sessionId, password: zk.sessionPassword };
  const other = await t.client({ session });
  await t.until(other.close());
  await t.world.untilSo(() => zk.endReason === 'expired');
}

/**
 * A client that never receives the reply to the next request of a kind after `lose`, or to the one
 * after so many others after `loseAt`: the connection breaks instead, after the request was
 * applied.
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
  let wanted: number | undefined;
  let left: number | undefined;
  let lost = 0;
  const fateOf = ({ opCode }: Departing): Fate => {
    const isIt = (left !== undefined && left-- === 0) || opCode === wanted;
    if (!isIt) return undefined;
    wanted = undefined;
    left = undefined;
    lost++;
    return 'answer';
  };
  const zk = await fated(t, fateOf, options);
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
