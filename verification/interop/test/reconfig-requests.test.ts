/** The reconfigurations that the part `ensemble` asks for. */
import { ErrorCode } from '@tskeeper/protocol';
import type { ServerKind } from '@tskeeper/harness';
import { describe, expect, test } from 'vitest';

import { isVoter } from '../src/ensemble/config-agreement.ts';
import { chooseRequest, isMixed, type ReconfigPeer, type ReconfigRequest, type ReconfigState } from '../src/ensemble/reconfig-requests.ts';
import { Random } from '../src/random.ts';

const java: ServerKind = 'java-3.9.5';
const kinds: readonly ServerKind[] = ['ours', java, java, 'ours', java];
const choices = 300;

const lineOf = (sid: number, role: string): string => `127.0.0.1:${sid}001:${sid}002:${role};127.0.0.1:${sid}000`;

function peersWithout(...down: readonly number[]): ReconfigPeer[] {
  return kinds.map((kind, index) => {
    const sid = index + 1;
    const ports = { client: sid * 1000, quorum: sid * 1000 + 1, election: sid * 1000 + 2 };
    return { sid, kind, ports, isUp: !down.includes(sid) };
  });
}

function stateOf(roles: Readonly<Record<number, string>>, changed: Partial<ReconfigState> = {}): ReconfigState {
  return {
    peers: peersWithout(),
    members: new Map(Object.entries(roles).map(([sid, role]) => [Number(sid), lineOf(Number(sid), role)])),
    version: 0x1_0000_0005,
    leader: 1,
    spare: { client: 9000, quorum: 9001, election: 9002 },
    untouched: undefined,
    mustSucceed: false,
    useCounts: new Map(),
    ...changed,
  };
}

function requestsFor(state: ReconfigState): ReconfigRequest[] {
  const random = new Random(1);
  return Array.from({ length: choices }, () => chooseRequest(state, random));
}

const three = { 1: 'participant', 2: 'participant', 3: 'participant' };
const four = { ...three, 4: 'participant', 5: 'observer' };
const namesOf = (requests: readonly ReconfigRequest[]): string[] => [...new Set(requests.map(({ name }) => name))].toSorted();

describe('a reconfiguration', () => {
  test('is of every kind that the members allow', () => {
    const always = ['absent voters', 'move all ports of', 'move the client port of', 'no address', 'stale version'];
    expect(namesOf(requestsFor(stateOf(three)))).toEqual(['absent voters', 'add', 'add as observer', ...always.slice(1), 'swap']);
    expect(namesOf(requestsFor(stateOf(four)))).toEqual([
      'absent voters',
      'demote',
      ...always.slice(1, 4),
      'promote',
      'remove',
      'remove observer',
      'stale version',
    ]);
  });

  test('keeps three voters, and servers of both kinds', () => {
    for (const roles of [three, four]) {
      const state = stateOf(roles);
      for (const { members, error, what } of requestsFor(state)) {
        if (error !== ErrorCode.Ok) continue;
        expect([...members.values()].filter(isVoter).length, what).toBeGreaterThanOrEqual(3);
        expect(isMixed(state.peers.filter(({ sid }) => members.has(sid))), what).toBe(true);
      }
    }
  });

  test('leaves a server as it is that ends meanwhile', () => {
    const state = stateOf(four, { untouched: 2, mustSucceed: true });
    for (const { members, error } of requestsFor(state)) expect([error, members.get(2)]).toEqual([ErrorCode.Ok, state.members.get(2)]);
  });

  test('is of a kind that has been asked for least often', () => {
    const useCounts = new Map(
      ['absent voters', 'add', 'add as observer', 'move all ports of', 'move the client port of', 'no address', 'swap'].map((name) => [
        name,
        1,
      ]),
    );
    expect(namesOf(requestsFor(stateOf(three, { useCounts })))).toEqual(['stale version']);
  });

  test('must be refused if no quorum of its voters follows: an observer does not count, a server outside of the members does', () => {
    const observing = stateOf({ ...three, 4: 'observer' }, { peers: peersWithout(3) });
    const promotions = requestsFor(observing).filter(({ name }) => name === 'promote');
    expect(new Set(promotions.map(({ error }) => error))).toEqual(new Set([ErrorCode.NewConfigNoQuorum]));
    const additions = requestsFor(stateOf(three, { peers: peersWithout(3) })).filter(({ name }) => name === 'add');
    expect(new Set(additions.map(({ error }) => error))).toEqual(new Set([ErrorCode.Ok]));
  });
});
