/** What a two-phase commit guarantees, over seeds: see transaction-story.ts. */
import { type CallOptions, ClientView, type Data, type ReadOptions, type SetDataOptions, type WriteOp } from '@tskeeper/client';
import { describe, expect, it, vi } from 'vitest';
import { breadth, expectHappened } from '../../../../test/breadth.ts';
import { type Canary, itFindsOut, overSeeds } from '../support/seeds.ts';
import { run, Tally } from './transaction-run.ts';

type Method = 'getData' | 'setData' | 'getChildren' | 'exists' | 'multi';

/** The original method of the client, for canaries that change the requests of recipes. */
function original<Name extends Method>(name: Name): ClientView[Name] {
  return Object.getOwnPropertyDescriptor(ClientView.prototype, name)!.value as ClientView[Name];
}

const [getData, setData, getChildren] = [original('getData'), original('setData'), original('getChildren')];
const [exists, multi] = [original('exists'), original('multi')];

/** Replaces a method of the client. */
function spy(name: Method, method: unknown): void {
  vi.spyOn(ClientView.prototype, name).mockImplementation(method as never);
}

describe('sites', () => {
  it('C1-34: get the same outcome in many transactions, whichever process is killed, cut off or expired, and whichever reply is lost', async () => {
    const tally = new Tally();
    await overSeeds(20, (seed) => run(seed, tally));
    expect(tally.commit + tally.abort).toBeGreaterThan(breadth(20, 200));
    expectHappened(tally, 0);
  });

  const canaries: Record<string, Canary> = {
    'writes its vote over another': {
      plant: () =>
        spy('setData', function (this: ClientView, path: string, data: Data, options?: SetDataOptions) {
          return setData.call(this, path, data, { ...options, version: -1 });
        }),
      finds: /and others/,
    },
    'counts a dead site as an abort, without a vote in its place': {
      plant: () =>
        spy('setData', async function (this: ClientView, path: string, data: Data, options?: SetDataOptions) {
          if (data !== 'abort' || options?.version !== 0) return setData.call(this, path, data, options);
          return (await exists.call(this, path))!;
        }),
      finds: /and others|no outcome received/,
    },
    'leaves without writing the decision': {
      plant: () =>
        spy('multi', function (this: ClientView, ops: readonly WriteOp[], options?: CallOptions) {
          return multi.call(
            this,
            ops.filter((each) => !(each.op === 'create' && each.path.endsWith('/decision'))),
            options,
          );
        }),
      finds: /and others|is gone before|no outcome received|left behind/,
    },
    'counts only the votes of the sites that still exist': {
      plant: () =>
        spy('getChildren', async function (this: ClientView, path: string, options?: ReadOptions) {
          const result = await getChildren.call(this, path, options);
          const isListing = /tx-\d+$/.test(path) && options?.watch === undefined && result.children.includes('decision');
          const left = result.children.filter((name) => name !== 'decision');
          return isListing && left.some((name) => /berlin|paris|rome/.test(name)) ? { ...result, children: left } : result;
        }),
      finds: /and others|has not voted/,
    },
    'reads votes without a watch': {
      plant: () =>
        spy('getData', function (this: ClientView, path: string, options?: ReadOptions) {
          return getData.call(this, path, { ...options, watch: undefined });
        }),
      finds: /no outcome received/,
    },
  };

  itFindsOut(canaries, (seed) => run(seed, new Tally()), { enough: 2, atMost: 40, quick: 'leaves without writing the decision' });
});
