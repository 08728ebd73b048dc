/**
 * The text of an ensemble's configuration, as recorded and as operators may write it.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import {
  formatQuorumConfig,
  formatQuorumServer,
  isHierarchical,
  isParticipant,
  isQuorumConfigKey,
  parseQuorumConfig,
  parseQuorumServer,
  type QuorumConfig,
  QuorumConfigError,
  quorumConfigOf,
} from '../../src/index.ts';
import { recordedStreams } from '../quorum-fixtures.ts';

function refusal(parse: () => unknown): [line: string, message: string] | 'accepted' {
  try {
    parse();
  } catch (error) {
    if (error instanceof QuorumConfigError) return [error.line, error.message];
    throw error;
  }
  return 'accepted';
}

describe('recorded configurations', () => {
  const texts = new Set<string>();
  for (const port of ['election', 'learner'] as const) {
    for (const { messages } of recordedStreams(port)) {
      for (const { notification, decoded } of messages) {
        const text = notification?.config ?? decoded?.['config'];
        if (typeof text === 'string') texts.add(text);
      }
    }
  }

  test('are formatted to the recorded texts', () => {
    expect(texts.size).toBeGreaterThan(5);
    for (const text of texts) expect(formatQuorumConfig(parseQuorumConfig(text))).toBe(text);
  });

  test('contain each server with its addresses and its role', () => {
    const first = parseQuorumConfig([...texts].find((text) => text.includes('observer') && text.endsWith('version=0'))!);
    expect([...first.servers.keys()]).toEqual([1, 2, 3, 4]);
    expect(first.servers.get(4)).toEqual({
      sid: 4,
      addresses: [{ host: '127.0.0.1', quorumPort: 43_104, electionPort: 43_204 }],
      role: 'observer',
      clientAddress: { host: '127.0.0.1', port: 43_004 },
    });
    expect([...first.servers.values()].filter(isParticipant).map(({ sid }) => sid)).toEqual([1, 2, 3]);
    expect([first.version, isHierarchical(first)]).toEqual([0, false]);
  });
});

describe('a server', () => {
  test.each([
    ['h:2888:3888', 'h:2888:3888:participant'],
    ['h:2888:3888:observer', 'h:2888:3888:observer'],
    ['h:2888:3888: Observer ', 'h:2888:3888:observer'],
    ['h:2888:3888:PARTICIPANT;2181', 'h:2888:3888:participant;0.0.0.0:2181'],
    ['h:2888:3888;c:2181', 'h:2888:3888:participant;c:2181'],
    ['h:2888:3888;[::1]:2181', 'h:2888:3888:participant;[::1]:2181'],
    ['h:2888:3888;', 'h:2888:3888:participant'],
    ['h:2888:3888:', 'h:2888:3888:participant'],
    ['[2001:db8::1]:2888:3888:observer;2181', '[2001:db8::1]:2888:3888:observer;0.0.0.0:2181'],
    ['b:2888:3888|a:2889:3889', 'a:2889:3889|b:2888:3888:participant'],
    ['b:1:2:observer|[::1]:3:4', '[::1]:3:4|b:1:2:observer'],
    ['a:1:2|b:1:2:observer;9', 'a:1:2|b:1:2:observer;0.0.0.0:9'],
    ['h:0:65535', 'h:0:65535:participant'],
  ])('written as %s is %s', (written, canonical) => {
    const server = parseQuorumServer(1, written);
    expect(formatQuorumServer(server)).toBe(canonical);
    expect(formatQuorumServer(parseQuorumServer(1, canonical))).toBe(canonical);
  });

  test.each([
    '',
    'h',
    'h:2888',
    'h:a:3888',
    'h:2888:b',
    'h:2888:65536',
    'h:-1:3888',
    ':2888:3888',
    '::1:2888:3888',
    '[::1:2888:3888',
    '[::1]2888:3888',
    'h:2888:3888:participant:x',
    'h:2888:3888;a:b:1',
    'h:2888:3888;a:b',
    'h:2888:3888;:2181',
    'h:2888:3888;2181;2182',
    'h:2888:3888|;2181x',
    ';2181',
    '|',
  ])('cannot be "%s"', (value) => {
    expect(refusal(() => parseQuorumServer(7, value))).toEqual([
      'server.7',
      `server.7 must be host:quorumPort:electionPort[:participant|observer][;[clientHost:]clientPort], not "${value}".`,
    ]);
  });

  test.each([
    ['h:2888:3888:arbiter', 'server.7 has the role "arbiter": it must be participant or observer.'],
    ['h:2888:2888', 'server.7 has 2888 as its quorum port and its election port: choose two different ports.'],
    ['a:1:2:observer|b:1:2:participant', 'server.7 has an address as observer and another as participant: give the server one role.'],
  ])('cannot be "%s", which has an error message of its own', (value, sentence) => {
    expect(refusal(() => parseQuorumServer(7, value))).toEqual(['server.7', sentence]);
  });
});

describe('groups and weights', () => {
  const servers = [1, 2, 3, 4].map((sid) => `server.${sid}=h${sid}:1:2${sid === 4 ? ':observer' : ''}`).join('\n');

  test('are formatted in order, with the default weights', () => {
    const config = parseQuorumConfig(`${servers}\ngroup.2=3\ngroup.1=2:1\nweight.2=0\nweight.9=5`);
    expect(isHierarchical(config)).toBe(true);
    expect([...config.groups]).toEqual([
      [1, [2, 1]],
      [2, [3]],
    ]);
    expect([...config.weights]).toEqual([
      [1, 1],
      [2, 0],
      [3, 1],
      [9, 5],
    ]);
    expect(formatQuorumConfig(config).split('\n').slice(4)).toEqual([
      'group.1=1:2',
      'group.2=3',
      'weight.1=1',
      'weight.2=0',
      'weight.3=1',
      'weight.9=5',
      'version=0',
    ]);
  });

  test.each([
    ['group.1=1:2', 'server.3', 'server 3 is in no group: with groups or weights, list every participant in one.'],
    ['weight.1=1', 'server.1', 'server 1 is in no group: with groups or weights, list every participant in one.'],
    ['group.1=1:2:3\ngroup.2=3', 'group.2', 'server 3 is in group.1 and in group.2: list it in exactly one group.'],
    ['group.1=1:2:3:3', 'group.1', 'server 3 is in group.1 twice: list it in exactly one group.'],
    ['group.1=1:2:3:4', 'group.1', 'group.1 names server 4, which is not a participant and has no weight.'],
    ['group.1=1:2:3:8', 'group.1', 'group.1 names server 8, which is not a participant and has no weight.'],
    ['group.1=1:x', 'group.1', 'group.1: a list of server numbers separated by colons must be in decimal digits, not "x".'],
    ['group.a=1:2:3', 'group.a', 'group.a: the number after the dot must be in decimal digits, not "a".'],
    ['group.1=1:2:3\nweight.1=-1', 'weight.1', 'weight.1: a weight must be in decimal digits, not "-1".'],
  ])('that are invalid are refused: %s', (lines, line, sentence) => {
    expect(refusal(() => parseQuorumConfig(`${servers}\n${lines}`))).toEqual([line, sentence]);
  });

  test('may name an observer that has a weight', () => {
    expect(refusal(() => parseQuorumConfig(`${servers}\ngroup.1=1:2:3:4\nweight.4=0`))).toBe('accepted');
  });
});

describe('a configuration', () => {
  test('may have comments, blanks, other separators and foreign keys', () => {
    const config = parseQuorumConfig(
      '# servers\r\n\n  server.1 = h:1:2 \n!x\nserver.2: i:1:2\nserver.3 j:1:2\nfoo=bar\nversion=1F\nnothing',
    );
    expect(formatQuorumConfig(config)).toBe(
      'server.1=h:1:2:participant\nserver.2=i:1:2:participant\nserver.3=j:1:2:participant\nversion=1f',
    );
  });

  test('uses the later of two lines for one key, like a properties file', () => {
    expect(formatQuorumConfig(parseQuorumConfig('server.1=h:1:2\nserver.1=i:1:2\nversion=1\nversion=2'))).toBe(
      'server.1=i:1:2:participant\nversion=2',
    );
  });

  test('of an empty text has no servers and version 0', () => {
    expect(formatQuorumConfig(parseQuorumConfig(''))).toBe('version=0');
  });

  test.each([
    ['server.x=h:1:2', 'server.x', 'server.x: the number after the dot must be in decimal digits, not "x".'],
    ['server.-1=h:1:2', 'server.-1', 'server.-1: the number after the dot must be in decimal digits, not "-1".'],
    ['server.0x1=h:1:2', 'server.0x1', 'server.0x1: the number after the dot must be in decimal digits, not "0x1".'],
    [
      'server.9007199254740992=h:1:2',
      'server.9007199254740992',
      'server.9007199254740992: the number after the dot must be in decimal digits, not "9007199254740992".',
    ],
    ['version=x', 'version', 'version must be a hexadecimal number below 2^53, not "x".'],
    ['version=20000000000000', 'version', 'version must be a hexadecimal number below 2^53, not "20000000000000".'],
  ])('is refused for %s', (text, line, sentence) => {
    expect(refusal(() => parseQuorumConfig(text))).toEqual([line, sentence]);
  });

  test('has the keys server, group and weight with a number, and version', () => {
    expect(['server.1', 'group.1', 'weight.1', 'version'].every(isQuorumConfigKey)).toBe(true);
    expect(['server', 'serverCnxnFactory', 'groups', 'clientPort', 'versions'].some(isQuorumConfigKey)).toBe(false);
  });

  test('of any servers is parsed as it was formatted', () => {
    const host = fc.constantFrom('a', 'b.example', '10.0.0.1', '::1', '2001:db8::2');
    const port = fc.integer({ min: 0, max: 32_767 });
    const address = fc.record({ host, quorumPort: port, electionPort: port.map((value) => value + 32_768) });
    const addresses = fc
      .uniqueArray(address, { minLength: 1, maxLength: 3, selector: (each) => each.host })
      .map((list) => list.sort((a, b) => (a.host < b.host ? -1 : 1)));
    const role = fc.constantFrom('participant' as const, 'observer' as const);
    const client = fc.option(fc.record({ host, port }));
    const members = fc.array(fc.record({ addresses, role, client }), { maxLength: 6 });
    const version = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(members, version, fc.boolean(), (list, number, grouped) => {
        const servers = list.map(({ client: clientAddress, ...rest }, index) => {
          const server = { sid: index * 7, ...rest };
          return clientAddress === null ? server : { ...server, clientAddress };
        });
        const voters = servers.filter(isParticipant).map(({ sid }) => sid);
        const inGroups = grouped && voters.length > 0;
        const config: QuorumConfig = {
          version: number,
          servers: new Map(servers.map((server) => [server.sid, server])),
          groups: new Map(inGroups ? [[1, voters]] : []),
          weights: new Map(inGroups ? voters.map((sid) => [sid, sid]) : []),
        };
        const text = formatQuorumConfig(config);
        expect(parseQuorumConfig(text)).toEqual(config);
        expect(formatQuorumConfig(parseQuorumConfig(text))).toBe(text);
      }),
    );
  });

  test('of any text is parsed, or causes a QuorumConfigError', () => {
    const piece = fc.constantFrom(
      'server.',
      'group.',
      'weight.',
      'version',
      '1',
      '=',
      ':',
      ';',
      '|',
      '[',
      ']',
      'h',
      '2888',
      '\n',
      ' ',
      'ff',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        refusal(() => parseQuorumConfig(pieces.join('')));
      }),
      { numRuns: breadth(200, 2000) },
    );
  });

  test('can be parsed from lines that are already split', () => {
    const config = quorumConfigOf([
      { name: 'tickTime', value: '2000' },
      { name: 'server.1', value: 'h:1:2' },
    ]);
    expect(formatQuorumConfig(config)).toBe('server.1=h:1:2:participant\nversion=0');
  });
});
