/**
 * Observers that learn from a follower (observerMasterPort) instead of the leader.
 */
import { CreateMode, ErrorCode, PacketType, type Zxid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleClient } from './ensemble-client.ts';
import { Ensemble, type Node } from './ensemble.ts';
import { create, delivered, joined, rejoined, serve } from './ensemble-requests.ts';

interface Started {
  readonly ensemble: Ensemble;
  readonly observers: readonly Node[];
}

/** An ensemble of 3 voters whose observers learn from followers. */
function started(observers = 1, seed = 1): Started {
  const ensemble = new Ensemble(seed, 3, observers, 0);
  ensemble.observerMasterEnabled = true;
  serve(ensemble);
  return { ensemble, observers: ensemble.nodes.slice(3) };
}

const lineOf = (sid: number, role = 'participant', quorumPort = 2888) => `server.${sid}=h${sid}:${quorumPort}:3888:${role};0.0.0.0:2181`;

function startedWithReconfig(): Started {
  const ensemble = new Ensemble(1, 3, 1, 0);
  Object.assign(ensemble, { observerMasterEnabled: true, reconfigEnabled: true, throttle: { skipAcl: true } });
  ensemble.configText = [lineOf(1), lineOf(2), lineOf(3), lineOf(4, 'observer'), 'version=0'].join('\n');
  serve(ensemble);
  return { ensemble, observers: ensemble.nodes.slice(3) };
}

function masterOf({ ensemble }: Started, observer: Node): Node {
  const sid = observer.peer!.status().learnerMaster;
  return ensemble.nodes.find((node) => node.sid === sid)!;
}

describe('an observer with observerMasterPort', () => {
  it('A55: learns from the leader where the leader alone is a quorum, since there may be no follower', () => {
    const ensemble = new Ensemble(1, 1, 1, 0);
    ensemble.observerMasterEnabled = true;
    serve(ensemble);
    expect(ensemble.nodes[1]!.peer!.status()).toMatchObject({ state: 'observing', learnerMaster: 1 });
  });

  it('A55, A57: learns from the leader of two voters with an oracle, since that may go on alone', () => {
    const ensemble = new Ensemble(1, 2, 1, 0);
    Object.assign(ensemble, { observerMasterEnabled: true, hasOracle: true });
    serve(ensemble);
    const leader = ensemble.leader!;
    const observer = ensemble.nodes[2]!;
    expect(observer.peer!.status()).toMatchObject({ state: 'observing', learnerMaster: leader.sid });
    observer.crash();
    ensemble.nodes.find((node) => node !== leader && node !== observer)!.crash();
    const isAllowedUntil = (isDone: () => boolean) => () => {
      leader.turn((peer) => peer.oracleAnswered(true, leader.now));
      return isDone();
    };
    ensemble.runUntil(
      isAllowedUntil(() => false),
      1000,
      20,
    );
    observer.start();
    expect(
      ensemble.runUntil(
        isAllowedUntil(() => observer.peer!.server !== undefined),
        5000,
        20,
      ),
      ensemble.describe(),
    ).toBe(true);
  });

  it('A55: learns from a follower, never from the leader, which sends it nothing', () => {
    const run = started(3);
    const { ensemble, observers } = run;
    const leader = ensemble.leader!;
    const senders = new Set<number>();
    ensemble.arrived = (from, to) => {
      if (to > 3) senders.add(from);
    };
    ensemble.run(500);
    expect(senders.size).toBeGreaterThan(0);
    expect([...senders]).not.toContain(leader.sid);
    expect(leader.peer!.status().leading).toMatchObject({ syncedObservers: 0, learners: 2 });
    const counts = ensemble.nodes.map(({ peer }) => peer!.status().observersOfFollower);
    expect(counts[leader.sid - 1]).toBeUndefined();
    expect(counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)).toBe(3);
    for (const observer of observers) {
      expect(observer.peer!.status()).toMatchObject({ state: 'observing', phase: 'broadcast', leader: leader.sid });
      expect([...masterOf(run, observer).peer!.observers()].map(({ sid }) => sid)).toContain(observer.sid);
    }
    ensemble.compare();
  });

  it('A55: several observers spread over the followers', () => {
    const masters = new Set<number>();
    for (let seed = 1; seed < 8; seed++) {
      const run = started(2, seed);
      for (const observer of run.observers) masters.add(masterOf(run, observer).sid);
    }
    expect(masters.size).toBeGreaterThan(1);
  });

  it('A55: its clients write, sync, and read what they have written', () => {
    const { ensemble, observers } = started(2);
    const [one, two] = observers.map((node) => joined(ensemble, node));
    for (let round = 0; round < 20; round++) {
      expect(delivered(ensemble, one!, 'create', create(`/a${round}`))?.err).toBe(ErrorCode.Ok);
      const sync = two!.ask('sync', { path: '/' });
      const read = two!.ask('exists', { path: `/a${round}`, watch: false });
      ensemble.runUntil(() => read.answer !== undefined, 1000);
      expect(sync.answer?.err).toBe(ErrorCode.Ok);
      expect(read.answer?.err).toBe(ErrorCode.Ok);
    }
    expect(delivered(ensemble, one!, 'create', create('/a0'))?.err).toBe(ErrorCode.NodeExists);
    ensemble.run(50);
    ensemble.compare();
  });

  it('A55: syncs of a follower and of its observer are answered each to its own client', () => {
    const run = started(1);
    const { ensemble, observers } = run;
    const [here, there] = [joined(ensemble, masterOf(run, observers[0]!)), joined(ensemble, observers[0]!)];
    const syncs = Array.from({ length: 40 }, (_, at) => (at % 3 === 0 ? here : there).ask('sync', { path: '/' }));
    expect(ensemble.runUntil(() => syncs.every(({ answer }) => answer !== undefined), 5000)).toBe(true);
  });

  it('A55: a session is resumed at an observer, and at its follower, and is not where it was closed', () => {
    const run = started(1);
    const { ensemble, observers } = run;
    const client = joined(ensemble, observers[0]!);
    const { session } = client;
    for (const node of [masterOf(run, observers[0]!), observers[0]!, ensemble.leader!, observers[0]!]) {
      client.break();
      rejoined(ensemble, node, client);
      expect(client.session).toBe(session);
      expect(client.timeoutMs).toBeGreaterThan(0);
      expect(delivered(ensemble, client, 'setData', { path: '/', data: null, version: -1 })?.err).toBe(ErrorCode.Ok);
    }
    delivered(ensemble, client, 'closeSession', undefined as never);
    client.isAnswered = false;
    rejoined(ensemble, observers[0]!, client);
    expect(client.timeoutMs).toBe(0);
  });

  it('A55: a session whose client pings an observer outlives its timeout many times, and expires when it is silent', () => {
    const { ensemble, observers } = started(1);
    const client = joined(ensemble, observers[0]!, 300);
    delivered(ensemble, client, 'create', create('/e', CreateMode.ephemeral));
    for (let ms = 0; ms < 6000; ms += 100) {
      client.ask('ping', undefined);
      ensemble.run(100);
    }
    expect(client.isClosed).toBe(false);
    expect(ensemble.leader!.peer!.replica.tree.find('/e')).not.toBe(0);
    expect(ensemble.runUntil(() => ensemble.leader!.peer!.replica.tree.find('/e') === 0, 1200)).toBe(true);
  });

  it('A55: when the follower loses its leader, the observers go on with another one', () => {
    const run = started(2);
    const { ensemble } = run;
    for (let round = 0; round < 6; round++) {
      const lost = round % 2 === 0 ? ensemble.leader! : masterOf(run, run.observers[0]!);
      lost.crash();
      const others = ensemble.nodes.filter((node) => node !== lost);
      ensemble.run(50);
      const isWhole = () => ensemble.leader !== undefined && others.every(({ peer }) => peer!.server !== undefined);
      expect(ensemble.runUntil(isWhole, 8000)).toBe(true);
      const client = joined(ensemble, run.observers[round % 2]!);
      expect(delivered(ensemble, client, 'create', create(`/round${round}`))?.err).toBe(ErrorCode.Ok);
      client.break();
      lost.start();
      expect(ensemble.runUntil(() => ensemble.isWhole, 8000)).toBe(true);
    }
    ensemble.run(3000);
    ensemble.compare();
  });

  it('A55: an observer that knows a later commit than the follower waits for it, and truncates nothing', () => {
    for (let seed = 1; seed < 30; seed++) {
      const run = started(1, seed);
      const { ensemble, observers } = run;
      const [observer] = observers;
      const master = masterOf(run, observer!);
      const other = ensemble.nodes.find((node) => node.sid <= 3 && node !== master && node !== ensemble.leader)!;
      const client = joined(ensemble, ensemble.leader!);
      delivered(ensemble, client, 'create', create('/first'));
      // The other follower receives no commit for a while: the observer comes to it with more.
      let holds = true;
      ensemble.muted.add(`${ensemble.leader!.sid}>${other.sid}`);
      for (let count = 0; count < 5; count++) delivered(ensemble, client, 'create', create(`/a${count}`));
      const { truncations } = ensemble;
      ensemble.closedPorts.add(master.sid);
      for (const end of master.ends.values()) if (end.other.node === observer) ensemble.breakStream(end);
      holds = ensemble.runUntil(() => observer!.peer!.server === undefined, 1000);
      expect(holds).toBe(true);
      ensemble.run(100);
      ensemble.muted.clear();
      ensemble.closedPorts.clear();
      expect(ensemble.runUntil(() => ensemble.isWhole, 8000)).toBe(true);
      expect(ensemble.truncations).toBe(truncations);
      ensemble.run(50);
      ensemble.compare();
    }
  });

  it('A55: a follower informs its observers of a txn only after the leader has committed it', () => {
    const run = started(1);
    const { ensemble, observers } = run;
    const { sid } = masterOf(run, observers[0]!);
    const seen: string[] = [];
    ensemble.arrived = (from, to, type) => {
      if (type === PacketType.COMMIT && to === sid) seen.push('commit');
      if (type === PacketType.INFORM && from === sid) seen.push('inform');
    };
    const client = joined(ensemble, ensemble.leader!);
    for (let count = 0; count < 10; count++) client.ask('create', create(`/${count}`));
    ensemble.run(200);
    let ahead = 0;
    for (const each of seen) expect((ahead += each === 'commit' ? 1 : -1)).toBeGreaterThanOrEqual(0);
    expect(seen.filter((each) => each === 'inform').length).toBeGreaterThanOrEqual(10);
  });

  it('A55: the leader distinguishes a follower and its observers: a request of an old connection is rejected', () => {
    const run = started(1);
    const { ensemble, observers } = run;
    const master = masterOf(run, observers[0]!);
    const old = joined(ensemble, observers[0]!);
    // Its requests are on their way when another process resumes the session at the follower.
    ensemble.muted.add(`${observers[0]!.sid}>${master.sid}`);
    const late = old.ask('create', create('/late'));
    ensemble.run(5);
    const moved = new EnsembleClient();
    moved.session = old.session;
    moved.password = old.password;
    ensemble.muted.clear();
    rejoined(ensemble, master, moved);
    expect(delivered(ensemble, moved, 'create', create('/new'))?.err).toBe(ErrorCode.Ok);
    const again = old.ask('create', create('/old'));
    ensemble.runUntil(() => again.answer !== undefined || old.isClosed, 2000);
    expect([ErrorCode.SessionMoved, undefined]).toContain(again.answer?.err);
    expect(ensemble.leader!.peer!.replica.tree.find('/old')).toBe(0);
    expect(late.answer).toBeUndefined();
  });
});

describe('a configuration that is proposed', () => {
  it('A55, A58: is not announced to an observer that connects to a follower before it is committed', () => {
    const { ensemble, observers } = startedWithReconfig();
    const run = { ensemble, observers };
    const [observer] = observers;
    const leader = ensemble.leader!;
    const before = observer!.peer!.status().configText;
    const client = joined(ensemble, leader);
    // Nothing that the followers send arrives, so the leader has proposed it, and cannot commit it.
    for (const node of ensemble.nodes.slice(0, 3)) if (node !== leader) ensemble.muted.add(`${node.sid}>${leader.sid}`);
    const zxids = ensemble.nodes.map((node) => node.lastLogged);
    const newMembers = [...ensemble.nodes.slice(0, 3).map(({ sid }) => lineOf(sid)), lineOf(4, 'observer', 2999)].join(',');
    client.ask('reconfig', { joiningServers: null, leavingServers: null, newMembers, curConfigId: -1 });
    ensemble.run(40);
    expect(ensemble.nodes.slice(0, 3).every((node, at) => node.lastLogged > zxids[at]!)).toBe(true);
    const master = masterOf(run, observer!);
    for (const end of master.ends.values()) if (end.other.node === observer) ensemble.breakStream(end);
    expect(ensemble.runUntil(() => observer!.peer!.server === undefined, 100, 1)).toBe(true);
    expect(ensemble.runUntil(() => observer!.peer!.server !== undefined, 250, 1)).toBe(true);
    expect([leader.peer!.role, observer!.peer!.status().configText]).toEqual(['leading', before]);
    ensemble.muted.clear();
    expect(ensemble.runUntil(() => ensemble.isWhole && observer!.peer!.status().configText !== before, 8000)).toBe(true);
  });
});

describe('orst and obsr', () => {
  it('A55: a leader and a follower list their observers, with what each has sent', () => {
    const run = started(1);
    const { ensemble, observers } = run;
    const master = masterOf(run, observers[0]!);
    const client = joined(ensemble, observers[0]!);
    delivered(ensemble, client, 'create', create('/a'));
    ensemble.run(20);
    const [status] = master.peer!.observers();
    const lastZxid: Zxid = ensemble.leader!.peer!.replica.lastZxid;
    expect(status).toMatchObject({ sid: observers[0]!.sid, requestsReceived: 2, lastZxid });
    expect(status!.packetsReceived).toBeGreaterThan(4);
    master.peer!.resetObserverStats();
    expect([...master.peer!.observers()]).toMatchObject([{ packetsReceived: 0, requestsReceived: 0 }]);
  });
});
