/**
 * Divides the work of a server into steps: how much may still be done in this step, and the job
 * that takes more than one. While a job runs, nothing else is applied or answered.
 */
import type { Permissions } from '../auth/permissions.ts';
import type { CnxnId } from '../client-output.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import { noCnxn } from '../pending/proposal.ts';
import type { ReadHandler } from './read-handler.ts';
import type { Replica } from './replica.ts';
import type { Job, StepBudget, StepKind } from '../step-budget.ts';
import type { WriteSequencer } from './write-sequencer.ts';

export class StepScheduler {
  readonly #budget: StepBudget;
  readonly #observer: Observer;
  readonly #sequencer: WriteSequencer;
  readonly #replica: Replica;
  readonly #permissions: Permissions;
  readonly #readHandler: ReadHandler;
  #job: Job | undefined;
  /** The connection whose request the job serves. */
  #jobCnxn: CnxnId = noCnxn;
  #jobKind: StepKind = 'request';
  #onJobDone: ((now: Now) => void) | undefined;
  #jobFromQueue = false;
  /** Work done in steps of jobs so far, in units. */
  #jobUnits = 0;
  /** Work done so far in units, except what sequencer, replica, permissions and reads count. */
  #ownWorkUnits = 0;
  /** The amount of work at which this step ends. */
  #stepEndUnits = 0;
  #isCompletingJob = false;
  /** Set while the server serves its queues, and not a single input. */
  isServingQueues = false;

  constructor(
    budget: StepBudget,
    observer: Observer,
    sequencer: WriteSequencer,
    replica: Replica,
    permissions: Permissions,
    readHandler: ReadHandler,
  ) {
    this.#budget = budget;
    this.#observer = observer;
    this.#sequencer = sequencer;
    this.#replica = replica;
    this.#permissions = permissions;
    this.#readHandler = readHandler;
  }

  // ---- the step

  /** Work done so far, in units; see step-budget.ts. */
  get workUnits(): number {
    return this.#stepWorkUnits() + this.#jobUnits;
  }

  addWork(units: number): void {
    this.#ownWorkUnits += units;
  }

  startStep(): void {
    this.#stepEndUnits = this.#stepWorkUnits() + this.#budget.units;
  }

  /** Leaves a quarter of a step, whatever was done in this step before. */
  extendStep(): void {
    this.#stepEndUnits = Math.max(this.#stepEndUnits, this.#stepWorkUnits() + this.#budget.units / 4);
  }

  readonly isBudgetSpent = (): boolean => this.#stepWorkUnits() >= this.#stepEndUnits;

  /**
   * Whether the step ends because its budget is spent. Call it only where work of this kind is
   * left.
   */
  yieldsStep(kind: StepKind): boolean {
    if (!this.isBudgetSpent()) return false;
    this.#observer.stepYielded(kind);
    return true;
  }

  #stepWorkUnits(): number {
    return (
      this.#ownWorkUnits + this.#sequencer.workUnits + this.#replica.workUnits + this.#permissions.workUnits + this.#readHandler.workUnits
    );
  }

  // ---- the job

  get isBusy(): boolean {
    return this.#job !== undefined;
  }

  /**
   * The connection whose request the running job serves; undefined without a job, or if the request
   * came from no connection of this server.
   */
  get busyCnxn(): CnxnId | undefined {
    return this.#job === undefined || this.#jobCnxn === noCnxn ? undefined : this.#jobCnxn;
  }

  /** Whether the job was started from a queue, not directly by an input. */
  get isJobFromQueue(): boolean {
    return this.#jobFromQueue;
  }

  /**
   * Whether the continuation of a finished job runs. It starts nothing long, so that other
   * connections get their turn before the next job.
   */
  get isCompletingJob(): boolean {
    return this.#isCompletingJob;
  }

  /** @param onDone the continuation, called when the job has finished. */
  startJob(job: Job, cnxn: CnxnId, onDone: (now: Now) => void = noop, kind: StepKind = 'request'): void {
    this.#job = job;
    this.#jobCnxn = cnxn;
    this.#jobFromQueue = this.isServingQueues;
    this.#jobUnits += this.#budget.units;
    this.#onJobDone = onDone;
    this.#jobKind = kind;
    this.#observer.jobBegan();
    this.#observer.stepYielded(kind);
  }

  /** Runs the next step of the current job. Returns whether no job is left. */
  runJob(now: Now): boolean {
    if (this.#job === undefined) return true;
    this.#jobUnits += this.#budget.units;
    if (this.#job.next(now).done !== true) {
      this.#observer.stepYielded(this.#jobKind);
      return false;
    }
    const onDone = this.#onJobDone!;
    this.#job = undefined;
    this.#onJobDone = undefined;
    this.#observer.jobEnded();
    this.#isCompletingJob = true;
    onDone(now);
    this.#isCompletingJob = false;
    return !this.isBusy;
  }
}

function noop(): void {}
