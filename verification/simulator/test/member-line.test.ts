/** The lines that reconfigurations of a run consist of: the servers read them as they are meant. */
import { formatQuorumConfig, parseQuorumConfig } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { clientAddressIn, lineOf, type Member, membersIn } from '../src/clients/member-line.ts';

const booleans = [false, true];
const members: readonly Member[] = (['none', 'dead first', 'dead last', 'live'] as const).flatMap((second) =>
  booleans.flatMap((isMoved) =>
    booleans.flatMap((isClientHostNamed) =>
      booleans.map((isObserver, at): Member => ({
        sid: 3,
        role: isObserver ? 'observer' : 'participant',
        isMoved,
        // Of two live addresses the one with the plain name is the server's own.
        isRenamed: second !== 'live' && at === 0,
        second,
        clientPort: isMoved ? 2181 : 2182,
        isClientHostNamed,
      })),
    ),
  ),
);

describe('the line of a server', () => {
  it('is read from a configuration as it was written', () => {
    for (const member of members) expect(membersIn(formatQuorumConfig(parseQuorumConfig(lineOf(member))))).toEqual([member]);
  });

  it('says where the server listens for clients', () => {
    const [member] = members;
    expect(clientAddressIn(`${lineOf(member!)}\nversion=1`, 3)).toEqual({ host: '0.0.0.0', port: 2182 });
    expect(clientAddressIn('server.3=server-3:2888:3888:participant\nversion=0', 3)).toBeUndefined();
    expect(membersIn('server.3=server-3:2888:3888:participant')).toMatchObject([{ clientPort: 2181, second: 'none' }]);
  });
});
