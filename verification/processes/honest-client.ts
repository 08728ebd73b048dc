/** A client that reads and pings one after the other, and records the results. */
import { setTimeout as delay } from 'node:timers/promises';
import type { AclEntry, Operation, Reply } from '@tskeeper/simulator';
import { type Endpoint, OperationClient } from '@tskeeper/harness';

export const openToAll: readonly AclEntry[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];

export class HonestClient {
  readonly #client: OperationClient;
  readonly #path: string;
  readonly #data: string;
  #stopped = false;
  #work: Promise<void> | undefined;
  answers = 0;
  slowestMs = 0;
  readonly wrong: string[] = [];

  private constructor(client: OperationClient, path: string, data: string) {
    this.#client = client;
    this.#path = path;
    this.#data = data;
  }

  static async start(endpoint: Endpoint, path = '/honest', data = 'as it was'): Promise<HonestClient> {
    const client = await OperationClient.open(endpoint);
    await client.openSession(30_000);
    const honest = new HonestClient(client, path, data);
    await honest.ask({ kind: 'create', path, data, acl: openToAll, flags: 0 });
    honest.#work = honest.#run();
    return honest;
  }

  get client(): OperationClient {
    return this.#client;
  }

  async ask(operation: Operation): Promise<Reply> {
    const reply = await this.#client.call(operation);
    if (reply === undefined) throw new Error(`the honest client lost its connection over ${operation.kind}`);
    return reply;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const fault = await this.#look().catch(String);
      if (fault !== undefined) this.wrong.push(fault);
      if (this.#client.closed) return;
      await delay(10);
    }
  }

  async #look(): Promise<string | undefined> {
    const sentMs = performance.now();
    const read = await this.ask({ kind: 'getData', path: this.#path, watch: false });
    const ping = await this.ask({ kind: 'ping' });
    this.slowestMs = Math.max(this.slowestMs, performance.now() - sentMs);
    this.answers += 2;
    if (read.err !== 0 || ping.err !== 0) return `answered ${read.err} to a read and ${ping.err} to a ping`;
    return read.body?.data === this.#data ? undefined : `read ${read.body?.data}`;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }
}
