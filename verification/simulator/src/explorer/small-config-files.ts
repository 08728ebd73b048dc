/**
 * The files of a server's configuration: the active one, and the one that may become active next,
 * as `ConfigFiles` of the runtime keeps them. Each file is replaced as a whole, the active one
 * first; a crash keeps the files that were replaced by then. zoo.cfg and the dynamic file that it
 * names are one file here: one without the other changes nothing at a start.
 */
import type { QuorumConfig } from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { membersText } from './txn-names.ts';

export interface ConfigFilesState {
  readonly active: QuorumConfig;
  readonly next: QuorumConfig | undefined;
}

interface ConfigRequest {
  readonly active: QuorumConfig;
  readonly lastSeen: QuorumConfig | undefined;
}

export class SmallConfigFiles {
  #files: ConfigFilesState;
  /** The requests that the disk has not carried out. */
  #queue: ConfigRequest[] = [];

  constructor(files: ConfigFilesState) {
    this.#files = files;
  }

  get state(): ConfigFilesState {
    return this.#files;
  }

  /** The configuration that may become active next, as a start reads it. */
  get lastSeen(): QuorumConfig | undefined {
    const { active, next } = this.#files;
    return next !== undefined && next.version > active.version ? next : undefined;
  }

  /** Number of requests that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  save(active: QuorumConfig, lastSeen: QuorumConfig | undefined): void {
    this.#queue.push({ active, lastSeen });
  }

  /** Carries out the oldest request. */
  storeNext(): void {
    for (const files of stepsOf(this.#files, this.#queue.shift()!)) this.#files = files;
  }

  /** The content after each file that the waiting requests replace, and how many requests are done. */
  *steps(): Generator<{ readonly files: ConfigFilesState; readonly done: number }> {
    let files = this.#files;
    for (const [at, request] of this.#queue.entries()) {
      const steps = stepsOf(files, request);
      for (const [step, next] of steps.entries()) {
        files = next;
        yield { files, done: step === steps.length - 1 ? at + 1 : at };
      }
    }
  }

  /** The process ends; of the waiting requests, so many files were replaced. */
  crash(replaced: number): void {
    this.#files = [...this.steps()][replaced - 1]?.files ?? this.#files;
    this.#queue = [];
  }

  /** An operator writes the files anew. */
  replace(active: QuorumConfig): void {
    this.#files = { active, next: undefined };
  }

  fingerprint(to: Fingerprint): void {
    fingerprintFiles(to, this.#files.active, this.#files.next);
    to.number(this.#queue.length);
    for (const { active, lastSeen } of this.#queue) fingerprintFiles(to, active, lastSeen);
  }
}

function fingerprintFiles(to: Fingerprint, active: QuorumConfig, next: QuorumConfig | undefined): void {
  for (const config of [active, next]) {
    to.number(config?.version ?? -1);
    to.text(config === undefined ? '' : membersText(config));
  }
}

/** The content after each file that a request replaces. */
function stepsOf(files: ConfigFilesState, { active, lastSeen }: ConfigRequest): ConfigFilesState[] {
  const steps: ConfigFilesState[] = [];
  let { active: stored } = files;
  if (active.version > stored.version) {
    stored = active;
    steps.push({ active: stored, next: files.next });
  }
  if (lastSeen?.version !== files.next?.version) steps.push({ active: stored, next: lastSeen });
  return steps;
}
