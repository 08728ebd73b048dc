/**
 * Attacks by connections: too many, silent ones, ones that read slowly, and ones that send garbage.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import { openToAll } from '../../process/honest-client.ts';
import type { Member } from '../cluster.ts';
import type { Figure } from '../report.ts';
import { type Attack, createOne } from './attack.ts';
import { again, newcomerAddress, Stranger, strangers } from './stranger.ts';

async function dial(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** This many silent connections, opened again when they are closed; `perAddress` of one address. */
async function silent(count: number, port: number, signal: AbortSignal, perAddress = 50): Promise<void> {
  const one = async (index: number): Promise<void> => {
    await again(signal, async () => {
      const socket = await dial(port, `127.0.1.${1 + Math.floor(index / perAddress)}`);
      socket.resume();
      while (!socket.destroyed && !signal.aborted) await delay(200);
      socket.destroy();
      await delay(100);
    });
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}

const portsOf = ({ ports }: Member): number[] => [ports.client, ports.quorum, ports.election];

async function noise(port: number, signal: AbortSignal): Promise<void> {
  await again(signal, async () => {
    const socket = await dial(port, '127.0.0.2');
    socket.resume();
    socket.write(randomBytes(1 + Math.floor(Math.random() * 3000)));
    await delay(Math.random() * 20);
    socket.destroy();
  });
}

const big = '/big';
const newcomerEveryMs = 200;
const newcomerMaxMs = 1000;

/** Clients from other addresses are accepted, and read. */
async function newcomers(port: number, signal: AbortSignal): Promise<Figure> {
  let tried = 0;
  let letIn = 0;
  await delay(1500);
  while (!signal.aborted) {
    tried++;
    const came = Stranger.join(port, newcomerAddress).then(async (stranger) => {
      await stranger.send({ kind: 'exists', path: '/', watch: false });
      const isIn = await stranger.answered(newcomerMaxMs);
      stranger.destroy();
      return isIn;
    });
    const isIn = await Promise.race([came, delay(newcomerMaxMs, false)]).catch(() => false);
    came.catch(() => {});
    if (isIn) letIn++;
    await delay(newcomerEveryMs);
  }
  return { name: 'newcomers', text: `newcomers ${letIn} of ${tried}`, isWithin: tried > 0 && letIn === tried };
}

export const socketAttacks: readonly Attack[] = [
  {
    name: 'few-descriptors',
    servers: 1,
    options: { openFilesMax: 256 },
    run: ({ target }, signal) => silent(400, target.ports.client, signal),
  },
  {
    name: 'slow-readers',
    servers: 1,
    limit: 'every newcomer let in within 1 s',
    prepare: ({ target }) =>
      createOne(target.ports.client, { kind: 'create', path: big, data: 'x'.repeat(1_000_000), acl: openToAll, flags: 0 }),
    run: async ({ target }, signal) => {
      const port = target.ports.client;
      const slow = strangers(58, port, signal, async (stranger) => {
        for (let read = 0; read < 100; read++) await stranger.send({ kind: 'getData', path: big, watch: false });
        // Read a chunk, and then nothing for a second.
        stranger.socket.on('data', () => void stranger.socket.pause());
        while (!signal.aborted && !stranger.isClosed) {
          stranger.socket.resume();
          await delay(1000);
        }
      });
      const [figure] = await Promise.all([newcomers(port, signal), slow]);
      return [figure];
    },
  },
  {
    name: 'random-bytes',
    servers: 3,
    isCheap: true,
    run: async ({ cluster }, signal) => {
      const ports = cluster.members.flatMap(portsOf);
      await Promise.all(ports.flatMap((port) => [noise(port, signal), noise(port, signal)]));
    },
  },
  {
    name: 'silent-connections',
    servers: 3,
    run: async ({ leader, target }, signal) => {
      const ports = [...portsOf(leader), ...portsOf(target)];
      await Promise.all(ports.map((port) => silent(300, port, signal)));
    },
  },
];
