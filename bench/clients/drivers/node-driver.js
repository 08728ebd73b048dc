/**
 * The common part of the drivers of clients for Node: reads commands from standard input, one JSON
 * object per line, and answers each with a line.
 *
 * A driver is written like a program that uses its client: with `await` if the client has promises,
 * with callbacks if it has these. It checks each reply, so that no client can be fast by skipping
 * work.
 */
import { createInterface } from 'node:readline';

/** Only every eighth request of a lane is timed, so that timing costs little. */
const timedEvery = 8;

function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** One measurement: its lanes, its end, and its result. */
class Load {
  operations = 0;
  over = false;
  timesMs = [];

  /** A request of a lane was answered. */
  done(startMs) {
    this.operations++;
    if (startMs !== undefined) this.timesMs.push(performance.now() - startMs);
  }
}

/** One request after the other, with a function that returns a promise. */
async function promiseWorker(load, one) {
  for (let turn = 0; !load.over; turn++) {
    const startMs = turn % timedEvery === 0 ? performance.now() : undefined;
    await one();
    load.done(startMs);
  }
}

/** The same with a function that takes a callback. */
function callbackWorker(load, one) {
  return new Promise((resolve, reject) => {
    let turn = 0;
    const next = () => {
      if (load.over) {
        resolve();
        return;
      }
      const startMs = turn++ % timedEvery === 0 ? performance.now() : undefined;
      one((error) => {
        if (error) {
          reject(error);
          return;
        }
        load.done(startMs);
        next();
      });
    };
    next();
  });
}

/** User and system time of all threads of this process since `since`. */
function cpuSeconds(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

async function measureLoad(lane, operationOf, { op, inFlight, seconds }) {
  const load = new Load();
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const timer = setTimeout(() => {
    load.over = true;
  }, seconds * 1000);
  await Promise.all(Array.from({ length: inFlight }, (_, index) => lane(load, operationOf(op, index))));
  clearTimeout(timer);
  const elapsed = (performance.now() - start) / 1000;
  const cpu = cpuSeconds(cpuBefore);
  const sorted = load.timesMs.toSorted((a, b) => a - b);
  return {
    operations: load.operations,
    seconds: elapsed,
    cpuSeconds: cpu,
    p50Us: percentile(sorted, 0.5) * 1000,
    p99Us: percentile(sorted, 0.99) * 1000,
  };
}

/**
 * Runs the driver. `adapter.open()` returns a connected client, for which the adapter has
 * - `style`, `promise` or `callback`, of the functions below
 * - `getData(client, path, bytes)`, `setData(client, path, data)`, `createAndDelete(client, path)`,
 *   each returning a function for one lane
 * - `watchData(client, path, onEvent)`, a promise: a watch for one change
 * - `close(client)`, a promise
 */
export async function drive(adapter) {
  const lane = adapter.style === 'promise' ? promiseWorker : callbackWorker;
  const say = (answer) => console.log(JSON.stringify(answer));
  let client;
  const commands = {
    open: async () => {
      client = await adapter.open();
      return {};
    },
    load: (command) => {
      const { root, znodes, bytes } = command;
      const data = Buffer.alloc(bytes, 'x');
      const operationOf = (op, index) => {
        // Lanes start at different znodes.
        let at = index * 61;
        const next = () => `${root}/${at++ % znodes}`;
        switch (op) {
          case 'getData':
            return adapter.getData(client, next, bytes);
          case 'setData':
            return adapter.setData(client, next, data);
          case 'createAndDelete':
            return adapter.createAndDelete(client, `${root}/e-${process.pid}-${index}`);
          default:
            throw new Error(`unknown load ${op}`);
        }
      };
      return measureLoad(lane, operationOf, command);
    },
    /** Answers twice: when the watches are set, and when all of them have fired. */
    watch: async ({ root, count }) => {
      let left = count;
      const cpu = {};
      const fired = new Promise((resolve) => {
        const onEvent = () => {
          if (--left === 0) resolve();
        };
        cpu.armed = Promise.all(Array.from({ length: count }, (_, index) => adapter.watchData(client, `${root}/${index}`, onEvent)));
      });
      await cpu.armed;
      const before = process.cpuUsage();
      say({ armed: count });
      await fired;
      return { events: count, cpuSeconds: cpuSeconds(before) };
    },
    connect: async ({ times }) => {
      const timesMs = [];
      const before = process.cpuUsage();
      for (let i = 0; i < times; i++) {
        const start = performance.now();
        const other = await adapter.open();
        await adapter.close(other);
        timesMs.push(performance.now() - start);
      }
      const cpu = cpuSeconds(before);
      return {
        connects: times,
        cpuSeconds: cpu,
        p50Us:
          percentile(
            timesMs.toSorted((a, b) => a - b),
            0.5,
          ) * 1000,
      };
    },
    quit: async () => {
      await adapter.close(client);
      return {};
    },
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
      say(await commands[command.do](command));
    } catch (error) {
      say({ error: String(error?.stack ?? error) });
    }
    // A client may leave something that keeps the process alive.
    if (command.do === 'quit') process.exit();
  }
}

export function checkBytes(data, bytes) {
  if (data.length !== bytes) throw new Error(`expected ${bytes} bytes, got ${data.length}`);
}
