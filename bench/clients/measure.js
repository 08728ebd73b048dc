/**
 * npm run bench -- clients: several clients with one server, in turns, first with Java's server and
 * then with ours. See bench/README.md.
 */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';

import { connect, op } from '../../packages/client/dist/index.js';
import { startServer } from '../servers.js';
import { rotated } from '../rotation.js';
import { checkClaims } from './claims.js';
import { availableClients, startClient } from './clients.js';
import { bareOp, bytes, requestsOf, rows, znodes } from './rows.js';

const root = '/bench';
const watched = '/watched';

/**
 * Creates the znodes that are read, and those that are watched. Returns a function that fires all
 * watches in one txn.
 */
async function prepare(connectString) {
  const zk = await connect(connectString, { sessionTimeoutMs: 30_000 });
  const data = 'x'.repeat(bytes);
  const { count } = rows.find((row) => row.kind === 'watch');
  await Promise.all([root, watched].map((each) => zk.create(each)));
  await Promise.all([
    ...Array.from({ length: znodes }, (_, index) => zk.create(`${root}/${index}`, data)),
    ...Array.from({ length: count }, (_, index) => zk.create(`${watched}/${index}`)),
  ]);
  const fire = () => zk.multi(Array.from({ length: count }, (_, index) => op.setData(`${watched}/${index}`, 'x')));
  return { fire, close: () => zk.close() };
}

async function measureLoad(client, server, load, seconds) {
  const before = await server.metric('zk_packets_received');
  const result = await client.ask({ do: 'load', root, znodes, bytes, seconds, ...load });
  const received = (await server.metric('zk_packets_received')) - before;
  // A client that reports more requests than it sent would appear fast.
  const asked = result.operations * requestsOf[load.op];
  if (received < asked) throw new Error(`the client "${client.kind}" reports ${asked} requests, but the server received ${received}`);
  return {
    throughput: result.operations / result.seconds,
    cpuUsPerOp: (result.cpuSeconds * 1e6) / result.operations,
    p50Us: result.p50Us,
    p99Us: result.p99Us,
  };
}

async function measureWatch(client, { count }, fire) {
  await client.ask({ do: 'watch', root: watched, count });
  const start = performance.now();
  const [{ events, cpuSeconds }] = await Promise.all([client.answer(), fire()]);
  return { cpuUsPerOp: (cpuSeconds * 1e6) / events, allMs: performance.now() - start };
}

async function measureConnect(client, { times }) {
  const { connects, cpuSeconds, p50Us } = await client.ask({ do: 'connect', times });
  return { cpuUsPerOp: (cpuSeconds * 1e6) / connects, p50Us };
}

async function measureOn(serverKind, clients, { folder, rounds, seconds, warmUp, wanted, say, failures }) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const server = await startServer(serverKind, folder);
  const connectString = `127.0.0.1:${server.port}`;
  const started = [];
  const results = [];
  let close = async () => {};
  try {
    const { fire, close: closeWriter } = await prepare(connectString);
    close = closeWriter;
    const memory = {};
    for (const each of clients) {
      const client = await startClient(each, connectString);
      started.push(client);
      memory[client.kind] = { idleMb: await client.rssMb() };
    }
    const measure = (client, row, howLong) => {
      if (row.kind === 'load') return measureLoad(client, server, row.load, howLong);
      return row.kind === 'watch' ? measureWatch(client, row, fire) : measureConnect(client, row);
    };
    for (const row of rows.filter((one) => wanted.includes(one.name))) {
      const demands = row.demands.filter((demand) => demand.server === serverKind);
      const result = { ...row, demands, server: serverKind, rounds: [] };
      results.push(result);
      // The round before the first one warms up the compilers, and does not count.
      for (let round = -1; round < rounds; round++) {
        const measured = {};
        const those = started.filter(({ kind }) => kind !== 'bare' || row.load?.op === bareOp);
        for (const client of rotated(those, round + 1)) {
          try {
            measured[client.kind] = await measure(client, row, round < 0 ? warmUp : seconds);
          } catch (error) {
            failures.push(`${row.name}, server ${serverKind}, round ${round + 1}: ${error.message}`);
            say(failures.at(-1));
          }
        }
        if (round < 0) continue;
        result.rounds.push(measured);
        const costs = Object.entries(measured).map(([kind, { cpuUsPerOp }]) => `${kind} ${cpuUsPerOp.toFixed(1)}`);
        say(`${row.name}, server ${serverKind}, round ${round + 1}: us of CPU per operation: ${costs.join(', ')}`);
      }
    }
    for (const client of started) memory[client.kind].loadedMb = await client.rssMb();
    results.push({ name: 'memory', title: 'resident memory', kind: 'memory', server: serverKind, rounds: [memory], demands: [] });
    for (const client of started) await client.quit();
  } finally {
    for (const client of started) client.kill();
    await close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
  return results;
}

/**
 * Returns results in the form of bench/report.js, with clients in place of servers, for one server
 * after the other.
 */
export async function measureClients({ clientKinds, serverKinds, dataDir, say, ...settings }) {
  const { clients, absent } = await availableClients(clientKinds, say);
  const failures = [...absent, ...(await checkClaims(clients))];
  const results = [];
  for (const kind of serverKinds) {
    const folder = path.join(dataDir, `clients-${kind}`);
    results.push(...(await measureOn(kind, clients, { ...settings, folder, say, failures })));
  }
  const versions = Object.fromEntries(clients.map(({ kind, version }) => [kind, version]));
  const dependencies = Object.fromEntries(
    clients.filter((one) => one.dependencies !== undefined).map((one) => [one.kind, one.dependencies]),
  );
  return { results, versions, dependencies, failures };
}
