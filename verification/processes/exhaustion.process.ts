/**
 * F34: the server exhausts a resource: the heap, descriptors, threads. It rejects new work first,
 * and keeps everything acknowledged.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { open, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ErrorCode } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { type Endpoint, endpointOf, OperationClient, type ServerProcess, startServer, within } from '@tskeeper/harness';
import type { AclEntry, Operation } from '@tskeeper/simulator';
import { HonestClient, openToAll } from './honest-client.ts';
import { inFolder } from './servers.ts';

const slowestMsMax = 5000;
/** Time limit of waits for events that must happen, on any machine. */
const patienceMs = 60_000;

async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const lateMs = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > lateMs) throw new Error(`no ${what} within ${patienceMs} ms`);
    await delay(20);
  }
}

async function untilLogged(server: ServerProcess, text: RegExp): Promise<void> {
  const says = async (): Promise<boolean> => {
    if (!server.alive) throw new Error(`the server ended:\n${(await server.log()).slice(-3000)}`);
    return text.test(await server.log());
  };
  await until(says, `line like ${text}`);
}

/** undefined if the server rejects the session. */
async function maybeJoined(endpoint: Endpoint): Promise<OperationClient | undefined> {
  const client = await OperationClient.open(endpoint).catch(() => undefined);
  return (await client?.openSession(30_000)) === undefined ? undefined : client;
}

async function joined(endpoint: Endpoint, timeoutMs = 30_000): Promise<OperationClient> {
  const client = await OperationClient.open(endpoint);
  const session = await client.openSession(timeoutMs);
  if (session === undefined || session.timeOut === 0) throw new Error('the server gave no session');
  return client;
}

async function errOf(client: OperationClient, operation: Operation): Promise<number | undefined> {
  return (await client.call(operation))?.err;
}

describe('F34: a heap of 64 MB', () => {
  const nodeArguments = ['--max-old-space-size=64'];

  /** Each distinct list is stored once, on the heap; all of these differ. */
  function aclOf(name: string): AclEntry[] {
    return [...openToAll, { perms: 31, scheme: 'digest', id: `${name}:${'x'.repeat(1000)}` }];
  }

  /**
   * Pause between two rounds of each flooder: the honest client runs in the same process, and needs
   * its turn.
   */
  const breathMs = 20;

  /** Everything that makes a server grow, all at once, until it is stopped. */
  class Flood {
    readonly #endpoint: Endpoint;
    readonly acknowledged = new Map<string, number>();
    readonly errors = new Map<number | undefined, number>();
    stopped = false;

    constructor(endpoint: Endpoint) {
      this.#endpoint = endpoint;
    }

    async run(): Promise<void> {
      await Promise.all([
        ...Array.from({ length: 8 }, (_, index) => this.#create(`acl${index}`, 100, (name) => ({ data: '', acl: aclOf(name) }))),
        ...Array.from({ length: 4 }, (_, index) => this.#create(`big${index}`, 2, () => ({ data: 'x'.repeat(100_000), acl: openToAll }))),
        ...Array.from({ length: 4 }, (_, index) => this.#watch(`watch${index}`)),
        this.#multis(),
        this.#sessions(),
      ]);
    }

    #note(err: number | undefined): void {
      this.errors.set(err, (this.errors.get(err) ?? 0) + 1);
    }

    async #create(name: string, atOnce: number, fields: (name: string) => { data: string; acl: readonly AclEntry[] }): Promise<void> {
      const client = await joined(this.#endpoint);
      for (let count = 0; !this.stopped && !client.closed;) {
        const names = Array.from({ length: atOnce }, () => `${name}-${count++}`);
        const replies = names.map((one) => client.call({ kind: 'create', path: `/flood/${one}`, flags: 0, ...fields(one) }));
        for (const [index, reply] of (await Promise.all(replies)).entries()) {
          this.#note(reply?.err);
          if (reply?.err === 0) this.acknowledged.set(names[index]!, fields(names[index]!).data.length);
        }
        await delay(breathMs);
      }
      client.destroy();
    }

    async #watch(name: string): Promise<void> {
      const client = await joined(this.#endpoint);
      for (let count = 0; !this.stopped && !client.closed;) {
        const asked = Array.from({ length: 100 }, () => client.call({ kind: 'exists', path: `/${name}/${count++}`, watch: true }));
        for (const reply of await Promise.all(asked)) this.#note(reply?.err);
        await delay(breathMs);
      }
      client.destroy();
    }

    /** The longest multis that the server allows, with as many parts as fit. */
    async #multis(): Promise<void> {
      const client = await joined(this.#endpoint);
      const steps = Array.from({ length: 20_000 }, () => ({ kind: 'setData' as const, path: '/many', data: '', version: -1 }));
      while (!this.stopped && !client.closed) {
        this.#note(await errOf(client, { kind: 'multi', steps }));
        await delay(100);
      }
      client.destroy();
    }

    async #sessions(): Promise<void> {
      const clients: OperationClient[] = [];
      while (!this.stopped && clients.length < 1000) {
        const client = await maybeJoined(this.#endpoint);
        if (client === undefined) await delay(20);
        else clients.push(client);
      }
      for (const client of clients) client.destroy();
    }
  }

  it('is never exhausted: the server rejects requests that add data, serves others, and has every acknowledged write after a restart', async () => {
    await inFolder(async (folder) => {
      const config = { tickTime: 2000, snapCount: 5000, preAllocSize: 1024 };
      let server = await startServer({ kind: 'ours', folder, config, nodeArguments });
      try {
        const endpoint = endpointOf(server.connectString);
        const honest = await HonestClient.start(endpoint);
        for (const one of ['/flood', '/many', '/gone'])
          await honest.ask({ kind: 'create', path: one, data: '12345', acl: openToAll, flags: 0 });
        const witness = await joined(endpoint);
        const flood = new Flood(endpoint);
        const flooding = flood.run();
        await untilLogged(server, /memory is full: the JavaScript heap/);
        // The server has to hold out for a while after its first warning.
        const answered = honest.answers;
        await until(async () => {
          // A client that is silent for its session timeout loses its session.
          await witness.call({ kind: 'ping' });
          return (flood.errors.get(ErrorCode.ThrottledOp) ?? 0) > 10_000 && honest.answers - answered > 20;
        }, 'flood that is refused beside a client that is served');

        const { client } = honest;
        let mores = 0;
        /**
         * Whether memory is full: the usage varies with garbage on the heap, so the state may
         * change back.
         */
        const isFull = async (): Promise<boolean> => {
          const err = await errOf(client, { kind: 'create', path: `/more-${mores++}`, data: '', acl: openToAll, flags: 0 });
          expect([0, ErrorCode.ThrottledOp]).toContain(err);
          return err === ErrorCode.ThrottledOp;
        };
        await until(async () => {
          const [before, larger, equal, behind] = await Promise.all([
            isFull(),
            errOf(client, { kind: 'setData', path: '/many', data: '123456', version: -1 }),
            errOf(client, { kind: 'setData', path: '/gone', data: '54321', version: -1 }),
            isFull(),
          ]);
          expect(equal).toBe(0);
          if (before && behind) expect(larger).toBe(ErrorCode.ThrottledOp);
          return before && behind;
        }, 'refusal of larger data');
        await until(isFull, 'refusal of a create');
        expect(await errOf(client, { kind: 'multi', steps: [{ kind: 'delete', path: '/gone', version: -1 }] })).toBe(0);
        await until(async () => (await maybeJoined(endpoint)) === undefined, 'refusal of a session');
        witness.destroy();
        const again = await OperationClient.open(endpoint);
        expect((await again.openSession(30_000, witness.session))?.sessionId).toBe(witness.session!.sessionId);
        expect(await errOf(again, { kind: 'closeSession' })).toBe(0);

        flood.stopped = true;
        await flooding;
        await honest.stop();
        console.log(
          JSON.stringify({
            acknowledged: flood.acknowledged.size,
            errors: [...flood.errors],
            answers: honest.answers,
            slowestMs: Math.round(honest.slowestMs),
          }),
        );
        expect(honest.wrong).toEqual([]);
        expect(honest.slowestMs).toBeLessThan(slowestMsMax);
        expect(flood.acknowledged.size).toBeGreaterThan(500);
        expect(server.alive).toBe(true);
        await server.kill();

        server = await startServer({ kind: 'ours', folder, config, nodeArguments });
        const reader = await OperationClient.open(endpointOf(server.connectString));
        // It may be full again from the start; existing sessions are kept.
        expect((await reader.openSession(30_000, client.session))?.timeOut).toBe(30_000);
        const children = new Set((await reader.call({ kind: 'getChildren', path: '/flood', watch: false }))!.body!.children);
        expect([...flood.acknowledged.keys()].filter((name) => !children.has(name))).toEqual([]);
        for (const [name, bytes] of flood.acknowledged) {
          if (bytes > 0)
            expect((await reader.call({ kind: 'exists', path: `/flood/${name}`, watch: false }))!.body!.stat!.dataLength).toBe(bytes);
        }

        const gone = [...children].map((name) => reader.call({ kind: 'delete', path: `/flood/${name}`, version: -1 }));
        expect(new Set((await Promise.all(gone)).map((reply) => reply?.err))).toEqual(new Set([0]));
        const more = async (): Promise<number | undefined> =>
          errOf(reader, { kind: 'create', path: '/more', data: '', acl: openToAll, flags: 0 });
        await until(async () => (await more()) === 0, 'create after all that had been created was deleted');
        reader.destroy();
      } finally {
        await server.kill();
      }
    });
  });
});

describe('F34: a process limit of 224 MB', () => {
  const limitMb = 224;

  async function residentMb(pid: number): Promise<number> {
    return Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
  }

  it('is not exhausted by znodes, which are outside of the heap, and deletes free memory for new ones', async () => {
    await inFolder(async (folder) => {
      const config = { tickTime: 2000, preAllocSize: 1024, 'tskeeper.memoryLimitInMb': limitMb };
      const server = await startServer({ kind: 'ours', folder, config });
      try {
        const honest = await HonestClient.start(endpointOf(server.connectString));
        const writer = await joined(endpointOf(server.connectString));
        const relieved = async (): Promise<number> => (await server.log()).split('memory pressure is over: this process').length;
        const filled: number[] = [];
        let mostMb = 0;
        // Twice, since memory freed by deletes stays with the process, and the second round has to
        // use it.
        for (const round of ['a', 'b']) {
          const names: string[] = [];
          for (let refused = 0; refused === 0;) {
            const paths = Array.from({ length: 200 }, (_, index) => `/${round}${names.length + index}`);
            const replies = await Promise.all(
              paths.map((one) => writer.call({ kind: 'create', path: one, data: 'x'.repeat(8000), acl: openToAll, flags: 0 })),
            );
            names.push(...paths.filter((_, index) => replies[index]?.err === 0));
            refused = replies.filter((reply) => reply?.err === ErrorCode.ThrottledOp).length;
            mostMb = Math.max(mostMb, await residentMb(server.pid));
            await delay(5);
          }
          filled.push(names.length);
          const before = await relieved();
          for (let at = 0; at < names.length; at += 500) {
            const gone = names.slice(at, at + 500).map((one) => writer.call({ kind: 'delete', path: one, version: -1 }));
            expect(new Set((await Promise.all(gone)).map((reply) => reply?.err))).toEqual(new Set([0]));
          }
          await until(async () => (await relieved()) > before, 'memory freed by the deletes');
        }
        await honest.stop();
        console.log(JSON.stringify({ filled, mostMb: Math.round(mostMb), slowestMs: Math.round(honest.slowestMs) }));
        expect(honest.wrong).toEqual([]);
        expect(mostMb).toBeLessThan(limitMb);
        expect(filled[0]).toBeGreaterThan(5000);
        expect(filled[1]).toBeGreaterThan(filled[0]! / 2);
        writer.destroy();
      } finally {
        await server.kill();
      }
    });
  });
});

/**
 * Few enough for the clients of the test to use up, and enough to start: Node's module loader opens
 * files of the server in parallel, and 80 were too few for it.
 */
const openFilesMax = 96;

describe('F34: a limit of 96 open files', () => {
  it('is not exhausted by clients: logs roll, snapshots are written, and open connections stay open', async () => {
    await inFolder(async (folder) => {
      const config = { tickTime: 2000, snapCount: 100, preAllocSize: 64, 'autopurge.snapRetainCount': 3 };
      const server = await startServer({ kind: 'ours', folder, config, openFilesMax });
      try {
        const endpoint = endpointOf(server.connectString);
        const honest = await HonestClient.start(endpoint);
        const others: OperationClient[] = [];
        for (let index = 0; index < 100; index++) {
          const client = await maybeJoined(endpoint);
          if (client !== undefined) others.push(client);
        }
        for (let write = 0; write < 1000; write++) {
          expect((await honest.ask({ kind: 'create', path: '/n-', data: '', acl: openToAll, flags: 2 })).err).toBe(0);
        }
        const names = await readdir(path.join(server.dataDir, 'version-2'));
        const descriptors = (await readdir(`/proc/${server.pid}/fd`)).length;
        const served = others.length;
        console.log(JSON.stringify({ served, descriptors, files: names.length, slowestMs: Math.round(honest.slowestMs) }));
        expect(served).toBeGreaterThan(5);
        expect(served).toBeLessThan(70);
        expect(names.filter((name) => name.startsWith('log.')).length).toBeGreaterThan(5);
        expect(names.filter((name) => name.startsWith('snapshot.')).length).toBeGreaterThan(5);
        const log = await server.log();
        expect(log).toMatch(/was refused.* Raise the limit of open files/);
        expect(log).not.toMatch(/EMFILE|"error"/);

        for (const client of others) client.destroy();
        // The server learns of the closed connections one after the other.
        await until(async () => (await maybeJoined(endpoint)) !== undefined, 'session for a newcomer');
        await honest.stop();
        expect(honest.wrong).toEqual([]);
        expect(honest.slowestMs).toBeLessThan(slowestMsMax);
        expect(await server.stop()).toBe(true);
      } finally {
        await server.kill();
      }
    });
  });
});

describe.concurrent('F34: a pool without a free thread', () => {
  const preload = fileURLToPath(new URL('block-threads.js', import.meta.url));

  interface Blocked {
    readonly server: ServerProcess;
    readonly honest: HonestClient;
    readonly writer: OperationClient;
    readonly folder: string;
    readonly release: () => Promise<void>;
  }

  /** A server whose threads all wait, and a write that needs one of them. */
  async function blocked(work: (blocked: Blocked) => Promise<void>): Promise<void> {
    await inFolder(async (folder) => {
      const pipe = path.join(folder, 'pipe');
      execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
      const server = await startServer({
        kind: 'ours',
        folder,
        // The server's disk timeout is the longest session timeout, and at least ten seconds.
        config: { tickTime: 500, maxSessionTimeout: 4000 },
        nodeArguments: ['--import', preload],
      });
      try {
        const endpoint = endpointOf(server.connectString);
        const honest = await HonestClient.start(endpoint);
        const writer = await joined(endpoint);
        expect(await errOf(writer, { kind: 'create', path: '/kept', data: 'kept', acl: openToAll, flags: 0 })).toBe(0);
        process.kill(server.pid, 'SIGUSR2');
        await until(() => existsSync(`${pipe}.blocked`), 'blocked threads');
        const release = async (): Promise<void> => {
          await (await open(pipe, 'w')).close();
        };
        await work({ server, honest, writer, folder, release });
      } finally {
        await server.kill();
      }
    });
  }

  it('delays only writes, which are answered when threads are free again', async () => {
    await blocked(async ({ server, honest, writer, release }) => {
      const xid = writer.send({ kind: 'setData', path: '/kept', data: 'later', version: -1 });
      let isAnswered = false;
      const answer = writer.receive(xid).finally(() => (isAnswered = true));
      // None of these replies would arrive if it had to wait for the write, which waits for a
      // thread.
      const before = honest.answers;
      await until(() => honest.answers - before > 50, 'answers beside a write that waits');
      expect(isAnswered).toBe(false);
      await release();
      expect((await answer).at(-1)).toMatchObject({ kind: 'reply', err: 0 });
      await honest.stop();
      expect(honest.wrong).toEqual([]);
      expect(await server.stop()).toBe(true);
    });
  });

  it('ends the process when no thread becomes free, and a restart has every acknowledged write', async () => {
    await blocked(async ({ server, honest, writer, folder }) => {
      const begunMs = performance.now();
      writer.send({ kind: 'setData', path: '/kept', data: 'lost?', version: -1 });
      const { code, signal } = await within(patienceMs, 'end', server.exited);
      await honest.stop();
      console.log(
        JSON.stringify({ code, signal, afterMs: Math.round(performance.now() - begunMs), slowestMs: Math.round(honest.slowestMs) }),
      );
      expect(code === 3 || signal === 'SIGKILL').toBe(true);
      expect(await server.log()).toMatch(/the disk failed: append to the log in .*ETIMEDOUT/);
      const next = await startServer({ kind: 'ours', folder });
      try {
        const reader = await joined(endpointOf(next.connectString));
        expect((await reader.call({ kind: 'getData', path: '/kept', watch: false }))!.body!.data).toMatch(/^(kept|lost\?)$/);
        reader.destroy();
      } finally {
        await next.kill();
      }
    });
  });

  it('does not keep a server from ending on SIGTERM', async () => {
    await blocked(async ({ server, honest, writer }) => {
      writer.send({ kind: 'setData', path: '/kept', data: 'lost?', version: -1 });
      expect(await server.stop(patienceMs)).toBe(true);
      await honest.stop();
    });
  });
});
