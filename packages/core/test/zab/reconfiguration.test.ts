/**
 * Ensembles whose membership changes while clients write: one server after the other, the leader
 * included, and at random moments amid crashes and cut links.
 */
import { ErrorCode, parseQuorumConfig, type Sid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { silentObserver } from '../../src/index.ts';
import { EnsembleClient } from './ensemble-client.ts';
import { Ensemble, type Node } from './ensemble.ts';

const line = (sid: Sid, role = 'participant', quorumPort = 2888) => `server.${sid}=h${sid}:${quorumPort}:3888:${role};0.0.0.0:2181`;

const seeds = Array.from({ length: breadth(12, 200) }, (_, at) => 1000 + at);

/** `voters` serve; the rest are up, and know them and themselves. */
function started(seed: number, servers: number, voters: readonly Sid[]): Ensemble {
  // One writer: learners of a small world read long logs more slowly than initLimit allows.
  const ensemble = new Ensemble(seed, servers, 0, 1);
  ensemble.reconfigEnabled = true;
  ensemble.throttle = { skipAcl: true };
  const lines = voters.map((sid) => line(sid));
  ensemble.configText = [...lines, 'version=0'].join('\n');
  for (const { sid } of ensemble.nodes)
    if (!voters.includes(sid)) ensemble.configTexts.set(sid, [...lines, line(sid), 'version=0'].join('\n'));
  for (const node of ensemble.nodes) node.start();
  expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
  return ensemble;
}

/** A reconfig through one server; its result. */
function reconfigure(ensemble: Ensemble, through: Node, lines: readonly string[], atMostMs = 3000): number | undefined {
  const admin = new EnsembleClient().connect(through);
  expect(ensemble.runUntil(() => admin.isAnswered, 2000)).toBe(true);
  const asked = admin.ask('reconfig', { joiningServers: null, leavingServers: null, newMembers: lines.join(','), curConfigId: -1 });
  ensemble.runUntil(() => asked.answer !== undefined || admin.isClosed, atMostMs);
  if (!admin.isClosed) admin.break();
  return asked.answer?.err;
}

const activeOf = ({ peer }: Node) => peer!.status().configText.split('\n').slice(0, -1);
const whole = (ensemble: Ensemble) => ensemble.runUntil(() => ensemble.isWhole, 10_000, 100);

/** Clients no longer write, and every server has applied everything. */
function settle(ensemble: Ensemble): void {
  ensemble.isQuiet = true;
  const last = () => new Set(ensemble.nodes.map(({ peer }) => peer!.replica.lastZxid));
  expect(
    ensemble.runUntil(
      () => ensemble.isWhole && last().size === 1 && ensemble.nodes.every(({ folder }) => folder.durable === folder.log.length),
      20_000,
      50,
    ),
    ensemble.describe(),
  ).toBe(true);
}

describe('A58: the membership', () => {
  it('grows from three servers to five and shrinks to three others while clients write, without its first leader', () => {
    const ensemble = started(11, 5, [1, 2, 3]);
    const first = ensemble.leader!;
    expect(
      reconfigure(
        ensemble,
        first,
        [1, 2, 3, 4, 5].map((sid) => line(sid)),
      ),
    ).toBe(ErrorCode.Ok);
    expect(ensemble.leader).toBe(first);
    expect(whole(ensemble)).toBe(true);
    expect(ensemble.nodes.map(activeOf)).toEqual(ensemble.nodes.map(() => [1, 2, 3, 4, 5].map((sid) => line(sid))));
    const remaining = ensemble.nodes.filter((node) => node !== first).slice(1);
    const lines = remaining.map(({ sid }) => line(sid));
    expect(reconfigure(ensemble, remaining[0]!, lines)).toBe(ErrorCode.Ok);
    expect(ensemble.runUntil(() => remaining.includes(ensemble.leader!), 5000)).toBe(true);
    expect(whole(ensemble)).toBe(true);
    expect(ensemble.nodes.map(activeOf)).toEqual(ensemble.nodes.map(() => lines));
    // The removed servers follow without a vote: the others need no more of each other.
    for (const node of ensemble.nodes) if (!remaining.includes(node)) node.crash();
    remaining[0]!.crash();
    expect(ensemble.runUntil(() => ensemble.leader !== undefined, 5000)).toBe(true);
    for (const node of ensemble.nodes) if (node.isDown) node.start();
    settle(ensemble);
    ensemble.compare();
  });

  it('hands the lead of a removed leader over without an election', () => {
    const ensemble = started(12, 3, [1, 2, 3]);
    const old = ensemble.leader!;
    const others = ensemble.nodes.filter((node) => node !== old);
    const elections = ensemble.notes.length;
    expect(
      reconfigure(
        ensemble,
        others[0]!,
        others.map(({ sid }) => line(sid)),
      ),
    ).toBe(ErrorCode.Ok);
    const beganMs = ensemble.nowMs;
    expect(ensemble.runUntil(() => others.includes(ensemble.leader!), 2000, 1)).toBe(true);
    // An election takes 200 ms at least unless all agree at once.
    expect(ensemble.nowMs - beganMs).toBeLessThan(100);
    expect(ensemble.notes.slice(elections).join('\n')).toMatch(/the leader resigned in favour of server \d/);
    expect(whole(ensemble)).toBe(true);
    settle(ensemble);
    ensemble.compare();
  });

  it('reads older files than its log, and leaves them as they are until others confirm a later configuration', () => {
    const ensemble = started(31, 4, [1, 2, 3]);
    const node = ensemble.nodes.find((each) => each.sid <= 3 && each !== ensemble.leader)!;
    const written = node.folder.config;
    for (const lines of [
      [1, 2, 3, 4],
      [1, 2, 3],
    ]) {
      const asked = lines.map((sid) => line(sid));
      expect(reconfigure(ensemble, ensemble.leader!, asked)).toBe(ErrorCode.Ok);
      expect(ensemble.runUntil(() => activeOf(node).length === asked.length, 2000)).toBe(true);
    }
    for (const each of ensemble.nodes) each.crash();
    node.folder.config = written;
    node.start();
    ensemble.run(500);
    expect([activeOf(node).length, node.folder.config]).toEqual([4, written]);
    for (const each of ensemble.nodes) if (each.isDown) each.start();
    expect(whole(ensemble)).toBe(true);
    expect([activeOf(node).length, node.folder.config!.servers.size]).toEqual([3, 3]);
    settle(ensemble);
    ensemble.compare();
  });

  it('makes a voter an observer and back, and the leader too', () => {
    const ensemble = started(13, 4, [1, 2, 3, 4]);
    const { leader } = ensemble;
    const follower = ensemble.nodes.find((node) => node !== leader)!;
    for (const demoted of [follower, leader!]) {
      const through = ensemble.nodes.find((node) => node !== demoted)!;
      const lines = ensemble.nodes.map(({ sid }) => line(sid, sid === demoted.sid ? 'observer' : 'participant'));
      expect(reconfigure(ensemble, through, lines)).toBe(ErrorCode.Ok);
      expect(ensemble.runUntil(() => ensemble.isWhole && demoted.peer!.status().state === 'observing', 5000)).toBe(true);
      // Its group's quorum needs it as a follower before it votes, as with a joiner.
      expect(
        reconfigure(
          ensemble,
          through,
          ensemble.nodes.map(({ sid }) => line(sid)),
        ),
      ).toBe(ErrorCode.Ok);
      expect(ensemble.runUntil(() => ensemble.isWhole && demoted.peer!.status().state !== 'observing', 5000)).toBe(true);
    }
    settle(ensemble);
    ensemble.compare();
  });

  it('keeps a follower that does not vote, as a server that joins, for longer than syncLimit', () => {
    const ensemble = started(14, 4, [1, 2, 3]);
    const leader = ensemble.leader!;
    ensemble.run(3000);
    expect([ensemble.leader, leader.peer!.status().leading]).toMatchObject([leader, { syncedFollowers: 3, syncedNonVotingFollowers: 1 }]);
    expect(ensemble.notes.filter((note) => /has not acknowledged/.test(note))).toEqual([]);
  });

  it('is learned at a restart from servers that were unknown before', () => {
    const ensemble = started(15, 7, [1, 2, 3, 4]);
    const asleep = ensemble.nodes[3]!;
    asleep.crash();
    expect(ensemble.runUntil(() => ensemble.leader !== undefined && ensemble.nodes[0]!.peer!.server !== undefined, 5000)).toBe(true);
    const sids = [1, 4, 5, 6, 7];
    expect(
      reconfigure(
        ensemble,
        ensemble.nodes[0]!,
        sids.map((sid) => line(sid)),
      ),
    ).toBe(ErrorCode.Ok);
    expect(ensemble.runUntil(() => ensemble.nodes.every(({ peer, isDown }) => isDown || peer!.server !== undefined), 5000)).toBe(true);
    ensemble.nodes[1]!.crash();
    ensemble.nodes[2]!.crash();
    asleep.start();
    expect(ensemble.runUntil(() => asleep.peer!.server !== undefined, 5000)).toBe(true);
    expect(activeOf(asleep)).toEqual(sids.map((sid) => line(sid)));
  });

  it('is forced on the servers that are left by a file of the next version', () => {
    const ensemble = started(17, 5, [1, 2, 3, 4, 5]);
    expect(
      reconfigure(
        ensemble,
        ensemble.leader!,
        [1, 2, 3, 4, 5].map((sid) => line(sid)),
      ),
    ).toBe(ErrorCode.Ok);
    expect(whole(ensemble)).toBe(true);
    ensemble.run(200);
    for (const node of ensemble.nodes) node.crash();
    const [first, second] = ensemble.nodes as [Node, Node];
    const version = first.folder.config!.version;
    // As without a file: the log has the configuration, and its quorum is gone.
    for (const node of [first, second]) node.start();
    ensemble.run(3000);
    expect(ensemble.leader).toBeUndefined();
    for (const node of [first, second]) {
      node.crash();
      node.folder.config = undefined;
      ensemble.configTexts.set(node.sid, [line(1), line(2), `version=${(version + 1).toString(16)}`].join('\n'));
      node.start();
    }
    expect(ensemble.runUntil(() => first.peer!.server !== undefined && second.peer!.server !== undefined, 5000)).toBe(true);
    expect(activeOf(first)).toEqual([line(1), line(2)]);
    expect(reconfigure(ensemble, first, [line(1), line(2, 'participant', 2999)])).toBe(ErrorCode.Ok);
  });

  it('is completed with the vote of an observer that votes under it only', () => {
    const ensemble = started(19, 3, [1, 2, 3]);
    const leader = ensemble.leader!;
    const [demoted, other] = ensemble.nodes.filter((node) => node !== leader) as [Node, Node];
    const admin = new EnsembleClient().connect(leader);
    expect(ensemble.runUntil(() => admin.isAnswered, 2000)).toBe(true);
    const ask = (lines: readonly string[]) =>
      admin.ask('reconfig', { joiningServers: null, leavingServers: null, newMembers: lines.join(','), curConfigId: -1 });
    const demotion = ask([line(leader.sid), line(other.sid), line(demoted.sid, 'observer')]);
    expect(ensemble.runUntil(() => demotion.answer !== undefined, 2000, 0.1)).toBe(true);
    // Its connection is still that of a follower, but it reconnects before it acknowledges.
    const promotion = ask([line(leader.sid), line(demoted.sid)]);
    ensemble.run(20);
    expect([demotion.answer?.err, promotion.answer]).toEqual([ErrorCode.Ok, undefined]);
    for (const node of [leader, other]) node.crash();
    ensemble.run(500);
    for (const node of [leader, other]) node.start();
    expect(whole(ensemble), ensemble.describe()).toBe(true);
    expect(ensemble.nodes.map(activeOf)).toEqual(ensemble.nodes.map(() => [line(leader.sid), line(demoted.sid)].sort()));
  });

  it('is followed by announcements only while a server looks for a leader: then one that is proposed stays so until its commit', () => {
    const ensemble = started(18, 3, [1, 2, 3]);
    const late = ensemble.nodes.find((node) => node !== ensemble.leader)!;
    const [leader, other] = [ensemble.leader!, ensemble.nodes.find((node) => node !== late && node !== ensemble.leader)!];
    const linesWith = (port: number) => [1, 2, 3].map((sid) => line(sid, 'participant', sid === other.sid ? port : 2888));
    expect(reconfigure(ensemble, leader, linesWith(2777))).toBe(ErrorCode.Ok);
    ensemble.isQuiet = true;
    ensemble.run(100);
    late.crash();
    ensemble.run(100);
    expect(ensemble.leader).toBe(leader);
    // The next reconfiguration, as it will be proposed: the session of its client takes a zxid too.
    const config = [...linesWith(2999), `version=${(leader.lastLogged + 2).toString(16)}`].join('\n');
    late.start();
    const vote = { leader: 9, zxid: 0, electionEpoch: 1, peerEpoch: 0, version: 2, state: 'looking' as const, config };
    late.turn((peer) => peer.notified(9, vote, late.now));
    expect(ensemble.runUntil(() => late.peer!.server !== undefined, 5000)).toBe(true);
    expect(ensemble.leader, ensemble.describe()).toBe(leader);
    const before = activeOf(late);
    const admin = new EnsembleClient().connect(leader);
    expect(ensemble.runUntil(() => admin.isAnswered, 2000)).toBe(true);
    for (const node of [late, other]) ensemble.muted.add(`${node.sid}>${leader.sid}`);
    admin.ask('reconfig', {
      joiningServers: null,
      leavingServers: null,
      newMembers: linesWith(2999).join(','),
      curConfigId: -1,
    });
    ensemble.run(40);
    expect(late.lastLogged).toBe(parseQuorumConfig(config).version);
    late.turn((peer) => peer.notified(9, { ...vote, config: 'version=0' }, late.now));
    expect(activeOf(late)).toEqual(before);
    ensemble.muted.clear();
    expect(ensemble.runUntil(() => ensemble.isWhole && activeOf(late).join() !== before.join(), 8000)).toBe(true);
  });

  it('ends an epoch that has begun, if a leader completes what an earlier one has proposed, and has to leave by it', () => {
    const ensemble = started(19, 3, [1, 2, 3]);
    const { leader: old } = ensemble;
    const [follower, next] = ensemble.nodes.filter((node) => node !== old) as [Node, Node];
    const begun: string[] = [];
    for (const node of [follower, next]) {
      node.crash();
      node.observer = { ...silentObserver, epochStarted: (epoch) => void begun.push(`${node.sid} in ${epoch}`) };
      node.start();
      expect(whole(ensemble)).toBe(true);
    }
    const admin = new EnsembleClient().connect(old!);
    expect(ensemble.runUntil(() => admin.isAnswered, 2000)).toBe(true);
    for (const node of [follower, next]) ensemble.muted.add(`${node.sid}>${old!.sid}`);
    const lines = [1, 2, 3].map((sid) => line(sid, 'participant', sid === next.sid ? 2777 : 2888));
    admin.ask('reconfig', { joiningServers: null, leavingServers: null, newMembers: lines.join(','), curConfigId: -1 });
    ensemble.run(40);
    old!.crash();
    ensemble.muted.clear();
    expect(ensemble.runUntil(() => [follower, next].every((node) => activeOf(node).join() === lines.join()), 5000)).toBe(true);
    expect(ensemble.runUntil(() => ensemble.leader === next, 5000)).toBe(true);
    const epoch = next.peer!.epoch!;
    expect(ensemble.runUntil(() => follower.peer!.epoch === epoch && follower.peer!.server !== undefined, 5000)).toBe(true);
    // A follower may have begun the first epoch, so its leader has begun it too before it resigned.
    expect(begun.filter((each) => each.startsWith(`${next.sid} `)).slice(-2)).toEqual([
      `${next.sid} in ${epoch - 1}`,
      `${next.sid} in ${epoch}`,
    ]);
  });

  /**
   * Server 2 leads and proposes a change, which server 1 does not receive; `ahead` receive a txn after
   * it, which server 2 loses again. Nothing is acknowledged.
   */
  function interrupted(ensemble: Ensemble, lines: readonly string[], ahead: readonly Sid[]): void {
    ensemble.isQuiet = true;
    ensemble.run(200);
    const leader = ensemble.nodes[1]!;
    expect(ensemble.leader, ensemble.describe()).toBe(leader);
    const admin = new EnsembleClient().connect(leader);
    expect(ensemble.runUntil(() => admin.isAnswered, 2000)).toBe(true);
    ensemble.run(50);
    for (const { sid } of ensemble.nodes) if (sid !== 2) ensemble.muted.add(`${sid}>2`);
    ensemble.muted.add('2>1');
    admin.ask('reconfig', { joiningServers: null, leavingServers: null, newMembers: lines.join(','), curConfigId: -1 });
    admin.ask('create', { path: '/after', data: Buffer.alloc(0), acl: [], flags: 0 });
    ensemble.run(40);
    const proposed = leader.lastLogged;
    for (const sid of ahead) expect(ensemble.nodes[sid - 1]!.lastLogged).toBe(proposed);
    expect(ensemble.nodes[0]!.lastLogged).toBe(proposed - 2);
    for (const node of ensemble.nodes) if (!node.isDown) node.crash();
    leader.folder.log.pop();
    leader.folder.durable = leader.folder.log.length;
    ensemble.muted.clear();
  }

  it('is completed by a server that may lead under it only, if no other has as much in its log', () => {
    const ensemble = new Ensemble(20, 3, 0, 1);
    ensemble.reconfigEnabled = true;
    ensemble.throttle = { skipAcl: true };
    const lines = [line(1), line(2), line(3)];
    const weights = (...each: readonly number[]) => ['group.1=1:2:3', ...each.map((weight, at) => `weight.${at + 1}=${weight}`)];
    ensemble.configText = [...lines, ...weights(1, 1, 0), 'version=0'].join('\n');
    for (const node of ensemble.nodes) node.start();
    expect(whole(ensemble)).toBe(true);
    interrupted(ensemble, [...lines, ...weights(0, 1, 1)], [3]);
    for (const node of ensemble.nodes) node.start();
    expect(whole(ensemble), ensemble.describe()).toBe(true);
    expect(ensemble.nodes.map(activeOf)).toEqual(ensemble.nodes.map(() => [...lines, ...weights(0, 1, 1)]));
  });

  it('is completed by a server that votes under it only, although a voter whose vote it needs has not received it', () => {
    const ensemble = started(21, 5, [1, 2, 3]);
    const lines = [1, 2, 3, 4, 5].map((sid) => line(sid));
    const up = ensemble.nodes.filter(({ sid }) => sid !== 3);
    const isUp = () => up.every(({ peer }) => peer?.server !== undefined);
    ensemble.nodes[2]!.crash();
    expect(ensemble.runUntil(() => ensemble.leader === up[1] && isUp(), 10_000)).toBe(true);
    interrupted(ensemble, lines, [4, 5]);
    for (const node of up) node.start();
    expect(ensemble.runUntil(isUp, 10_000), ensemble.describe()).toBe(true);
    expect(up.map(activeOf)).toEqual(up.map(() => lines));
  });

  it('is refused without a quorum of the new servers, and everything goes on', () => {
    const ensemble = started(16, 5, [1, 2, 3]);
    ensemble.nodes[3]!.crash();
    ensemble.nodes[4]!.crash();
    ensemble.run(2000);
    expect(
      reconfigure(
        ensemble,
        ensemble.leader!,
        [3, 4, 5].map((sid) => line(sid)),
      ),
    ).toBe(ErrorCode.NewConfigNoQuorum);
    expect(reconfigure(ensemble, ensemble.leader!, [line(1)])).toBe(ErrorCode.BadArguments);
    expect(ensemble.nodes.slice(0, 3).map(activeOf)).toEqual([1, 2, 3].map(() => [1, 2, 3].map((sid) => line(sid))));
  });
});

describe('P32: at random moments, amid crashes and cut links', () => {
  it.each(seeds.map((seed) => [seed]))('no acknowledged write is lost, and no two servers lead one epoch (seed %i)', (seed) => {
    const ensemble = started(seed, 5, [1, 2, 3]);
    const { dice } = ensemble;
    const admins: EnsembleClient[] = [];
    for (let step = 0; step < 25; step++) {
      const up = ensemble.nodes.filter(({ isDown }) => !isDown);
      const node = ensemble.nodes[dice.below(5)]!;
      switch (dice.below(8)) {
        case 0:
        case 1:
        case 2: {
          const through = up.find(({ peer }) => peer!.server !== undefined);
          if (through === undefined) break;
          const admin = new EnsembleClient().connect(through);
          admins.push(admin);
          ensemble.run(5 + dice.below(40));
          if (!admin.isAnswered || admin.isClosed) break;
          const sids = [1, 2, 3, 4, 5].filter(() => dice.below(3) > 0);
          const lines = sids.map((sid) => line(sid, dice.below(6) === 0 ? 'observer' : 'participant'));
          admin.ask('reconfig', { joiningServers: null, leavingServers: null, newMembers: lines.join(','), curConfigId: -1 });
          break;
        }
        case 3:
        case 4:
          if (node.isDown) node.start();
          else node.crash();
          break;
        case 5:
          ensemble.cut(node, ensemble.nodes[dice.below(5)]!);
          break;
        default:
          ensemble.healAll();
      }
      ensemble.run(dice.below(400));
    }
    ensemble.healAll();
    ensemble.isQuiet = true;
    for (const node of ensemble.nodes) if (node.isDown) node.start();
    expect(
      ensemble.runUntil(() => ensemble.isWhole, 60_000, 100),
      ensemble.describe(),
    ).toBe(true);
    settle(ensemble);
    ensemble.compare();
    const texts = new Set(ensemble.nodes.map(({ peer }) => peer!.status().configText));
    expect([...texts]).toHaveLength(1);
  });
});
