import { formatQuorumConfig, type QuorumServer, type Sid } from '@tskeeper/protocol';
import { VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { withStoredConfig, writeOperatorConfig } from '../src/world/config-folder.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

describe('the line of a server that was removed', () => {
  /** What server 3 starts with whose last configuration has the servers `others`. */
  function roleOfServer3(others: readonly Sid[], hasOracle: boolean): string {
    const world = new VirtualWorld(1, { servers: 3, ensemble: {} });
    const quorum = world.servers[2]!.ensembleOptions!.quorum;
    const disk = new VirtualDisk();
    const servers = new Map(others.map((sid): [Sid, QuorumServer] => [sid, quorum.servers.get(sid)!]));
    writeOperatorConfig(disk, { ...quorum, servers });
    const options = withStoredConfig(world.servers[2]!.ensembleOptions!, hasOracle, disk);
    expect([...options.quorum.servers.keys()], formatQuorumConfig(options.quorum)).toEqual([...others, 3]);
    return options.quorum.servers.get(3)!.role;
  }

  it('makes it a voter', () => {
    expect(roleOfServer3([1], false)).toBe('participant');
    expect(roleOfServer3([1, 2], true)).toBe('participant');
  });

  it('makes it an observer where an oracle could let it lead alone', () => {
    expect(roleOfServer3([1], true)).toBe('observer');
  });
});
