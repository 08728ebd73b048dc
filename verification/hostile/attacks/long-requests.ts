/**
 * Valid requests that take long: listings, multis, and requests that make the server evaluate a
 * long ACL.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { encodeRequest } from '@tskeeper/harness';
import { openToAll } from '../../processes/honest-client.ts';
import { type Attack, createChildren, createOne, type AttackSetup } from './attack.ts';
import { runAttackers } from './attacker.ts';

const wide = '/wide';
const children = 400_000;
const list = { kind: 'getChildren', path: wide, watch: false } as const;
const checks = Array.from({ length: 40_000 }, () => ({ kind: 'check' as const, path: '/', version: -1 }));
const multi = { kind: 'multi', steps: checks } as const;

const prepareWide = ({ leader }: AttackSetup): Promise<void> => createChildren(leader.ports.client, wide, children);

/**
 * Two clients at the leader and two at the target, which is the same server if there is only one.
 */
async function repeatFromFour({ leader, target }: AttackSetup, signal: AbortSignal, request: Buffer): Promise<void> {
  await Promise.all(
    [leader, target].map(({ ports }) =>
      runAttackers(2, ports.client, signal, async (attacker) => {
        await attacker.write(request);
        await attacker.untilAnswered();
      }),
    ),
  );
}

function ipAcl(length: number): { perms: number; scheme: string; id: string }[] {
  return Array.from({ length }, (_, index) => ({ perms: 31, scheme: 'ip', id: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}` }));
}

/** In the format of `digest`: a name, and 20 bytes in base64. */
function digestAcl(length: number): { perms: number; scheme: string; id: string }[] {
  return Array.from({ length }, (_, index) => ({ perms: 31, scheme: 'digest', id: `u${index}:${'A'.repeat(27)}=` }));
}

const guarded = '/guarded';
const readGuarded = encodeRequest(1, { kind: 'getData', path: guarded, watch: false });
const readsAtOnce = 256;
const identities = 300;
const watchers = 50;
const changes = 5;

export const longRequests: readonly Attack[] = [
  ...([1, 3] as const).flatMap((servers): Attack[] => [
    {
      name: `long-listings-${servers}`,
      servers,
      prepare: prepareWide,
      run: (site, signal) => repeatFromFour(site, signal, encodeRequest(2, list)),
    },
    {
      name: `long-multis-${servers}`,
      servers,
      run: (site, signal) => repeatFromFour(site, signal, encodeRequest(2, multi)),
    },
  ]),
  {
    name: 'acl-of-ips',
    servers: 1,
    isBounded: true,
    prepare: ({ target }) => createOne(target.ports.client, { kind: 'create', path: guarded, data: '', acl: ipAcl(36_000), flags: 0 }),
    run: ({ target }, signal) =>
      runAttackers(1, target.ports.client, signal, async (attacker) => {
        for (let read = 0; read < readsAtOnce; read++) await attacker.write(readGuarded);
        await attacker.untilAnswered();
      }),
  },
  {
    name: 'acl-of-digests',
    servers: 1,
    prepare: ({ target }) => createOne(target.ports.client, { kind: 'create', path: guarded, data: '', acl: digestAcl(18_000), flags: 0 }),
    run: ({ target }, signal) =>
      runAttackers(1, target.ports.client, signal, async (attacker) => {
        for (let count = 0; count < identities; count++)
          await attacker.send({ kind: 'auth', scheme: 'digest', auth: `i${count}:secret` }, -4);
        while (!signal.aborted) {
          for (let read = 0; read < readsAtOnce; read++) await attacker.write(readGuarded);
          if (!(await attacker.untilAnswered())) return;
        }
      }),
  },
  {
    name: 'watches-behind-acl',
    servers: 1,
    prepare: ({ target }) =>
      createOne(target.ports.client, { kind: 'create', path: guarded, data: '', acl: [...ipAcl(35_000), ...openToAll], flags: 0 }),
    run: async ({ target }, signal) => {
      const port = target.ports.client;
      await Promise.all([
        runAttackers(watchers, port, signal, async (attacker) => {
          await attacker.send({ kind: 'addWatch', path: guarded, mode: 0 });
          while (!signal.aborted && !attacker.isClosed) await delay(100);
        }),
        runAttackers(1, port, signal, async (attacker) => {
          for (let change = 0; change < changes; change++) await attacker.send({ kind: 'setData', path: guarded, data: 'x', version: -1 });
          await attacker.untilAnswered();
        }),
      ]);
    },
  },
  {
    name: 'listings-of-one-address',
    servers: 1,
    prepare: prepareWide,
    run: ({ target }, signal) =>
      runAttackers(55, target.ports.client, signal, async (attacker) => {
        for (let listing = 0; listing < 20; listing++) await attacker.send(list);
        await attacker.untilAnswered();
      }),
  },
];
