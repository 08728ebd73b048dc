/** Identities of a client: long ones, many, and their use in ACLs and in forwarded requests. */
import { encodeRequest } from '../../model/wire.ts';
import { openToAll } from '../../process/honest-client.ts';
import type { Attack } from './attack.ts';
import { type Stranger, strangers } from './stranger.ts';

/** `name` makes identities unique; the length is about that of the request. */
function identity(name: string, length: number): Buffer {
  return encodeRequest(-4, { kind: 'auth', scheme: 'digest', auth: `${name.padEnd(length, 'x')}:secret` });
}

const own = (stranger: Stranger, index: number): string => `/written-${stranger.socket.localPort}-${index}`;

const allowed = 900;

/** Adds this many identities, and then creates znodes whose ACL stands for all of them. */
function aclsOf(name: string, identities: number): Attack {
  return {
    name,
    servers: 1,
    isCheap: identities === allowed,
    run: ({ target }, signal) =>
      strangers(1, target.ports.client, signal, async (stranger) => {
        for (let count = 0; count < identities; count++) await stranger.write(identity(`i${count}`, 8));
        const steps = Array.from({ length: 6000 }, (_, index) => ({
          kind: 'create' as const,
          path: own(stranger, index),
          data: '',
          acl: [{ perms: 31, scheme: 'auth', id: '' }],
          flags: 1,
        }));
        await stranger.send({ kind: 'multi', steps });
        await stranger.answered();
        stranger.destroy();
      }),
  };
}

/**
 * Adds this many identities of that length, and then sends writes that a follower forwards with all
 * of them.
 */
function writesOf(name: string, identities: number, length: number): Attack {
  return {
    name,
    servers: 3,
    run: ({ target }, signal) =>
      strangers(1, target.ports.client, signal, async (stranger) => {
        for (let count = 0; count < identities; count++) await stranger.write(identity(`i${count}`, length));
        for (let write = 0; write < 2000; write++) await stranger.send({ kind: 'setData', path: '/', data: 'x', version: -1 });
        await stranger.answered();
        stranger.destroy();
      }),
  };
}

export const identityAttacks: readonly Attack[] = [
  {
    name: 'identities-too-long-to-forward',
    servers: 3,
    isCheap: true,
    run: ({ target }, signal) =>
      strangers(1, target.ports.client, signal, async (stranger) => {
        for (let count = 0; count < 3; count++) await stranger.write(identity(`i${count}`, 900_000));
        for (let write = 0; write < 20; write++) {
          await stranger.send({ kind: 'create', path: own(stranger, write), data: '', acl: openToAll, flags: 1 });
        }
        await stranger.answered(5000);
        stranger.destroy();
      }),
  },
  writesOf('long-identities-on-many-writes', 2, 900_000),
  writesOf('allowed-identities-on-many-writes', allowed, 16),
  {
    name: 'identities-without-end',
    servers: 1,
    run: ({ target }, signal) =>
      strangers(1, target.ports.client, signal, async (stranger) => {
        for (let count = 0; count < 4283 && !signal.aborted && !stranger.isClosed; count++) {
          await stranger.write(identity(`i${count}`, 1_000_000));
        }
        await stranger.answered(5000);
        stranger.destroy();
      }),
  },
  aclsOf('acls-of-identities', 8000),
  // About as many as a tskeeper server allows on one connection.
  aclsOf('acls-of-allowed-identities', allowed),
  {
    name: 'many-identities',
    servers: 1,
    run: ({ target }, signal) =>
      strangers(4, target.ports.client, signal, async (stranger) => {
        for (let count = 0; count < 100_000 && !stranger.isClosed; count++) await stranger.write(identity(`i${count}`, 8));
        await stranger.answered(5000);
        stranger.destroy();
      }),
  },
];
