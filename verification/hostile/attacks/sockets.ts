/**
 * Attacks by connections: too many, silent ones, ones that read slowly, and ones that send garbage.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import { openToAll } from '../../processes/honest-client.ts';
import type { EnsemblePeer } from '@tskeeper/harness';
import type { Figure } from '../report.ts';
import { type Attack, createOne } from './attack.ts';
import { repeatUntilAborted, newClientAddress, Attacker, runAttackers } from './attacker.ts';

async function dial(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** This many silent connections, opened again when they are closed; `perAddress` of one address. */
async function silentCnxns(count: number, port: number, signal: AbortSignal, perAddress = 50): Promise<void> {
  const one = async (index: number): Promise<void> => {
    await repeatUntilAborted(signal, async () => {
      const socket = await dial(port, `127.0.1.${1 + Math.floor(index / perAddress)}`);
      socket.resume();
      while (!socket.destroyed && !signal.aborted) await delay(200);
      socket.destroy();
      await delay(100);
    });
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}

const portsOf = ({ ports }: EnsemblePeer): number[] => [ports.client, ports.quorum, ports.election];

async function randomBytesCnxns(port: number, signal: AbortSignal): Promise<void> {
  await repeatUntilAborted(signal, async () => {
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
async function newClientsFigure(port: number, signal: AbortSignal): Promise<Figure> {
  let tried = 0;
  let letIn = 0;
  await delay(1500);
  while (!signal.aborted) {
    tried++;
    const came = Attacker.connect(port, newClientAddress).then(async (attacker) => {
      await attacker.send({ kind: 'exists', path: '/', watch: false });
      const isIn = await attacker.untilAnswered(newcomerMaxMs);
      attacker.destroy();
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
    run: ({ target }, signal) => silentCnxns(400, target.ports.client, signal),
  },
  {
    name: 'slow-readers',
    servers: 1,
    limit: 'every newcomer let in within 1 s',
    prepare: ({ target }) =>
      createOne(target.ports.client, { kind: 'create', path: big, data: 'x'.repeat(1_000_000), acl: openToAll, flags: 0 }),
    run: async ({ target }, signal) => {
      const port = target.ports.client;
      const slow = runAttackers(58, port, signal, async (attacker) => {
        for (let read = 0; read < 100; read++) await attacker.send({ kind: 'getData', path: big, watch: false });
        // Read a chunk, and then nothing for a second.
        attacker.socket.on('data', () => void attacker.socket.pause());
        while (!signal.aborted && !attacker.isClosed) {
          attacker.socket.resume();
          await delay(1000);
        }
      });
      const [figure] = await Promise.all([newClientsFigure(port, signal), slow]);
      return [figure];
    },
  },
  {
    name: 'random-bytes',
    servers: 3,
    isBounded: true,
    run: async ({ ensemble }, signal) => {
      const ports = ensemble.peers.flatMap(portsOf);
      await Promise.all(ports.flatMap((port) => [randomBytesCnxns(port, signal), randomBytesCnxns(port, signal)]));
    },
  },
  {
    name: 'silent-connections',
    servers: 3,
    run: async ({ leader, target }, signal) => {
      const ports = [...portsOf(leader), ...portsOf(target)];
      await Promise.all(ports.map((port) => silentCnxns(300, port, signal)));
    },
  },
];
