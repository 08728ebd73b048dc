/**
 * How a server treats the configurations of others: a later one with the same voters is adopted,
 * one with others is an error.
 */
import { parseQuorumConfig } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Configuration, ConfigurationConflict } from '../../src/quorum/configuration.ts';
import { OracleQuorum } from '../../src/quorum/oracle-quorum.ts';
import { verifierOf } from '../../src/quorum/config-verifier.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { treeOptions } from '../tree/tree-and-model.ts';

const servers = [1, 2, 3].map((sid) => `server.${sid}=h${sid}:2888:3888:participant`);
const text = (version: string, ...more: readonly string[]) => [...servers, ...more, `version=${version}`].join('\n');

function going(version = '0', reconfigEnabled = true): Configuration {
  const own = text(version);
  return new Configuration(
    { verifier: verifierOf(parseQuorumConfig(own)), text: own, version: Number.parseInt(version, 16) },
    reconfigEnabled,
  );
}

describe('a configuration', () => {
  it('gets the version of its first leader, once', () => {
    const configuration = going();
    const proposed = configuration.newLeaderConfig(3);
    expect(proposed).toBe(text('300000000'));
    // It is active when a quorum has acknowledged it, and not before.
    expect(configuration.version).toBe(0);
    expect(configuration.maybeAdopt(proposed)).toBe(true);
    expect(configuration.active).toMatchObject({ text: proposed, version: 0x3_0000_0000 });
    expect(configuration.newLeaderConfig(4)).toBe(proposed);
  });

  it('is not changed by an earlier, equal or malformed one', () => {
    const configuration = going('300000000');
    for (const other of [text('0'), text('200000005'), text('300000000'), 'server.1=nonsense\nversion=900000000', '']) {
      expect(configuration.maybeAdopt(other)).toBe(false);
    }
    expect(configuration.version).toBe(0x3_0000_0000);
  });

  it('is replaced by a later one with the same voters, including its observers and client addresses', () => {
    const configuration = going();
    const later = text('100000004', 'server.4=h4:2888:3888:observer;0.0.0.0:2181');
    const sorted = [...servers, 'server.4=h4:2888:3888:observer;0.0.0.0:2181', 'version=100000004'].join('\n');
    expect(configuration.maybeAdopt(later)).toBe(true);
    expect(configuration.active.text).toBe(sorted);
  });

  it.each([
    ['another voter', text('100000004', 'server.4=h4:2888:3888:participant')],
    ['one voter less', `${servers.slice(0, 2).join('\n')}\nversion=100000004`],
    ['a voter at another address', text('100000004').replace('h2:', 'h9:')],
    ['weights', text('100000004', 'group.1=1:2:3', 'weight.1=5')],
  ])('throws for a later one with %s', (_what, later) => {
    for (const reconfigEnabled of [true, false]) {
      const configuration = going('0', reconfigEnabled);
      expect(() => configuration.check(later)).toThrow(ConfigurationConflict);
      expect(() => configuration.maybeAdopt(later)).toThrow(/configuration 100000004.* dynamicConfigFile in zoo\.cfg/);
      expect(configuration.version).toBe(0);
    }
  });

  it('is not changed if reconfiguration is disabled', () => {
    const configuration = going('0', false);
    expect(configuration.newLeaderConfig(3)).toBe(text('0'));
    expect(configuration.maybeAdopt(text('300000000'))).toBe(false);
    expect(configuration.version).toBe(0);
  });

  it('is replaced by the one received last, on request, and only once', () => {
    const configuration = going();
    for (const version of ['100000004', '200000000']) configuration.configSeen(2, parseQuorumConfig(text(version)));
    expect(configuration.version).toBe(0);
    expect([configuration.maybeAdoptLastSeen(), configuration.version]).toEqual([true, 0x2_0000_0000]);
    expect(configuration.maybeAdoptLastSeen()).toBe(false);
  });

  it.each([
    [true, 0x1_0000_0004],
    [false, 0],
  ])('is restored from the tree if reconfiguration is enabled (%s)', (reconfigEnabled, version) => {
    const tree = new DataTree(treeOptions);
    going('100000004').storeIn(tree);
    const configuration = going('0', reconfigEnabled);
    expect([configuration.maybeAdoptStored(tree), configuration.version]).toEqual([reconfigEnabled, version]);
  });

  it('is not changed if the tree contains none', () => {
    expect(going().maybeAdoptStored(new DataTree(treeOptions))).toBe(false);
  });
});

describe('the oracle of a configuration', () => {
  it('does not exist if a majority decides', () => {
    const configuration = going();
    expect([configuration.oracleAnswered(true), configuration.setHasFollower(true), configuration.setHasFollower(false)]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it('is asked again when the follower is lost, and allows nothing before its answer', () => {
    const verifier = new OracleQuorum([1, 2]);
    const configuration = new Configuration({ verifier, text: text('0'), version: 0 }, true);
    const may = () => verifier.containsQuorum(new Set([1]));
    expect([configuration.oracleAnswered(true), may()]).toEqual([true, true]);
    expect([configuration.setHasFollower(true), may()]).toEqual([false, false]);
    expect([configuration.setHasFollower(false), may()]).toEqual([true, false]);
  });
});
