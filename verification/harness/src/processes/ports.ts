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
const reservePortTries = 200;
const reservedPorts = new Set<number>();

/**
 * A port for a server that restarts on it: free at this moment, given to no other caller in this
 * process, and outside of the range from which outgoing connections on the machine may take it
 * while the server is down.
 */
export async function reservePort(): Promise<number> {
  const above = Math.max(lowestReservedPort + 1000, Math.min(await firstOutgoingPort(), portsOfForeignSuites));
  for (let tries = 0; tries < reservePortTries; tries++) {
    const port = lowestReservedPort + Math.floor(Math.random() * (above - lowestReservedPort));
    if (reservedPorts.has(port) || !(await isFree(port))) continue;
    reservedPorts.add(port);
    return port;
  }
  throw new Error(`none of ${reservePortTries} ports between ${lowestReservedPort} and ${above} is free`);
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
