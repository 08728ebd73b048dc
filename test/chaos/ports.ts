/**
 * Ports for servers that come back to them. A port out of the range from which the system takes those of outgoing connections may be gone
 * when its server starts again, since any dial on the machine may have got it meanwhile; these lie below that range.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const rangeFile = '/proc/sys/net/ipv4/ip_local_port_range';
const lowest = 10_000;
const triesMax = 200;
const given = new Set<number>();

/** Where outgoing connections begin; 32768 is Linux's own figure. */
function firstOutgoing(): number {
  try {
    return Number(readFileSync(rangeFile, 'latin1').split(/\s+/)[0]);
  } catch {
    return 32_768;
  }
}

/** A port of 127.0.0.1 that nobody listens on, and that this process gives to nobody else. */
export async function lastingPort(): Promise<number> {
  const above = Math.max(lowest + 1000, firstOutgoing());
  for (let tries = 0; tries < triesMax; tries++) {
    const port = lowest + Math.floor(Math.random() * (above - lowest));
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`none of ${triesMax} ports between ${lowest} and ${above} is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
