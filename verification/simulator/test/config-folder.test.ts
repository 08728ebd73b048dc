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

  it('is not written where a pending change adds it', () => {
    const world = new VirtualWorld(1, { servers: 3, ensemble: {} });
    const options = world.servers[2]!.ensembleOptions!;
    const disk = new VirtualDisk();
    const text = (version: number, ...sids: Sid[]) =>
      formatQuorumConfig({ ...options.quorum, version, servers: new Map(sids.map((sid) => [sid, options.quorum.servers.get(sid)!])) });
    disk.putFile('/conf/zoo.cfg', Buffer.from('dynamicConfigFile=/conf/zoo.cfg.dynamic.100000001\n'));
    disk.putFile('/conf/zoo.cfg.dynamic.100000001', Buffer.from(text(0x1_0000_0001, 1, 2)));
    disk.putFile('/conf/zoo.cfg.dynamic.next', Buffer.from(text(0x1_0000_0005, 1, 2, 3)));
    const { quorum, lastSeen } = withStoredConfig(options, false, disk);
    expect([[...quorum.servers.keys()], lastSeen?.version]).toEqual([[1, 2], 0x1_0000_0005]);
    disk.eraseFile('/conf/zoo.cfg.dynamic.next');
    expect([...withStoredConfig(options, false, disk).quorum.servers.keys()]).toEqual([1, 2, 3]);
  });

  it('makes it an observer where an oracle could let it lead alone', () => {
    expect(roleOfServer3([1], true)).toBe('observer');
  });
});
