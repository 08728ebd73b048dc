/** Identities of a client: long ones, many, and their use in ACLs and in forwarded requests. */
import { encodeRequest } from '@tskeeper/harness';
import { openToAll } from '../../processes/honest-client.ts';
import type { Attack } from './attack.ts';
import { type Attacker, runAttackers } from './attacker.ts';

/** `name` makes identities unique; the length is about that of the request. */
function identity(name: string, length: number): Buffer {
  return encodeRequest(-4, { kind: 'auth', scheme: 'digest', auth: `${name.padEnd(length, 'x')}:secret` });
}

const ownPath = (attacker: Attacker, index: number): string => `/written-${attacker.socket.localPort}-${index}`;

const allowed = 900;

/** Adds this many identities, and then creates znodes whose ACL stands for all of them. */
function aclAttack(name: string, identities: number): Attack {
  return {
    name,
    servers: 1,
    isBounded: identities === allowed,
    run: ({ target }, signal) =>
      runAttackers(1, target.ports.client, signal, async (attacker) => {
        for (let count = 0; count < identities; count++) await attacker.write(identity(`i${count}`, 8));
        const steps = Array.from({ length: 6000 }, (_, index) => ({
          kind: 'create' as const,
          path: ownPath(attacker, index),
          data: '',
          acl: [{ perms: 31, scheme: 'auth', id: '' }],
          flags: 1,
        }));
        await attacker.send({ kind: 'multi', steps });
        await attacker.untilAnswered();
        attacker.destroy();
      }),
  };
}

/**
 * Adds this many identities of that length, and then sends writes that a follower forwards with all
 * of them.
 */
function writeAttack(name: string, identities: number, length: number): Attack {
  return {
    name,
    servers: 3,
    run: ({ target }, signal) =>
      runAttackers(1, target.ports.client, signal, async (attacker) => {
        for (let count = 0; count < identities; count++) await attacker.write(identity(`i${count}`, length));
        for (let write = 0; write < 2000; write++) await attacker.send({ kind: 'setData', path: '/', data: 'x', version: -1 });
        await attacker.untilAnswered();
        attacker.destroy();
      }),
  };
}

export const identityAttacks: readonly Attack[] = [
  {
    name: 'identities-too-long-to-forward',
    servers: 3,
    isBounded: true,
    run: ({ target }, signal) =>
      runAttackers(1, target.ports.client, signal, async (attacker) => {
        for (let count = 0; count < 3; count++) await attacker.write(identity(`i${count}`, 900_000));
        for (let write = 0; write < 20; write++) {
          await attacker.send({ kind: 'create', path: ownPath(attacker, write), data: '', acl: openToAll, flags: 1 });
        }
        await attacker.untilAnswered(5000);
        attacker.destroy();
      }),
  },
  writeAttack('long-identities-on-many-writes', 2, 900_000),
  writeAttack('allowed-identities-on-many-writes', allowed, 16),
  {
    name: 'identities-without-end',
    servers: 1,
    run: ({ target }, signal) =>
      runAttackers(1, target.ports.client, signal, async (attacker) => {
        for (let count = 0; count < 4283 && !signal.aborted && !attacker.isClosed; count++) {
          await attacker.write(identity(`i${count}`, 1_000_000));
        }
        await attacker.untilAnswered(5000);
        attacker.destroy();
      }),
  },
  aclAttack('acls-of-identities', 8000),
  // About as many as a tskeeper server allows on one connection.
  aclAttack('acls-of-allowed-identities', allowed),
  {
    name: 'many-identities',
    servers: 1,
    run: ({ target }, signal) =>
      runAttackers(4, target.ports.client, signal, async (attacker) => {
        for (let count = 0; count < 100_000 && !attacker.isClosed; count++) await attacker.write(identity(`i${count}`, 8));
        await attacker.untilAnswered(5000);
        attacker.destroy();
      }),
  },
];
