/** What a family of recipes brings to its stories: a program that processes run, and a judge of what they did. */
import type { Client } from '@tskeeper/client';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Recording } from '../record/recording.ts';
import type { History } from './history.ts';
import type { RecipeProcess } from './recipe-process.ts';

export interface Family {
  /** What its processes do, in a few words. */
  readonly what: string;
  /** Rare things, by the names under which its stories note them. One that no seed of a CI run has seen is red. */
  readonly marks: readonly string[];
  /** A story with whatever chance decides of it. */
  draw(random: SeededRandom): RecipeStory;
}

export interface RecipeStory {
  /** How many processes there are. */
  readonly processes: number;
  /** Between two turns of a process at most. */
  readonly restMsMax: number;
  /**
   * Persistent znodes that are there before everything else, each parent ahead of its children. `creates`, of one that has a child among them, is
   * how many it has had: what the next number behind a name is.
   */
  readonly beginning?: readonly { readonly path: string; readonly creates: number }[] | undefined;
  /** Whether all servers have the same time, and keep it: for what is held by time. Default: their wall clocks are apart, and jump. */
  readonly wallClocksAgree?: boolean | undefined;
  /** Done once by an operator, before the processes begin. */
  prepare?(zk: Client): Promise<unknown>;
  /**
   * Done by each process, over and over, until the end; with another session when the last is over. Resolves with whether the process got what it came
   * for. What recipes reject with, and what becomes of a session, it may let pass; whatever else it rejects with is a finding.
   */
  turn(process: RecipeProcess, zk: Client): Promise<boolean>;
  /** Done by an operator's hand, now and then; as a turn otherwise. */
  meddle?(operator: RecipeProcess, zk: Client): Promise<unknown>;
  /** What is there and should not be, when every program has come to its end and the sessions of those that had no end are over. */
  left?(zk: Client): Promise<readonly string[]>;
  /** What must not have been: a sentence each, that begins with the name of the promise. */
  judge(evidence: Evidence): readonly string[];
}

export interface Evidence {
  /** What the ensemble has agreed on. */
  readonly history: History;
  /** What went over the wire, and what was done to the world. */
  readonly recording: Recording;
}
