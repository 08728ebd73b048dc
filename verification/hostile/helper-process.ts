/**
 * A child process of this command that is started with options, receives words, and answers with
 * messages.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { within } from '@tskeeper/harness';

const replyTimeoutMs = 60_000;

/** What a helper sends instead of an answer when it cannot continue. */
export interface Failure {
  readonly failure: string;
}

export class HelperProcess<Word extends string, Answer extends object> implements Disposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves with its first message. */
  static async start<Word extends string, Answer extends object>(program: URL, options: object): Promise<HelperProcess<Word, Answer>> {
    const child = fork(fileURLToPath(program), [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const helper = new HelperProcess<Word, Answer>(child);
    await helper.#receive();
    return helper;
  }

  send(word: Word): void {
    this.#child.send(word);
  }

  request(word: Word): Promise<Answer> {
    this.send(word);
    return this.#receive();
  }

  async #receive(): Promise<Answer> {
    const [message] = (await within(replyTimeoutMs, 'message from a helper process', once(this.#child, 'message'))) as [Answer | Failure];
    if ('failure' in message) throw new Error(message.failure);
    return message;
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}

/** The helper's `main`: it receives its options, and ends with the process that started it. */
export function helperMain(main: (options: unknown) => Promise<void>): void {
  process.on('disconnect', () => process.exit(0));
  main(JSON.parse(process.argv[2]!)).catch((error: unknown) => {
    process.send!({ failure: error instanceof Error ? error.message : String(error) } satisfies Failure);
  });
}
