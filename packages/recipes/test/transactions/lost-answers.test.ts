/**
 * The reply to each single request of a transaction is lost, once, and the connection with it: in
 * each case the transaction is completed.
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { TwoPhaseCommit, type TwoPhaseCommitOptions, type Vote } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import { recording } from '../support/requests.ts';

const path = '/app/tx';
const parts = ['coordinator', 'berlin', 'paris'] as const;
type Part = (typeof parts)[number];

/** Records requests, until the one whose reply is lost. */
class Tripwire extends Array<string> {
  readonly #wire: number;
  readonly #trip: () => void;

  constructor(wire: number, trip: () => void) {
    super();
    this.#wire = wire;
    this.#trip = trip;
  }

  override push(...lines: string[]): number {
    const before = this.length;
    const length = super.push(...lines);
    if (before <= this.#wire && this.#wire < length) this.#trip();
    return length;
  }
}

/**
 * A client that loses the reply to one request; with `dies` for good, and all later replies too.
 */
async function clientOf(t: RecipeWorld, at: number, dies = false): Promise<{ readonly zk: Client; readonly lines: string[] }> {
  const { world } = t;
  const address = `10.1.0.${world.clients + 1}`;
  let isReady = false;
  const trip = () => {
    if (!isReady) return;
    world.wire.cutOneWay(world.address, address);
    if (dies) return;
    world.clock.after(300, () => {
      for (const cnxn of world.wire.cnxns) if (cnxn.dialer.address === address && !cnxn.forward.from.isClosed) world.break(cnxn);
      world.wire.healOneWay(world.address, address);
    });
  };
  const lines = new Tripwire(at, trip);
  const zk = await t.until(connect('server:2181', recording(world.options(), lines)));
  isReady = true;
  return { zk, lines };
}

/** The number of requests of the part whose reply `at` was lost. */
async function lose(options: TwoPhaseCommitOptions, part: Part, at: number, vote: Vote): Promise<number> {
  const t = await RecipeWorld.start();
  const clients = new Map<Part, Client>();
  let asked: string[] = [];
  for (const each of parts) {
    const { zk, lines } = await clientOf(t, each === part ? at : -1);
    clients.set(each, zk);
    if (each === part) asked = lines;
  }
  const site = async (name: Part): Promise<Vote> => {
    await using joined = await new TwoPhaseCommit(clients.get(name)!, path, options).join(name);
    await joined.vote(vote);
    const outcome = await joined.outcome();
    await joined.acknowledge();
    return outcome;
  };
  const transaction = new TwoPhaseCommit(clients.get('coordinator')!, path, options);
  await t.until(transaction.begin(['berlin', 'paris']));
  // A client that is not a site may ask too late.
  const looking = transaction.outcome().catch((error: unknown) => KeeperError.is(error, 'NoNode') && vote);
  expect(await t.until(Promise.all([looking, site('berlin'), site('paris')]))).toEqual([vote, vote, vote]);
  await t.pass(500);
  expect(await t.childrenOf('/app')).toEqual([]);
  await t.close();
  return asked.length;
}

describe('a transaction', () => {
  it.each(parts)('C1-3: is completed whichever reply to its %s is lost', async (part) => {
    let runs = 0;
    for (const watchedBy of ['sites', 'coordinator'] as const) {
      const requests = await lose({ watchedBy, presence: true }, part, -1, 'commit');
      for (let at = breadth(1, 0); at < requests; at += breadth(5, 1), runs++)
        await lose({ watchedBy, presence: true }, part, at, at % 2 === 0 ? 'commit' : 'abort');
    }
    expect(runs).toBeGreaterThan(breadth(3, 20));
  });

  it('B15: is decided whichever request is the last of its coordinator, and leaves nothing behind', async () => {
    const options = { watchedBy: 'coordinator' } as const;
    for (let at = 0; ; at += breadth(3, 1)) {
      const t = await RecipeWorld.start();
      await t.until(t.zk.create('/app'));
      const { zk, lines } = await clientOf(t, at, true);
      const coordinator = new TwoPhaseCommit(zk, path, options);
      const deciding = coordinator.begin(['berlin', 'paris']).then(() => coordinator.outcome());
      deciding.catch(() => undefined);
      await t.settle();
      const site = async (name: Part): Promise<Vote> => {
        await using joined = await new TwoPhaseCommit(await connect('server:2181', t.world.options()), path, options).join(name);
        await joined.vote('commit');
        const outcome = await joined.outcome();
        await joined.acknowledge();
        return outcome;
      };
      expect(await t.until(Promise.all([site('berlin'), site('paris')]))).toEqual(['commit', 'commit']);
      await t.pass(500);
      expect(await t.childrenOf('/app')).toEqual([]);
      await t.close();
      if (lines.length <= at) {
        expect(at).toBeGreaterThan(8);
        return;
      }
    }
  });

  it('is not begun a second time when it was over before its initiator knew of it', async () => {
    const t = await RecipeWorld.start();
    const { zk } = await clientOf(t, 0);
    const beginning = new TwoPhaseCommit(zk, '/tx').begin(['berlin']);
    await t.settle();
    const berlin = await t.until(new TwoPhaseCommit(t.zk, '/tx').join('berlin'));
    await t.until(berlin.vote('commit'));
    await t.until(berlin.outcome());
    await Promise.all([t.until(berlin.acknowledge()), t.until(beginning)]);
    expect(await t.until(t.zk.exists('/tx'))).toBe(null);
    await t.close();
  });
});
