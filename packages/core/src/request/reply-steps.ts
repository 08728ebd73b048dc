/**
 * The steps in which a job collects a long reply, item by item: a child of a list, a part of a multi.
 * An item takes the units that its job says, and those of the ACLs that were checked for it.
 */
import type { Permissions } from '../auth/permissions.ts';
import type { Now } from '../now.ts';
import type { Request } from './request.ts';

export class ReplySteps {
  readonly #request: Request;
  readonly #permissions: Permissions;
  readonly #unitsPerStep: number;
  #spentUnits = 0;
  /** Of all requests, when the item began. */
  #checkedUnits = 0;

  constructor(request: Request, permissions: Permissions, unitsPerStep: number) {
    this.#request = request;
    this.#permissions = permissions;
    this.#unitsPerStep = unitsPerStep;
  }

  beginItem(): void {
    this.#checkedUnits = this.#permissions.workUnits;
  }

  /** Returns whether the step is over: `next` has to follow before another item. */
  endItem(units: number): boolean {
    this.#spentUnits += units + this.#permissions.workUnits - this.#checkedUnits;
    return this.#spentUnits >= this.#unitsPerStep;
  }

  /** Waits for the next step. Returns whether the connection is still open; if not, the job ends. */
  *next(): Generator<void, boolean, Now> {
    this.#spentUnits = 0;
    this.#request.now = yield;
    return !this.#request.cnxn.isClosed;
  }
}
