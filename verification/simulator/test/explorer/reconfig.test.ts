/** Reconfigurations in a small world: what a disk may lose of them, and how they end. */
import { makeZxid, parseQuorumConfig, type QuorumConfig } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { type Choice, choiceText, decodeChoice } from '../../src/explorer/choice.ts';
import type { EnsembleName } from '../../src/explorer/small-ensemble.ts';
import { SmallConfigFiles } from '../../src/explorer/small-config-files.ts';
import { SmallDisk } from '../../src/explorer/small-disk.ts';
import { membersText } from '../../src/explorer/txn-names.ts';
import {
  buildInitialState,
  choicesToSession,
  parseRun,
  replayRun,
  runToQuiescence,
  type Scope,
  scopeDefaults,
  SmallWorld,
} from '../../src/internal.ts';

function configOf(version: number, ...sids: readonly number[]): QuorumConfig {
  return { ...parseQuorumConfig(sids.map((sid) => `server.${sid}=h${sid}:2888:3888`).join('\n')), version };
}

const [old, next] = [configOf(5, 1, 2, 3), configOf(6, 1, 2, 3, 4)];

describe('the files of a configuration', () => {
  const withRequests = (): SmallConfigFiles => {
    const files = new SmallConfigFiles({ active: old, next: undefined });
    files.save(old, next);
    files.save(next, undefined);
    return files;
  };

  test('are replaced one by one, the active one before the next', () => {
    const after = [0, 1, 2, 3].map((replaced) => {
      const files = withRequests();
      files.crash(replaced);
      return [files.state.active.version, files.state.next?.version, files.lastSeen?.version];
    });
    expect(after).toEqual([
      [5, undefined, undefined],
      [5, 6, 6],
      [6, 6, undefined],
      [6, undefined, undefined],
    ]);
  });

  test('are those of the last request once each is carried out', () => {
    const files = withRequests();
    files.storeNext();
    expect([files.state.active.version, files.lastSeen?.version, files.waiting]).toEqual([5, 6, 1]);
    files.storeNext();
    expect(files.state).toEqual({ active: next, next: undefined });
  });

  test('do not change for a configuration that they have', () => {
    const files = new SmallConfigFiles({ active: old, next });
    files.save(old, next);
    expect([...files.steps()]).toEqual([]);
    files.storeNext();
    expect(files.state).toEqual({ active: old, next });
  });
});

describe('a disk', () => {
  const txn = (counter: number) => ({ zxid: makeZxid(1, counter), bytes: Buffer.alloc(0), name: `${counter}` });

  test('reports a txn that follows a configuration after that, and may have it before', () => {
    const disk = new SmallDisk(undefined, old);
    disk.append(txn(1));
    disk.configs.save(old, next);
    disk.append(txn(2));
    disk.storeNext();
    expect([disk.canAnswerLog, disk.durable.length]).toEqual([false, 1]);
    expect([...disk.crashDepths()]).toContainEqual({ log: 1, epochs: 0, configs: 0 });
    disk.storeNextConfig();
    expect(disk.canAnswerLog).toBe(true);
  });

  test('writes an epoch that follows a configuration after that', () => {
    const disk = new SmallDisk(undefined, old);
    disk.saveEpoch('acceptedEpoch', 1);
    disk.configs.save(old, next);
    disk.saveEpoch('currentEpoch', 1);
    expect(disk.canAnswerEpoch).toBe(true);
    const depths = [...disk.crashDepths()].map(({ epochs, configs }) => `${epochs} ${configs}`);
    expect(depths).toEqual(['0 0', '1 0', '0 1', '1 1', '2 1']);
    disk.fileQueue.shift();
    expect(disk.canAnswerEpoch).toBe(false);
    disk.storeNextConfig();
    expect(disk.canAnswerEpoch).toBe(true);
  });
});

const work = ['packet', 'log', 'file', 'config', 'dial'];

/** The members that each server uses that serves, after everything has arrived and all faults have ceased. */
function settled(world: SmallWorld): (string | undefined)[] {
  const due = (): Choice | undefined => world.choices().find((code) => work.includes(decodeChoice(code).kind) || world.isDue(code));
  for (let code = due(); code !== undefined; code = due()) world.apply(code);
  runToQuiescence(world, 'all');
  return world.servers.map(({ peer, configs }) => (peer?.server === undefined ? undefined : membersText(configs.active)));
}

function withSession(ensemble: EnsembleName, servers: number): SmallWorld {
  const scope: Scope = { ...scopeDefaults, ensemble, servers, reconfigs: 2 };
  const world = new SmallWorld(scope);
  for (const code of choicesToSession({ scope })) world.apply(code);
  return world;
}

/** The first choice that begins so. */
function choose(world: SmallWorld, word: string): void {
  world.apply(world.choices().find((code: Choice) => choiceText(code).startsWith(word))!);
}

describe('a reconfiguration', () => {
  test('takes three servers to four and back', () => {
    const world = withSession('growing', 4);
    expect(settled(world)).toEqual(['1 2 3', '1 2 3', '1 2 3', '1 2 3']);
    choose(world, 'reconfig3.1');
    expect(settled(world)).toEqual(['1 2 3 4', '1 2 3 4', '1 2 3 4', '1 2 3 4']);
    choose(world, 'reconfig1.0');
    expect(settled(world).slice(0, 3)).toEqual(['1 2 3', '1 2 3', '1 2 3']);
  });

  test('that removes the leader names the next one', () => {
    const world = withSession('replacing', 4);
    world.takeHits();
    choose(world, 'reconfig3.1');
    expect(settled(world)).toEqual(['1 2 4', '1 2 4', expect.anything(), '1 2 4']);
    expect([...world.takeHits()]).toEqual(
      expect.arrayContaining(['configuration changed', 'leader removed', 'leads without an election', 'follows without an election']),
    );
  });

  test('makes a voter an observer, and a voter again', () => {
    const world = withSession('demoted', 3);
    for (const [word, members] of [
      ['reconfig3.1', '1 2 3o'],
      ['reconfig2.0', '1 2 3'],
    ] as const) {
      choose(world, word);
      expect(settled(world)).toEqual([members, members, members]);
    }
    expect([...world.takeHits()]).toEqual(expect.arrayContaining(['role changed', 'configuration changed and changed back']));
  });

  test('that the next leader does not have is taken back', () => {
    const scope: Scope = { ...scopeDefaults, ensemble: 'growing', servers: 4 };
    const world = new SmallWorld(scope, buildInitialState('pending configuration'));
    for (const code of parseRun('elect3')) world.apply(code);
    expect(settled(world).slice(0, 3)).toEqual(['1 2 3', '1 2 3', '1 2 3']);
    expect([...world.takeHits()]).toContain('pending configuration taken back');
  });

  test('that the next leader has is completed', () => {
    const scope: Scope = { ...scopeDefaults, ensemble: 'growing', servers: 4 };
    const world = new SmallWorld(scope, buildInitialState('pending configuration'));
    for (const code of parseRun('elect13')) world.apply(code);
    expect(settled(world)).toEqual(['1 2 3 4', '1 2 3 4', '1 2 3 4', '1 2 3 4']);
    expect([...world.takeHits()]).toContain('pending configuration completed by a later leader');
  });

  test('whose txn is lost in a crash does not stay in its file', () => {
    const scope: Scope = { ...scopeDefaults, ensemble: 'joining', reconfigs: 2 };
    const run = parseRun(
      'elect7,dial1,packet2#0,file2,packet1#0,file1,packet2#0,file2,packet1#0,packet1#0,config1,file1,packet2#0,packet1#0,config1,packet2#0,config2,dial3,packet2#1,packet3#0,file3,packet2#1,log2,wake2,packet3#0,log3,config3,file3,packet2#1,packet3#0,write2,packet1#0,log1,packet2#0,packet2#1,log2,packet1#0,reconfig2.1,write3,packet2#1,config2,packet1#0,packet1#0,log2,config1,log1,packet2#0,reconfig2.0,packet1#0,packet1#0,config1,config1,crash1.0.0,crash2.1.0,break3#0',
    );
    const { made, error, world } = replayRun({ scope }, run, 'all');
    expect(made).toEqual(run);
    expect(error?.message).toBeUndefined();
    expect(world.servers[0]!.disk.configs.state.next).toBeUndefined();
  });

  test('that arrives after the faults, and needs more servers than are up, lets one of them start', () => {
    // Servers 1 and 2 would be a quorum of three; the proposal of the fourth is still on its way to them.
    const start = { scope: { ...scopeDefaults, servers: 4, ensemble: 'growing', reconfigs: 2, txns: 1 } } as const;
    const run = parseRun(
      'elect15,dial1,dial2,packet3#0,packet3#1,file3,packet1#0,file1,packet2#0,file2,packet3#0,packet3#1,file3,packet1#0,packet1#0,config1,file1,packet2#0,packet2#0,config2,file2,packet3#0,packet1#0,config1,packet3#0,packet3#1,config3,write3,packet1#0,log1,packet3#0,log3,reconfig3.1,crash3.1.0.1,crash4.0.0',
    );
    const { made, error, world } = replayRun(start, run, 'core');
    expect(made).toEqual(run);
    expect(error?.message).toBeUndefined();
    expect(world.servers.filter(({ peer }) => peer !== undefined).length).toBe(3);
  });

  test('leaves three of four servers, two of them with the same history, which agree within ten seconds', () => {
    const start = { scope: { ...scopeDefaults, servers: 4, ensemble: 'growing', reconfigs: 2, txns: 1 } } as const;
    const run = parseRun(
      'elect15,dial1,dial2,packet3#0,packet3#1,file3,packet1#0,file1,packet2#0,file2,packet3#0,packet3#1,file3,packet1#0,packet1#0,config1,file1,packet2#0,packet2#0,config2,file2,packet3#1,packet2#0,config2,packet3#1,config3,dial4,packet3#2,packet4#0,file4,packet3#2,log3,wake3,packet4#0,log4,config4,file4,packet3#2,packet4#0,write3,packet1#0,packet2#0,log2,packet3#0,packet3#1,log3,packet4#0,packet4#0,config4,log4,packet3#2,reconfig3.1,crash2.0.0,start2,packet4#0,packet1#0,elect14,elect7,config1,config3,dial2,config4,crash1.1.0,log3,start1,elect7,packet3#3,packet2#0,packet3#3,packet2#0,log4,wake1,packet2#0,config2,packet2#0,packet3#2,packet3#2,log2,file2,packet3#3,packet2#0,packet3#3,config3,packet2#0,config2,packet4#0,config4,wake3,sleep3,break4#0,elect7,break2#0,elect7,elect11,config1,sleep3,elect13',
    );
    const { made, error, world } = replayRun(start, run);
    expect(made).toEqual(run);
    expect(error?.message).toBeUndefined();
    expect(world.servers[3]!.peer!.role).toBe('leading');
  });

  test('is impossible while the servers of the next configuration are not in step', () => {
    const world = withSession('joining', 3);
    choose(world, 'crash3.0.0');
    choose(world, 'packet2');
    expect(() => choose(world, 'reconfig2.1')).not.toThrow();
    world.takeHits();
    expect(settled(world).slice(0, 2)).toEqual(['1 2 3', '1 2 3']);
  });
});
