/** Ports of this machine for servers of a test. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';

/** A port on which no process listens at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const lowestReservedPort = 10_000;
/** The test suites of kazoo and of ZooKeeper's C client use fixed ports from here on. */
const portsOfForeignSuites = 20_000;
/** The first of them says that a process has the range. */
const portsPerRange = 25;
/** The ports of this process that no caller has. */
let nextPort = 0;
let rangeEnd = 0;
let claiming: Promise<void> | undefined;

/**
 * A port for a server that restarts on it: free at this moment, given to no other caller on this
 * machine, and outside of the range from which outgoing connections may take it while the server is
 * down.
 */
export async function reservePort(): Promise<number> {
  for (;;) {
    while (nextPort === rangeEnd) await (claiming ??= claimRange().finally(() => (claiming = undefined)));
    const port = nextPort++;
    if (await isFree(port)) return port;
  }
}

/** Takes a range of ports that no other process has, until this process ends. */
async function claimRange(): Promise<void> {
  const above = Math.max(lowestReservedPort + 1000, Math.min(await firstOutgoingPort(), portsOfForeignSuites));
  const ranges = Math.floor((above - lowestReservedPort) / portsPerRange);
  const first = Math.floor(Math.random() * ranges);
  for (let tries = 0; tries < ranges; tries++) {
    const start = lowestReservedPort + ((first + tries) % ranges) * portsPerRange;
    if (!(await hold(start))) continue;
    nextPort = start + 1;
    rangeEnd = start + portsPerRange;
    return;
  }
  throw new Error(`other processes have all ranges of ports between ${lowestReservedPort} and ${above}`);
}

/** Listens on a port for as long as the process lives, which it does not keep alive; returns false if that fails. */
function hold(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
    server.unref();
  });
}

/**
 * Where the system's range of ports for outgoing connections begins; Linux's default if the system
 * does not say.
 */
async function firstOutgoingPort(): Promise<number> {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '32768');
  return Number(range.split(/\s+/)[0]);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
