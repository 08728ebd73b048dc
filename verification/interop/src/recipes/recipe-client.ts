/**
 * A process that uses the recipes of one client as lines request: ours (own-peer.ts), kazoo's
 * (python/kazoo_peer.py), Curator's (java/CuratorPeer.java). All three know the same verbs, so a
 * check can use any of them.
 *
 *     number TAB handle TAB verb TAB argument ...      a request; `open` gives a handle a recipe
 *     number TAB ok|error TAB text                     its answer; number 0 is the session's id, when there is one
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { repositoryFolder } from '../../../../scripts/foreign-programs.js';

export type RecipeClientKind = 'ours' | 'kazoo' | 'Curator';

/**
 * The command of a program; the connect string and the session timeout in milliseconds come last.
 */
export type RecipeClientPrograms = Readonly<Record<RecipeClientKind, (connect: string, sessionTimeoutMs: number) => ProgramCall>>;

interface ProgramCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export function recipeClientPrograms(pythonPath: string, classpath: string): RecipeClientPrograms {
  const own = path.join(repositoryFolder, 'verification', 'interop', 'dist', 'recipes', 'own-peer.js');
  const python = path.join(repositoryFolder, 'verification', 'interop', 'python', 'kazoo_peer.py');
  const options = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-Dlog.level=OFF', '-cp', classpath, 'CuratorPeer'];
  return {
    ours: (connect, ms) => ({ command: process.execPath, args: [own, connect, String(ms)] }),
    kazoo: (connect, ms) => ({ command: 'python3', args: [python, connect, String(ms / 1000)], environment: { PYTHONPATH: pythonPath } }),
    Curator: (connect, ms) => ({ command: 'java', args: [...options, connect, String(ms)] }),
  };
}

interface PendingCall {
  readonly resolve: (text: string) => void;
  readonly reject: (reason: Error) => void;
  readonly what: string;
}

export class RecipeClient {
  readonly kind: RecipeClientKind;
  #sessionId = 0n;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, PendingCall>();
  readonly #ended: Promise<unknown>;
  #stderr = '';
  #number = 0;
  #handles = 0;

  private constructor(kind: RecipeClientKind, { command, args, environment }: ProgramCall) {
    this.kind = kind;
    this.#child = spawn(command, args, { stdio: 'pipe', env: { ...process.env, ...environment } });
    this.#ended = once(this.#child, 'close').then(() => this.#end());
    this.#child.stderr!.on('data', (bytes: Buffer) => (this.#stderr = (this.#stderr + bytes.toString()).slice(-2000)));
    // Requests to a killed peer have no effect, and its end is detected in another way.
    this.#child.stdin!.on('error', () => undefined);
    createInterface(this.#child.stdout!).on('line', (line) => this.#onLine(line));
  }

  /** Resolves when it has a session. */
  static async start(
    programs: RecipeClientPrograms,
    kind: RecipeClientKind,
    connect: string,
    sessionTimeoutMs: number,
  ): Promise<RecipeClient> {
    const peer = new RecipeClient(kind, programs[kind](connect, sessionTimeoutMs));
    peer.#sessionId = BigInt(`0x${await peer.#answerTo(0, 'a session')}`);
    return peer;
  }

  get sessionId(): bigint {
    return this.#sessionId;
  }

  /** A recipe of its client, on its own handle. */
  async open(recipe: string, ...args: readonly string[]): Promise<Handle> {
    const name = `h${this.#handles++}`;
    await this.call(name, 'open', [recipe, ...args]);
    return { client: this, call: (verb, ...rest) => this.call(name, verb, rest) };
  }

  /** Rejects with the program's error, and when it ends. */
  call(handle: string, verb: string, args: readonly string[]): Promise<string> {
    const number = ++this.#number;
    const answer = this.#answerTo(number, `${verb} ${args.join(' ')}`);
    this.#child.stdin!.write(`${[number, handle, verb, ...args].join('\t')}\n`);
    return answer;
  }

  /** Ends it like a crash of its machine: its session lives until it expires. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #answerTo(number: number, what: string): Promise<string> {
    const answer = new Promise<string>((resolve, reject) => this.#pending.set(number, { resolve, reject, what }));
    // The caller may await the answer later; a killed peer never answers.
    answer.catch(() => undefined);
    return answer;
  }

  #onLine(line: string): void {
    const [number, kind, text = ''] = line.split('\t');
    const waiting = this.#pending.get(Number(number));
    this.#pending.delete(Number(number));
    if (kind === 'ok') waiting?.resolve(text);
    else waiting?.reject(new Error(`${this.kind}: ${waiting.what}: ${text}`));
  }

  #end(): void {
    for (const { reject, what } of this.#pending.values()) reject(new Error(`${this.kind} has ended: ${what}: ${this.#stderr}`));
    this.#pending.clear();
  }
}

/** One recipe of one peer. */
export interface Handle {
  readonly client: RecipeClient;
  call(verb: string, ...args: readonly string[]): Promise<string>;
}
