/**
 * What a family of recipes contributes to its runs: a program for the processes, and a check of
 * what they did.
 */
import type { Client } from '@tskeeper/client';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Recording } from '../record/recording.ts';
import type { ZnodeHistory } from './znode-history.ts';
import type { RecipeProcess } from './recipe-process.ts';

export interface Family {
  /** What its processes do, in a few words. */
  readonly description: string;
  /** Marks that its runs note. A mark that no seed of a CI run hits fails the run. */
  readonly marks: readonly string[];
  /** A run with random parameters. */
  drawRun(random: SeededRandom): FamilyRun;
}

export interface FamilyRun {
  /** The number of processes. */
  readonly processes: number;
  /** Maximum pause between two turns of a process. */
  readonly pauseMsMax: number;
  /**
   * Persistent znodes that exist before everything else, each parent before its children.
   * `creates`, of a parent with a child among them, is the number of its creates so far, and so the
   * next sequence number.
   */
  readonly seedZnodes?: readonly { readonly path: string; readonly creates: number }[] | undefined;
  /**
   * Whether all servers have the same time and keep it, for holds that depend on time. Default:
   * their wall clocks differ and jump.
   */
  readonly wallClocksAgree?: boolean | undefined;
  /** Called once by an operator before the processes begin. */
  prepare?(zk: Client): Promise<unknown>;
  /**
   * Called by each process repeatedly until the end; with another session when the last is over.
   * Resolves with whether the process succeeded. Errors of recipes and of sessions may pass; any
   * other rejection is a finding.
   */
  turn(process: RecipeProcess, zk: Client): Promise<boolean>;
  /** Called by an operator from time to time; errors as in a turn. */
  operatorAction?(operator: RecipeProcess, zk: Client): Promise<unknown>;
  /**
   * Returns what exists and should not, after every program has ended and the sessions of crashed
   * processes are over.
   */
  leftovers?(zk: Client): Promise<readonly string[]>;
  /** Returns the violations, a sentence each, which begins with the name of the rule. */
  check(evidence: Evidence): readonly string[];
}

export interface Evidence {
  /** What the ensemble has committed. */
  readonly history: ZnodeHistory;
  /** The wire traffic, and the faults. */
  readonly recording: Recording;
}
