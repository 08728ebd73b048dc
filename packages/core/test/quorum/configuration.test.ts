/**
 * The configuration of a server: what is active, what may become active next, and which quorums
 * count meanwhile.
 */
import { ErrorCode, formatQuorumConfig, OpCode, parseQuorumConfig, type QuorumConfig, type ReconfigRequest } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { canLeadOn, Configuration, type ConfigurationOptions } from '../../src/quorum/configuration.ts';
import { Replica, replicaOptions } from '../../src/request/replica.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { testOptions } from '../support/script.ts';
import { treeOptions } from '../tree/tree-and-model.ts';

const line = (sid: number, role = 'participant') => `server.${sid}=h${sid}:2888:3888:${role};0.0.0.0:2181`;
const text = (version: string, ...lines: readonly string[]) => [...lines, `version=${version}`].join('\n');
const three = [line(1), line(2), line(3)];
const four = [...three, line(4)];

function started(version = '0', options: Partial<ConfigurationOptions> = {}): Configuration {
  return new Configuration({ sid: 1, active: parseQuorumConfig(text(version, ...three)), reconfigEnabled: true, ...options });
}

function reconfig(replica: Replica, zxid: number, config: string): void {
  const header = { clientHigh: 0, clientLow: 1, cxid: 0, zxid, time: 0, type: OpCode.reconfig };
  replica.apply(header, { kind: 'setData', path: '/zookeeper/config', data: Buffer.from(config), version: -1 }, undefined);
}

const counts = (configuration: Configuration, ...sids: readonly number[]) => configuration.verifier.containsQuorum(new Set(sids));

describe('the first leader', () => {
  it('gives a configuration without a version the one of its epoch, once', () => {
    const configuration = started();
    const proposed = configuration.newLeaderConfig(3);
    expect(proposed).toBe(text('300000000', ...three));
    // It is active when a quorum has acknowledged it, and not before.
    expect(configuration.version).toBe(0);
    expect(configuration.maybeActivate(proposed)).toBe(true);
    expect([configuration.text, configuration.version]).toEqual([proposed, 0x3_0000_0000]);
    expect(configuration.newLeaderConfig(4)).toBe(proposed);
  });

  it('gives it none if reconfiguration is off', () => {
    const configuration = started('0', { reconfigEnabled: false });
    expect(configuration.newLeaderConfig(3)).toBe(text('0', ...three));
    expect(configuration.maybeActivate(text('300000000', ...three))).toBe(false);
    expect(configuration.version).toBe(0);
  });
});

describe('P32: quorums during a reconfiguration', () => {
  it('are those of both configurations from the proposal on, and those of the new one after its commit', () => {
    const configuration = started();
    const next = text('100000004', line(3), line(4), line(5));
    expect([counts(configuration, 1, 2), counts(configuration, 4, 5)]).toEqual([true, false]);
    expect(configuration.maybeSee(next)).toBe(true);
    expect([counts(configuration, 1, 2), counts(configuration, 3, 4), counts(configuration, 2, 3, 4)]).toEqual([false, false, true]);
    expect(configuration.verifier.voters).toEqual([1, 2, 3, 4, 5]);
    // The text that others are sent is still that of the committed configuration.
    expect([configuration.text, configuration.newLeaderConfig(2)]).toEqual([text('0', ...three), next]);
    expect(configuration.maybeActivate(next)).toBe(true);
    expect([counts(configuration, 1, 2, 3), counts(configuration, 3, 4)]).toEqual([false, true]);
    expect([configuration.lastSeen, configuration.ownRole, configuration.canVote]).toEqual([undefined, 'participant', false]);
  });

  it('do not count what voters have reported once a leader has taken this server in', () => {
    const observed = text('100000000', line(1), line(2), line(3, 'observer'));
    const active = parseQuorumConfig(observed);
    const configuration = new Configuration({ sid: 3, active, reconfigEnabled: true });
    const pending = text('100000007', line(1), line(2), line(3));
    expect([configuration.maybeNotePending(1, pending), configuration.ownRole]).toEqual([true, 'participant']);
    // The leader does not have it: it was taken back.
    expect([configuration.maybeActivate(observed), configuration.ownRole, configuration.canVote]).toEqual([false, 'observer', false]);
    expect(configuration.verifier.voters).toEqual([1, 2]);
  });

  it('do not change with an earlier configuration, an equal one, a malformed one, or one without voters', () => {
    const configuration = started('300000000');
    const others = [text('0', ...four), text('200000005', ...four), text('300000000', ...four), 'server.1=nonsense\nversion=900000000', ''];
    for (const other of [...others, text('900000000', line(1, 'observer'))]) {
      expect([configuration.maybeSee(other), configuration.maybeActivate(other)]).toEqual([false, false]);
    }
    expect(configuration.version).toBe(0x3_0000_0000);
  });

  it('are those of the active one again when a TRUNC takes back what was proposed', () => {
    const configuration = started();
    const tree = new DataTree(treeOptions);
    configuration.storeIn(tree);
    configuration.maybeSee(text('100000004', ...four));
    expect(configuration.readFrom(tree)).toBe(true);
    expect([configuration.lastSeen, counts(configuration, 1, 2)]).toEqual([undefined, true]);
    expect(configuration.readFrom(tree)).toBe(false);
  });
});

describe('a restart', () => {
  it('counts by the configuration in the log as well, which may not be committed', () => {
    const tree = new DataTree(treeOptions);
    tree.setConfig(text('100000004', ...four), 0x1_0000_0004);
    const configuration = started();
    configuration.readFrom(tree);
    configuration.storeIn(tree);
    expect(formatQuorumConfig(configuration.lastSeen!)).toBe(text('100000004', ...four));
    expect([configuration.version, counts(configuration, 1, 2), counts(configuration, 1, 2, 3)]).toEqual([0, false, true]);
    expect(tree.dataOf(tree.find('/zookeeper/config'))?.toString()).toBe(text('100000004', ...four));
  });

  it('uses the configuration that the last one in the log has replaced, if the files are older: that was committed', () => {
    const replica = new Replica(replicaOptions(testOptions, { uint32: () => 1 }));
    const moved = text('100000004', line(4), line(5), line(6));
    const back = text('200000002', ...three, line(4));
    reconfig(replica, 0x1_0000_0004, moved);
    reconfig(replica, 0x2_0000_0002, back);
    const configuration = started();
    expect([configuration.mustKeepLogWith(replica.tree), configuration.readFrom(replica.tree)]).toEqual([true, true]);
    expect([configuration.text, configuration.pendingText]).toEqual([moved, back]);
    // Not one, two and three alone, which are a quorum of the files and of the last one.
    expect([counts(configuration, 1, 2, 3), counts(configuration, 1, 2, 3, 4, 5)]).toEqual([false, true]);
    expect(configuration.readFrom(replica.tree)).toBe(false);
    const newer = started('200000002');
    expect([newer.readFrom(replica.tree), newer.version]).toEqual([false, 0x2_0000_0002]);
  });

  it('asks the servers in older files, too, until a later configuration is active: an operator may have written where they are', () => {
    const replica = new Replica(replicaOptions(testOptions, { uint32: () => 1 }));
    reconfig(replica, 0x1_0000_0004, text('100000004', line(1), line(4), line(5)));
    reconfig(replica, 0x2_0000_0002, text('200000002', line(4), line(5)));
    const written = parseQuorumConfig(text('0', line(1), line(4).replace('2888', '5000'), line(7)));
    const present = parseQuorumConfig(text('300000005', line(4).replace('2888', '5000'), line(7)));
    const configuration = started('0', { active: written });
    configuration.readFrom(replica.tree);
    expect([configuration.overrulesFiles, configuration.announcedVoters]).toEqual([true, [1, 4, 7]]);
    expect(configuration.others).toContainEqual(written);
    // The operator knows server 7.
    for (const sid of [7, 4]) configuration.maybeNoteAnnouncement(sid, present);
    expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([true, 0x3_0000_0005]);
    expect([configuration.overrulesFiles, configuration.announcedVoters, configuration.others]).toEqual([false, [], []]);
  });

  it('does not take for replaced what a snapshot had before the log was applied to it', () => {
    const tree = new DataTree(treeOptions);
    tree.setConfig(text('100000004', ...four), 0x1_0000_0004);
    tree.noteReconfig();
    tree.setConfig(text('100000004', ...four), 0x1_0000_0004);
    const configuration = started();
    configuration.readFrom(tree);
    expect([configuration.version, configuration.lastSeen?.version]).toEqual([0, 0x1_0000_0004]);
  });

  it('does so with the file that an earlier process has left, too', () => {
    const configuration = started('0', { lastSeen: parseQuorumConfig(text('100000004', ...four)) });
    expect([counts(configuration, 1, 2), counts(configuration, 1, 2, 3)]).toEqual([false, true]);
  });

  it('ignores the log if reconfiguration is off, and shows its own configuration', () => {
    const tree = new DataTree(treeOptions);
    tree.setConfig(text('100000004', ...four), 0x1_0000_0004);
    const configuration = started('0', { reconfigEnabled: false });
    expect(configuration.readFrom(tree)).toBe(false);
    configuration.storeIn(tree);
    expect(tree.dataOf(tree.find('/zookeeper/config'))?.toString()).toBe(text('0', ...three));
  });
});

describe('a configuration that others have announced', () => {
  const later = parseQuorumConfig(text('100000004', line(3), line(4), line(5)));

  it('is active once a quorum of it has announced it', () => {
    const configuration = started();
    configuration.maybeNoteAnnouncement(3, later);
    expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([false, 0]);
    configuration.maybeNoteAnnouncement(5, later);
    expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([true, 0x1_0000_0004]);
    expect(configuration.maybeActivateAnnounced()).toBe(false);
  });

  it('is active at once if this server and a known one are a quorum of it: one of two voters, or the only one, may have missed it', () => {
    for (const servers of [[line(1), line(2).replace('2888', '5000')], [line(1)]]) {
      const moved = parseQuorumConfig(text('100000004', ...servers));
      const configuration = started();
      configuration.maybeNoteAnnouncement(7, moved);
      expect(configuration.maybeActivateAnnounced()).toBe(false);
      configuration.maybeNoteAnnouncement(2, moved);
      expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([true, 0x1_0000_0004]);
    }
  });

  it('is active at once if this server has it in its log', () => {
    const configuration = started();
    configuration.maybeSee(formatQuorumConfig(later));
    configuration.maybeNoteAnnouncement(4, later);
    expect([configuration.maybeActivateAnnounced(), configuration.lastSeen]).toEqual([true, undefined]);
  });

  it('is active at once if a known server announces it and only its version is another', () => {
    // As after a restart with the operator's file: this server may have the latest history, and then
    // no other can lead, and none follows a leader with an earlier version.
    const configuration = started();
    configuration.maybeNoteAnnouncement(7, parseQuorumConfig(text('100000000', ...three)));
    expect(configuration.maybeActivateAnnounced()).toBe(false);
    configuration.maybeNoteAnnouncement(2, parseQuorumConfig(text('100000000', ...three)));
    expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([true, 0x1_0000_0000]);
  });

  it('is active if one server has kept it, and the others of a quorum have a later one in their logs', () => {
    const between = parseQuorumConfig(text('100000004', line(1), line(2), line(3), line(4), line(5)));
    const pending = text('200000004', line(1), line(2), line(4));
    const configuration = started();
    configuration.maybeSee(pending);
    configuration.maybeNoteAnnouncement(2, between);
    // Strangers do not count, nor does one that has an earlier configuration in its log.
    for (const sid of [5, 7]) configuration.maybeNotePending(sid, pending);
    configuration.maybeNotePending(3, text('100000002', line(1), line(2)));
    expect(configuration.maybeActivateAnnounced()).toBe(false);
    configuration.maybeNotePending(3, pending);
    expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([true, 0x1_0000_0004]);
    expect(configuration.pendingText).toBe(pending);
  });

  it('is not active if the other servers have none in their logs any more', () => {
    const between = parseQuorumConfig(text('100000004', line(1), line(2), line(3), line(4), line(5)));
    const configuration = started();
    configuration.maybeNotePending(3, text('200000004', line(1), line(2), line(4)));
    configuration.maybeNotePending(3, undefined);
    configuration.maybeNoteAnnouncement(2, between);
    expect(configuration.maybeActivateAnnounced()).toBe(false);
  });

  it('is ignored while no server announces it that this one knows: strangers can make a quorum of themselves', () => {
    const configuration = started();
    const strange = parseQuorumConfig(text('900000000', line(7), line(8)));
    for (const sid of [7, 8]) configuration.maybeNoteAnnouncement(sid, strange);
    expect(configuration.maybeActivateAnnounced()).toBe(false);
    // A server that was removed, or that cannot vote there, is enough: all others are asked.
    configuration.maybeNoteAnnouncement(2, strange);
    expect(configuration.maybeActivateAnnounced()).toBe(true);
  });

  it('is ignored if servers announce it that do not vote in it, or that announce different ones', () => {
    const configuration = started();
    for (const sid of [1, 3, 6, 7]) configuration.maybeNoteAnnouncement(sid, later);
    configuration.maybeNoteAnnouncement(4, parseQuorumConfig(text('100000004', line(3), line(4), line(6))));
    expect(configuration.maybeActivateAnnounced()).toBe(false);
  });

  it('is active once a quorum of the active one without this server has announced it, also where they no longer vote', () => {
    // Two of its five voters missed the change, and two are down: the last one that votes in both is not enough.
    const moved = parseQuorumConfig(text('100000004', line(1), line(3), line(5), line(6), line(7)));
    const configuration = started();
    configuration.maybeNoteAnnouncement(2, moved);
    expect(configuration.maybeActivateAnnounced()).toBe(false);
    configuration.maybeNoteAnnouncement(3, moved);
    expect([configuration.maybeActivateAnnounced(), configuration.version]).toEqual([true, 0x1_0000_0004]);
  });

  it('is active with an oracle once one of its two voters has announced it: the other may be down', () => {
    const two = parseQuorumConfig(text('100000003', line(2), line(3)));
    const activated = (hasOracle: boolean, from: number, announced = two) => {
      const configuration = started('0', { hasOracle });
      configuration.maybeNoteAnnouncement(from, announced);
      return configuration.maybeActivateAnnounced();
    };
    expect([activated(true, 2), activated(false, 2), activated(true, 1), activated(true, 7)]).toEqual([true, false, false, false]);
    expect(activated(true, 3, parseQuorumConfig(text('100000003', ...three.slice(1), line(4), line(5))))).toBe(false);
    expect(activated(true, 6, parseQuorumConfig(text('100000003', line(6), line(7))))).toBe(false);
  });

  it('is found among any number of others', () => {
    const configuration = started();
    for (let sid = 10; sid < 2000; sid++)
      configuration.maybeNoteAnnouncement(sid, parseQuorumConfig(text('100000004', line(sid), line(sid + 1), line(sid + 2))));
    configuration.maybeNoteAnnouncement(3, later);
    configuration.maybeNoteAnnouncement(4, later);
    expect(configuration.maybeActivateAnnounced()).toBe(true);
  });
});

describe('a request to reconfigure', () => {
  const request: ReconfigRequest = { joiningServers: null, leavingServers: null, newMembers: null, curConfigId: -1 };
  const always = () => true;
  const prepare = (configuration: Configuration, change: Partial<ReconfigRequest>, hasQuorum = always) => {
    const next = configuration.prepareReconfig({ ...request, ...change }, 0x1_0000_0009, hasQuorum);
    return typeof next === 'number' ? next : formatQuorumConfig(next);
  };

  it.each<[string, Partial<ReconfigRequest>, readonly string[]]>([
    ['adds a server', { joiningServers: 'server.4=h4:2888:3888;2181' }, four],
    ['removes one', { leavingServers: '3' }, [line(1), line(2)]],
    [
      'replaces one by another in one step',
      { leavingServers: ' 3 ,', joiningServers: 'server.4=h4:2888:3888;2181' },
      [line(1), line(2), line(4)],
    ],
    ['gives a server another role', { joiningServers: 'server.3=h3:2888:3888:observer;2181' }, [line(1), line(2), line(3, 'observer')]],
    ['gives a server another address', { joiningServers: 'server.3=h9:2888:3888;2181' }, [line(1), line(2), line(3).replace('h3', 'h9')]],
    ['ignores the number of a server that is not there', { leavingServers: '9' }, three],
    ['gives the whole configuration, by lines or commas', { newMembers: `${line(2)},${line(5)}\nversion=7` }, [line(2), line(5)]],
    ['compares the version', { leavingServers: '3', curConfigId: 0 }, [line(1), line(2)]],
  ])('A58: %s', (_what, change, lines) => {
    expect(prepare(started(), change)).toBe(text('100000009', ...lines));
  });

  it.each<[string, Partial<ReconfigRequest>, ErrorCode]>([
    ['a version that is not the present one', { leavingServers: '3', curConfigId: 7 }, ErrorCode.BadVersion],
    ['fewer than two voters', { leavingServers: '2,3' }, ErrorCode.BadArguments],
    ['no voter', { newMembers: line(1, 'observer') }, ErrorCode.BadArguments],
    ['a server that joins twice', { joiningServers: 'server.4=h4:1:2;3,server.4=h5:1:2;3' }, ErrorCode.BadArguments],
    ['two lines for one server', { newMembers: `${line(1)},${line(2)},${line(2)}` }, ErrorCode.BadArguments],
    ['a joiner without a client port', { joiningServers: 'server.4=h4:2888:3888' }, ErrorCode.BadArguments],
    ['a joiner without an address', { joiningServers: 'server.4' }, ErrorCode.BadArguments],
    ['a joiner without a number', { joiningServers: 'server.x=h4:1:2;3' }, ErrorCode.BadArguments],
    ['an address that another server has', { joiningServers: 'server.4=h3:3888:4888;2181' }, ErrorCode.BadArguments],
    ['a server to leave without a number', { leavingServers: 'three' }, ErrorCode.BadArguments],
    ['an unknown key', { newMembers: `${line(1)},${line(2)},clientPort=1` }, ErrorCode.BadArguments],
    ['a voter without a group', { newMembers: `${line(1)},${line(2)},group.1=1` }, ErrorCode.BadArguments],
    ['several addresses of a server', { joiningServers: 'server.4=h4:1:2|h5:1:2;3' }, ErrorCode.BadArguments],
    ['voters of weight 0 only', { newMembers: `${line(1)},${line(2)},group.1=1:2,weight.1=0,weight.2=0` }, ErrorCode.BadArguments],
  ])('A58: is refused for %s', (_what, change, code) => {
    const configuration = started();
    expect(prepare(configuration, change)).toBe(code);
    expect([configuration.text, configuration.lastSeen]).toEqual([text('0', ...three), undefined]);
  });

  it('A58: is refused while another is pending, and without a quorum of the new configuration', () => {
    const configuration = started();
    expect(prepare(configuration, { leavingServers: '3' }, () => false)).toBe(ErrorCode.NewConfigNoQuorum);
    configuration.maybeSee(text('100000004', ...four));
    expect(prepare(configuration, { leavingServers: '3' })).toBe(ErrorCode.ReconfigInProgress);
  });

  it('A58: must give the whole configuration if there are groups', () => {
    const active = parseQuorumConfig(text('0', ...three, 'group.1=1:2:3'));
    const configuration = started('0', { active });
    expect(prepare(configuration, { leavingServers: '3' })).toBe(ErrorCode.BadArguments);
    expect(prepare(configuration, { newMembers: `${line(1)},${line(2)},group.1=1:2` })).toMatch(/^weight\.2=1$/m);
  });

  it('A59: may leave one voter with standaloneEnabled=false', () => {
    expect(prepare(started('0', { standaloneEnabled: false }), { leavingServers: '2,3' })).toBe(text('100000009', line(1)));
  });
});

describe('a leader', () => {
  const config = (...lines: readonly string[]): QuorumConfig => parseQuorumConfig(text('0', ...lines));

  it.each<[string, readonly string[], readonly string[], boolean]>([
    ['it stays a voter', three, [...three, line(4)], true],
    ['only its client port changes', three, [line(1).replace('2181', '2182'), line(2), line(3)], true],
    ['it was not a member before', [line(2), line(3)], three, true],
    ['it is removed', three, [line(2), line(3)], false],
    ['it becomes an observer', three, [line(1, 'observer'), line(2), line(3)], false],
    ['its quorum port changes', three, [line(1).replace('2888', '2889'), line(2), line(3)], false],
  ])('goes on if %s: %#', (_when, before, after, goesOn) => {
    expect(canLeadOn(1, config(...before), config(...after))).toBe(goesOn);
  });
});

describe('the oracle of a configuration', () => {
  const two = parseQuorumConfig(text('0', line(1), line(2)));

  it('does not exist if a majority decides', () => {
    const configuration = started();
    const lost = [configuration.setFollowers(new Set([2])), configuration.setFollowers(new Set())];
    expect([configuration.oracleAnswered(true), ...lost]).toEqual([false, false, false]);
  });

  it('is asked again when the follower is lost, and allows nothing before its answer', () => {
    const configuration = started('0', { active: two, hasOracle: true });
    const may = () => counts(configuration, 1);
    expect([configuration.oracleAnswered(true), may()]).toEqual([true, true]);
    expect([configuration.setFollowers(new Set([2])), may()]).toEqual([false, false]);
    expect([configuration.setFollowers(new Set()), may()]).toEqual([true, false]);
  });

  it('keeps its answer when the configuration gets another version', () => {
    const configuration = started('0', { active: two, hasOracle: true });
    configuration.oracleAnswered(true);
    configuration.maybeActivate(text('100000000', line(1), line(2)));
    expect(counts(configuration, 1)).toBe(true);
    configuration.setFollowers(new Set([2]));
    configuration.setFollowers(new Set());
    configuration.maybeActivate(text('100000001', line(1), line(2)));
    expect(counts(configuration, 1)).toBe(false);
  });

  it('is asked although a voter follows that is not one of the two', () => {
    const configuration = started('0', { active: two, hasOracle: true });
    configuration.oracleAnswered(true);
    configuration.setFollowers(new Set([3]));
    configuration.maybeSee(text('100000004', ...three));
    expect([counts(configuration, 1), counts(configuration, 1, 3), counts(configuration, 2, 3)]).toEqual([false, true, false]);
    configuration.setFollowers(new Set([2, 3]));
    expect([counts(configuration, 1, 3), configuration.setFollowers(new Set([3])), counts(configuration, 1, 3)]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('gives a leader no quorum of two voters of which it is none', () => {
    const configuration = started('0', { active: parseQuorumConfig(text('0', ...three)), hasOracle: true });
    configuration.oracleAnswered(true);
    configuration.maybeSee(text('100000004', line(2), line(3)));
    expect([counts(configuration, 1, 2), counts(configuration, 1, 2, 3)]).toEqual([false, true]);
  });

  it('has no say after a third voter has been added', () => {
    const configuration = started('0', { active: two, hasOracle: true });
    configuration.maybeActivate(text('100000004', ...three));
    configuration.oracleAnswered(true);
    expect([counts(configuration, 1), counts(configuration, 1, 3)]).toEqual([false, true]);
  });
});
