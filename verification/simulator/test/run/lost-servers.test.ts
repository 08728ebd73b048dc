import { describe, expect, test } from 'vitest';
import { configsForLost, outdatedServers } from '../../src/run/lost-servers.ts';

function server(sid: number, ...knownConfigTexts: string[]) {
  return { name: `server-${sid}`, sid, knownConfigTexts };
}

const first = 'server.1=server-1:2888:3888:participant\nserver.2=server-2:2888:3888:participant\nversion=1';
const moved = 'server.1=server-1:2889:3889:participant\nserver.2=server-2:2889:3889:participant\nversion=2';

describe('a server that knows only addresses that all voters have left', () => {
  test('needs the present configuration', () => {
    const one = server(1, moved);
    const two = server(2, moved);
    const three = server(3, first);
    const all = [one, two, three];
    expect(configsForLost(all, all)).toEqual(new Map([[three, moved]]));
    expect(configsForLost([one, two], all).size).toBe(0);
  });

  test('also if the only one at such an address is about to leave it', () => {
    const one = server(1, moved);
    const two = server(2, 'server.2=server-2:2888:3888:participant\nserver.4=server-4:2888:3888:participant\nversion=0', moved);
    const three = server(3, 'server.2=server-2:2888:3888:participant\nserver.3=server-3:2888:3888:participant\nversion=1');
    expect(configsForLost([one, two, three], [one, two, three]).size).toBe(0);
    // It cannot reach the second.
    expect(configsForLost([one, three], [one, two, three]).get(three)).toBe(moved);
    const stale = server(2, 'server.2=server-2:2888:3888:participant\nserver.4=server-4:2888:3888:participant\nversion=0');
    expect(configsForLost([stale, three], [one, stale, three])).toEqual(
      new Map([
        [stale, moved],
        [three, moved],
      ]),
    );
  });

  test('does not need one if it votes alone, or has none', () => {
    const alone = server(1, 'server.1=server-1:2888:3888:participant\nversion=3');
    const without = server(2);
    expect(configsForLost([alone, without], [alone, without]).size).toBe(0);
    expect(configsForLost([without], [without]).size).toBe(0);
  });
});

describe('servers with older files than those of the present configuration', () => {
  const old = server(1, first);

  test('can learn it while a quorum has kept its files', () => {
    const three =
      'server.1=server-1:2888:3888:participant\nserver.2=server-2:2888:3888:participant\nserver.3=server-3:2888:3888:participant';
    const present = `${three}\nversion=5`;
    expect(outdatedServers([old, server(2, present), server(3, present)], present, undefined)).toEqual([]);
    const pending = server(2, first, present);
    expect(outdatedServers([old, pending, server(3, present)], present, undefined)).toEqual([old, pending]);
  });

  test('can learn it while a quorum of their own configuration has kept its files', () => {
    const voters = (...sids: number[]) => sids.map((sid) => `server.${sid}=server-${sid}:2888:3888:participant\n`).join('');
    const present = `${voters(1, 2, 4, 6, 7)}version=5`;
    const [one, seven] = [1, 7].map((sid) => server(sid, `${voters(2, 3, 4, 5, 6)}version=1`));
    const informed = [3, 4, 5].map((sid) => server(sid, present));
    expect(outdatedServers([one!, seven!, ...informed], present, undefined)).toEqual([]);
    expect(outdatedServers([one!, seven!, ...informed.slice(1)], present, undefined)).toEqual([one, seven]);
  });

  test('need an operator, also where they do not vote', () => {
    const present = 'server.2=server-2:2889:3889:participant\nversion=5';
    const two = server(2, first, present);
    expect(outdatedServers([old, two], present, undefined)).toEqual([old, two]);
    expect(outdatedServers([old, server(2, present)], present, undefined)).toEqual([]);
  });
});
