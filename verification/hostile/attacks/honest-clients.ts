/**
 * The honest clients, in their own process, so that an attack slows the servers and not the
 * measurement. Every 20 ms each sends one read and two writes, whatever the replies: the latency of
 * a delayed request counts from the time when it was due.
 *
 * In addition there are sessions that are abandoned one by one after the attack has begun. They are
 * opened before it, since a server under attack may accept no sessions. An honest client checks
 * when their ephemeral znodes are deleted.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Operation } from '@tskeeper/simulator';
import { openToAll } from '../../processes/honest-client.ts';
import { OperationClient } from '@tskeeper/harness';
import { helperMain } from '../helper-process.ts';
import { percentile } from '../report.ts';
import type { HonestMessage, HonestOptions, HonestReport, HonestCommand } from './honest-messages.ts';

const host = '127.0.0.1';
const roundMs = 20;
const sessionTimeoutMs = 20_000;
const retryMs = 50;
/** Maximum number of rounds without a reply; a server that answers none of these is down. */
const roundsOutstandingMax = 500;
const examplesMax = 5;
const abandonedAfterMs = [500, 2000, 3500];
const pollMs = 20;
const nodeExists = -110;
const noNode = -101;

class Tally {
  answers = 0;
  errors = 0;
  latencies: number[] = [];
  lags: number[] = [];
  readonly examples: string[] = [];
  /** Only what happens during the attack counts. */
  isCounting = false;

  error(text: string): void {
    if (!this.isCounting) return;
    this.errors++;
    if (this.examples.length < examplesMax) this.examples.push(text);
  }

  answered(latencyMs: number): void {
    if (!this.isCounting) return;
    this.answers++;
    this.latencies.push(latencyMs);
  }
}

class HonestClient {
  readonly #port: number;
  readonly #tally: Tally;
  readonly #path: string;
  #client: OperationClient | undefined;
  #outstanding = 0;

  constructor(port: number, tally: Tally) {
    this.#port = port;
    this.#tally = tally;
    this.#path = `/honest-${port}`;
  }

  async start(): Promise<void> {
    const client = await OperationClient.open({ host, port: this.#port });
    if (((await client.openSession(sessionTimeoutMs))?.timeOut ?? 0) <= 0) throw new Error('the honest client got no session');
    this.#client = client;
    const made = await client.call({ kind: 'create', path: this.#path, data: 'honest', acl: openToAll, flags: 0 });
    if (made?.err !== 0 && made?.err !== nodeExists) throw new Error(`the honest client could not create ${this.#path}: ${made?.err}`);
    void this.#work();
  }

  async #work(): Promise<void> {
    for (let dueMs = performance.now(); ; dueMs += roundMs) {
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) {
        await delay(waitMs);
        if (this.#tally.isCounting) this.#tally.lags.push(performance.now() - dueMs);
      }
      if (this.#client!.closed) {
        this.#tally.error('the connection was closed');
        await this.#reconnect();
      }
      if (this.#outstanding > roundsOutstandingMax) continue;
      void this.#request({ kind: 'getData', path: this.#path, watch: false }, dueMs);
      for (let write = 0; write < 2; write++) void this.#request({ kind: 'setData', path: this.#path, data: 'honest', version: -1 }, dueMs);
    }
  }

  async #request(operation: Operation, dueMs: number): Promise<void> {
    this.#outstanding++;
    try {
      const reply = await this.#client!.call(operation);
      // The requests lost with a closed connection count as one error, where the end is noticed.
      if (reply === undefined) return;
      this.#tally.answered(performance.now() - dueMs);
      if (reply.err !== 0) this.#tally.error(`${operation.kind} was answered ${reply.err}`);
    } catch (error) {
      this.#tally.error(String(error));
    } finally {
      this.#outstanding--;
    }
  }

  /** Resumes the session, as clients do. The time without a connection counts as a latency. */
  async #reconnect(): Promise<void> {
    const beganMs = performance.now();
    for (;;) {
      const client = await OperationClient.open({ host, port: this.#port }).catch(() => undefined);
      const session = await client?.openSession(sessionTimeoutMs, this.#client!.session).catch(() => undefined);
      if (client !== undefined && session !== undefined && session.timeOut > 0) {
        this.#client = client;
        this.#tally.answered(performance.now() - beganMs);
        return;
      }
      if (session?.timeOut === 0) {
        this.#tally.error('the session has expired');
        this.#client!.session = undefined;
      }
      client?.destroy();
      await delay(retryMs);
    }
  }

  async exists(path: string): Promise<boolean> {
    const reply = await this.#client!.call({ kind: 'exists', path, watch: false }).catch(() => undefined);
    return reply?.err !== noNode;
  }
}

/** A session that is abandoned, with an ephemeral znode. */
class AbandonedSession {
  readonly #client: OperationClient;
  readonly #path: string;
  readonly #pings: NodeJS.Timeout;
  lastedMs: number | null = null;

  private constructor(client: OperationClient, path: string, timeoutMs: number) {
    this.#client = client;
    this.#path = path;
    this.#pings = setInterval(() => client.send({ kind: 'ping' }), timeoutMs / 4);
  }

  static async open(port: number, timeoutMs: number, path: string): Promise<AbandonedSession> {
    const client = await OperationClient.open({ host, port });
    const session = await client.openSession(timeoutMs);
    if (session?.timeOut !== timeoutMs) throw new Error(`asked for a session of ${timeoutMs} ms, got ${session?.timeOut}`);
    const made = await client.call({ kind: 'create', path, data: '', acl: openToAll, flags: 1 });
    if (made?.err !== 0) throw new Error(`could not create ${path}: ${made?.err}`);
    return new AbandonedSession(client, path, timeoutMs);
  }

  /** Stops without closing the session; `lastedMs` is set when the ephemeral znode is deleted. */
  async abandon(looker: HonestClient): Promise<void> {
    clearInterval(this.#pings);
    this.#client.destroy();
    const leftMs = performance.now();
    while (await looker.exists(this.#path)) await delay(pollMs);
    this.lastedMs = performance.now() - leftMs;
  }
}

function sendToParent(message: HonestMessage): void {
  process.send!(message);
}

async function main(options: HonestOptions): Promise<void> {
  const tally = new Tally();
  const clients = options.ports.map((port) => new HonestClient(port, tally));
  for (const client of clients) await client.start();
  const dead: AbandonedSession[] = [];
  for (const [index] of abandonedAfterMs.entries()) {
    dead.push(await AbandonedSession.open(options.abandonedPort, options.abandonedTimeoutMs, `/dead-${index}`));
  }
  const report = (): HonestReport => ({
    answers: tally.answers,
    errors: tally.errors,
    examples: tally.examples,
    p99Ms: percentile(tally.latencies, 99),
    slowestMs: percentile(tally.latencies, 100),
    abandonedSessionMs: dead.map(({ lastedMs }) => lastedMs),
    ownLagP99Ms: percentile(tally.lags, 99),
  });
  process.on('message', (word: HonestCommand) => {
    if (word === 'report') {
      sendToParent({ report: report() });
      return;
    }
    tally.isCounting = true;
    for (const [index, afterMs] of abandonedAfterMs.entries()) {
      setTimeout(() => void dead[index]!.abandon(clients[0]!), afterMs);
    }
  });
  sendToParent({ ready: true });
}

helperMain((options) => main(options as HonestOptions));
