/** Starts the honest clients (honest.ts), and asks how they fared. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { within } from '../../process/raw-client.ts';
import type { FromHonest, HonestOptions, HonestReport, ToHonest } from './honest-words.ts';

const program = fileURLToPath(new URL('honest.ts', import.meta.url));
const patienceMs = 60_000;

export class HonestProcess implements Disposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(options: HonestOptions): Promise<HonestProcess> {
    const honest = new HonestProcess(fork(program, [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
    await honest.#hear('ready');
    return honest;
  }

  begin(): void {
    this.#child.send('begin' satisfies ToHonest);
  }

  async report(): Promise<HonestReport> {
    this.#child.send('report' satisfies ToHonest);
    const answer = await this.#hear('report');
    if (!('report' in answer)) throw new Error('the honest clients said something else than their report');
    return answer.report;
  }

  async #hear(what: string): Promise<FromHonest> {
    const heard = once(this.#child, 'message') as Promise<[FromHonest]>;
    const [message] = await within(patienceMs, `${what} of the honest clients`, heard);
    if ('failure' in message) throw new Error(message.failure);
    return message;
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}
