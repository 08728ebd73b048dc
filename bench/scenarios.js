/**
 * Measurements that are more than one run of the generator. Each receives a function that starts
 * servers, and returns its measures by name.
 *
 * A stall is measured from outside: an honest client reads one znode a thousand times a second
 * during heavy work, and its longest wait for a reply is the stall. `probeLateMs` is how late that
 * client itself was at most; a stall of that size means nothing.
 */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

import { runGenerator, startGenerator } from './generator/generator.js';

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Starts of one server differ little; the median of three excludes an outlier. */
const starts = 3;
/** Long enough for work after a start, such as a first garbage collection. */
const idleMs = 10_000;
/**
 * Starts of a TestEnsemble, each in its own process, as in a test file: nothing is compiled yet.
 */
const coldStarts = 20;
const sessionTimeoutMs = 4000;
const tickMs = 2000;

/** The probe's results during `work`. */
async function measureWithProbe(program, server, work) {
  const probe = startGenerator(program, 'probe', { port: server.port, interval: 1 });
  // A failed probe must not become an unhandled rejection; `stop` below rejects with the same
  // error.
  probe.result.catch(() => {});
  const value = await work();
  const { latencyUs, lateUsMax, operations } = await probe.stop();
  return { value, maxMs: latencyUs.max / 1000, p99Ms: latencyUs.p99 / 1000, lateMs: lateUsMax / 1000, operations };
}

async function snapshotsOf(server) {
  const names = await readdir(path.join(server.dataDir, 'version-2'));
  return new Set(names.filter((name) => name.startsWith('snapshot.')));
}

/**
 * Writes until a new snapshot has appeared, and a little longer, since a server may create the file
 * before it has written it.
 */
async function untilSnapshot(program, server) {
  const before = await snapshotsOf(server);
  for (let attempt = 0; attempt < 30; attempt++) {
    await runGenerator(program, 'load', { port: server.port, op: 'setData', connections: 8, inFlight: 2, znodes: 1000, seconds: 2 });
    const after = await snapshotsOf(server);
    if ([...after].some((name) => !before.has(name))) {
      await runGenerator(program, 'load', { port: server.port, op: 'getData', connections: 1, znodes: 1000, seconds: 4 });
      return true;
    }
  }
  return false;
}

async function millionZnodes({ program, row, start }) {
  const server = await start({ heap: row.heap });
  const { port } = server;
  // The probe needs a znode to read.
  await runGenerator(program, 'preload', { port, znodes: 1000 });
  const loading = await measureWithProbe(program, server, () =>
    runGenerator(program, 'preload', { port, first: 1000, znodes: row.znodes - 1000 }),
  );
  const { rssMb, peakRssMb } = await server.memory();
  const snapshot = await measureWithProbe(program, server, () => untilSnapshot(program, server));
  if (!snapshot.value) throw new Error(`"${server.kind}" took no snapshot in a minute of writes`);
  await runGenerator(program, 'expire', { port, connections: row.sessions, sessionTimeout: sessionTimeoutMs });
  const expiry = await measureWithProbe(program, server, () => delay(sessionTimeoutMs + 2 * tickMs));
  const left = await server.metric('zk_ephemerals_count');
  if (left !== 0) throw new Error(`"${server.kind}" still has ${left} ephemeral znodes of sessions that should have expired`);
  await server.stop();
  return {
    rssMb,
    peakRssMb,
    loadSeconds: loading.value.seconds,
    loadPerSecond: loading.value.throughput,
    stallLoadingMs: loading.maxMs,
    stallSnapshotMs: snapshot.maxMs,
    stallExpiryMs: expiry.maxMs,
    stallMs: Math.max(loading.maxMs, snapshot.maxMs, expiry.maxMs),
    probeLateMs: Math.max(loading.lateMs, snapshot.lateMs, expiry.lateMs),
  };
}

async function restart({ program, row, start }) {
  const emptySeconds = [];
  const fullSeconds = [];
  for (let i = 0; i < starts; i++) {
    const server = await start({ fresh: true });
    emptySeconds.push(server.startSeconds);
    await server.stop();
  }
  const filled = await start({ fresh: true, heap: row.heap });
  await runGenerator(program, 'preload', { port: filled.port, znodes: row.znodes });
  await filled.stop();
  for (let i = 0; i < starts; i++) {
    const server = await start({ heap: row.heap });
    const count = await server.metric('zk_znode_count');
    if (count < row.znodes) throw new Error(`"${server.kind}" has ${count} znodes instead of ${row.znodes} after its restart`);
    fullSeconds.push(server.startSeconds);
    await server.stop();
  }
  return { emptySeconds: median(emptySeconds), fullSeconds: median(fullSeconds) };
}

async function millionWatches({ program, row, start }) {
  const server = await start({});
  await runGenerator(program, 'preload', { port: server.port, znodes: row.znodes });
  const options = { port: server.port, connections: row.connections, znodes: row.znodes };
  const { value, maxMs, lateMs } = await measureWithProbe(program, server, () => runGenerator(program, 'watches', options));
  const { peakRssMb } = await server.memory();
  await server.stop();
  return { ...value, heartbeatMs: maxMs, probeLateMs: lateMs, peakRssMb };
}

async function idleMemory({ start }) {
  const megabytes = [];
  for (let i = 0; i < starts; i++) {
    const server = await start({ fresh: true });
    await delay(idleMs);
    megabytes.push((await server.memory()).rssMb);
    await server.stop();
  }
  return { rssMb: median(megabytes), leastRssMb: Math.min(...megabytes), mostRssMb: Math.max(...megabytes) };
}

async function testEnsemble() {
  const milliseconds = [];
  for (let i = 0; i < coldStarts; i++) {
    const { stdout } = await promisify(execFile)(process.execPath, [path.join(import.meta.dirname, 'test-ensemble.js')]);
    milliseconds.push(Number(stdout));
  }
  return { startMs: median(milliseconds), leastStartMs: Math.min(...milliseconds), mostStartMs: Math.max(...milliseconds) };
}

export const scenarios = {
  'million-znodes': millionZnodes,
  restart,
  'million-watches': millionWatches,
  'idle-memory': idleMemory,
  'test-ensemble': testEnsemble,
};
