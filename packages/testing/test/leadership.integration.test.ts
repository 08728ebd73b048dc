/**
 * The lead moves from server to server while clients write: they see ConnectionLoss at most, keep
 * their sessions, and every write that was acknowledged is there.
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { TestEnsemble } from '../src/index.ts';

/** A client that creates one znode after the other. */
class Writer {
  readonly acknowledged = new Set<string>();
  readonly sessions = new Set<bigint>();
  readonly errors = new Set<string>();
  readonly #client: Client;
  readonly #name: string;
  #isStopped = false;
  readonly #done: Promise<void>;

  constructor(client: Client, name: string) {
    this.#client = client;
    this.#name = name;
    this.#done = this.#write();
  }

  async #write(): Promise<void> {
    for (let number = 0; !this.#isStopped; number++) {
      const path = `/${this.#name}-${number}`;
      try {
        await this.#client.create(path, 'x');
        this.acknowledged.add(path);
        this.sessions.add(this.#client.sessionId);
      } catch (error) {
        this.errors.add(error instanceof KeeperError ? error.code : String(error));
      }
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }
}

describe('A62: transferring the lead', () => {
  it('loses no acknowledged write and no session, and causes no error but ConnectionLoss', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 3 });
    const clients = await Promise.all(Array.from({ length: 12 }, () => connect(ensemble.connectString, { sessionTimeoutMs: 10_000 })));
    const writers = clients.map((client, at) => new Writer(client, `w${at}`));
    const answers = () => writers.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0);
    for (let turn = 0; turn < breadth(4, 20); turn++) {
      const target = ensemble.followers[turn % 2]!;
      expect(await ensemble.transferLeadership(target)).toBe(target);
      const known = answers();
      await expect.poll(answers, { interval: 5, timeout: 20_000 }).toBeGreaterThan(known + 50);
      await ensemble.ready();
    }
    await Promise.all(writers.map((writer) => writer.stop()));
    for (const { errors, sessions } of writers) {
      expect([...errors].filter((code) => code !== 'ConnectionLoss')).toEqual([]);
      expect(sessions.size).toBe(1);
    }
    const [reader] = clients;
    await reader!.sync('/');
    const names = new Set((await reader!.getChildren('/')).children);
    for (const { acknowledged } of writers) for (const path of acknowledged) expect(names.has(path.slice(1)), path).toBe(true);
    await Promise.all(clients.map((client) => client.close()));
  });

  it('is refused with a sentence by a server that cannot take it', async () => {
    await using ensemble = await TestEnsemble.start({ servers: 3, observers: 1 });
    await expect(ensemble.transferLeadership(ensemble.leader)).rejects.toThrow(/cannot give the lead to server \d: it leads already/);
    await expect(ensemble.transferLeadership(4)).rejects.toThrow('cannot give the lead to server 4: it has no vote, or a vote of weight 0');
    const [down] = ensemble.followers;
    await down!.stop();
    await ensemble.ready();
    await expect(ensemble.transferLeadership(down)).rejects.toThrow(
      `cannot give the lead to server ${down!.sid}: it is not in step with the leader`,
    );
  });
});
