import { describe, expect, it } from 'vitest';
import { NameResolver } from '../src/name-resolver.ts';

/** Look-ups that the test completes. */
function controlled() {
  const asked: { host: string; answer: (addresses: string[]) => void; fail: (code: string) => void }[] = [];
  const lookup = (host: string) =>
    new Promise<string[]>((resolve, reject) => {
      asked.push({ host, answer: resolve, fail: (code) => reject(Object.assign(new Error(code), { code })) });
    });
  return { asked, lookup };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('NameResolver', () => {
  it('answers numeric addresses without a look-up', async () => {
    const { asked, lookup } = controlled();
    const resolver = new NameResolver(lookup);
    expect(await resolver.resolve('10.0.0.1')).toEqual(['10.0.0.1']);
    expect(await resolver.resolve('::1')).toEqual(['::1']);
    expect(asked).toEqual([]);
  });

  it('looks up one name at a time, and a name once for all waiting callers', async () => {
    const { asked, lookup } = controlled();
    const resolver = new NameResolver(lookup);
    const answers = Promise.all([resolver.resolve('a'), resolver.resolve('b'), resolver.resolve('a')]);
    await turn();
    expect(asked.map(({ host }) => host)).toEqual(['a']);
    asked[0]!.answer(['1.1.1.1']);
    await turn();
    expect(asked.map(({ host }) => host)).toEqual(['a', 'b']);
    asked[1]!.answer(['2.2.2.2']);
    expect(await answers).toEqual([['1.1.1.1'], ['2.2.2.2'], ['1.1.1.1']]);
  });

  it('D15, E11: looks up anew each time, and returns the earlier addresses when that fails', async () => {
    const { asked, lookup } = controlled();
    const resolver = new NameResolver(lookup, 60_000);
    const answers = ['1.1.1.1', undefined, '2.2.2.2'].map(async (address, index) => {
      for (let turns = 0; turns < index * 10; turns++) await turn();
      const answer = resolver.resolve('a');
      await turn();
      if (address === undefined) asked[index]!.fail('EAI_AGAIN');
      else asked[index]!.answer([address]);
      return await answer;
    });
    expect(await Promise.all(answers)).toEqual([['1.1.1.1'], ['1.1.1.1'], ['2.2.2.2']]);
  });

  it('returns the earlier addresses while a look-up takes long, and uses its result later', async () => {
    const { asked, lookup } = controlled();
    const resolver = new NameResolver(lookup, 1);
    const first = resolver.resolve('a');
    await turn();
    asked[0]!.answer(['1.1.1.1']);
    await first;
    expect(await resolver.resolve('a')).toEqual(['1.1.1.1']);
    asked[1]!.answer(['2.2.2.2']);
    await turn();
    expect(await resolver.resolve('a')).toEqual(['2.2.2.2']);
    asked[2]!.answer([]);
  });

  it('names the host that cannot be resolved', async () => {
    const { asked, lookup } = controlled();
    const answer = new NameResolver(lookup).resolve('nowhere.test');
    await turn();
    asked[0]!.fail('ENOTFOUND');
    await expect(answer).rejects.toThrow(
      'the name nowhere.test cannot be resolved (ENOTFOUND). Check its spelling, /etc/hosts and the name servers.',
    );
  });
});
