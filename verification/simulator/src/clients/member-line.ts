/**
 * The line of a server in a configuration, as an operator writes it: the forms that reconfigurations
 * of a run choose from.
 */
import type { Sid } from '@tskeeper/protocol';
import { serverNameOf } from '../record/config-text.ts';
import { deadHostOf, electionPort, isDeadHost, otherElectionPort, otherNameOf, otherQuorumPort, quorumPort } from '../world/peer-ports.ts';
import { serverPort } from './client-world.ts';

/** Nothing ever answers at a dead address; at a live one the server answers as at its first. */
export type SecondAddress = 'none' | 'dead first' | 'dead last' | 'live';

export interface Member {
  readonly sid: Sid;
  readonly role: 'participant' | 'observer';
  /** Whether it is at its second ports, and has its second name. */
  readonly isMoved: boolean;
  readonly isRenamed: boolean;
  readonly second: SecondAddress;
  readonly clientPort: number;
  /** Whether it listens for clients at its own address only. */
  readonly isClientHostNamed: boolean;
}

export function lineOf({ sid, role, isMoved, isRenamed, second, clientPort, isClientHostNamed }: Member): string {
  const own = addressOf(sid, isMoved, isRenamed);
  const addresses =
    second === 'none'
      ? [own]
      : [own, second === 'live' ? addressOf(sid, !isMoved, !isRenamed) : deadAddressOf(sid, second === 'dead first')];
  return `server.${sid}=${addresses.join('|')}:${role};${isClientHostNamed ? serverNameOf(sid) : '0.0.0.0'}:${clientPort}`;
}

function addressOf(sid: Sid, isMoved: boolean, isRenamed: boolean): string {
  const name = serverNameOf(sid);
  return `${isRenamed ? otherNameOf(name) : name}:${isMoved ? `${otherQuorumPort}:${otherElectionPort}` : `${quorumPort}:${electionPort}`}`;
}

function deadAddressOf(sid: Sid, isFirst: boolean): string {
  return `${deadHostOf(sid, isFirst)}:${quorumPort}:${electionPort}`;
}

/** The servers of a configuration. Of two live addresses the first counts as a server's own. */
export function membersIn(text: string): Member[] {
  return [...text.matchAll(/^server\.(\d+)=(.+?):(participant|observer)(?:;(.*):(\d+))?$/gm)].map(
    ([, number, list, role, clientHost = '0.0.0.0', clientPort]) => {
      const sid = Number(number);
      const addresses = list!.split('|').map((address) => address.split(':'));
      const own = addresses.find(([host]) => !isDeadHost(host!))!;
      const deadAt = addresses.findIndex(([host]) => isDeadHost(host!));
      const second = deadAt >= 0 ? (['dead first', 'dead last'] as const)[deadAt]! : 'none';
      return {
        sid,
        role: role as Member['role'],
        isMoved: Number(own[1]) === otherQuorumPort,
        isRenamed: own[0] === otherNameOf(serverNameOf(sid)),
        second: addresses.length > 1 && deadAt < 0 ? 'live' : second,
        clientPort: clientPort === undefined ? serverPort : Number(clientPort),
        isClientHostNamed: clientHost !== '0.0.0.0',
      };
    },
  );
}

/** Where a server listens for clients by this configuration; undefined if its own files say so. */
export function clientAddressIn(text: string, sid: Sid): { readonly host: string; readonly port: number } | undefined {
  const [, host, port] = new RegExp(`^server\\.${sid}=.*;(.*):(\\d+)$`, 'm').exec(text) ?? [];
  return host === undefined ? undefined : { host, port: Number(port) };
}
