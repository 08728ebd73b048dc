/**
 * Sends events to watchers. They precede any reply that could show the change, since they are
 * written into the outputs of the connections before it.
 *
 * Whether a connection may READ the znode is checked when the watch fires, not when it was set. A
 * one-shot watch whose event may not be sent is removed silently.
 */
import { EventType, Perms, type Zxid } from '@tskeeper/protocol';
import type { Permissions } from '../auth/permissions.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Observer } from '../observer.ts';
import type { CnxnId } from '../client-output.ts';
import { type AclId, openAclId } from '../tree/acl-table.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import type { ReplyWriter } from './reply-writer.ts';
import { type Job, type StepBudget } from '../step-budget.ts';

export class WatchNotifier {
  readonly #watches: WatchTable;
  readonly #cnxns: CnxnTable;
  readonly #replyWriter: ReplyWriter;
  readonly #permissions: Permissions;
  readonly #observer: Observer;
  readonly #budget: StepBudget;
  readonly #watchersPerStep: number;

  // The change being reported.
  #path = '';
  #zxid: Zxid = 0;
  #acl: AclId = openAclId;
  #parentAcl: AclId = openAclId;
  #firedCount = 0;
  #firedOnParentCount = 0;
  /** Which event is encoded: that of the znode, that of its parent, or none yet. */
  #prepared: 'none' | 'znode' | 'parent' = 'none';

  constructor(
    watches: WatchTable,
    cnxns: CnxnTable,
    answers: ReplyWriter,
    permissions: Permissions,
    observer: Observer,
    budget: StepBudget,
  ) {
    this.#watches = watches;
    this.#cnxns = cnxns;
    this.#replyWriter = answers;
    this.#permissions = permissions;
    this.#observer = observer;
    this.#budget = budget;
    this.#watchersPerStep = Math.max(1, budget.units / unitsPerWatcher);
  }

  /** See `ChangeListener.znodeChanged`. */
  znodeChanged(path: string, eventType: number, zxid: Zxid, acl: AclId, parentAcl: AclId | undefined): Job | undefined {
    this.#path = path;
    this.#zxid = zxid;
    this.#acl = acl;
    this.#parentAcl = parentAcl ?? openAclId;
    this.#prepared = 'none';
    this.#firedCount = 0;
    this.#firedOnParentCount = 0;
    this.#watches.startDispatch(path, eventType);
    if (!this.#notifySome()) return this.#notifyInSteps(eventType);
    this.#reportFired(eventType);
    return undefined;
  }

  /** Notifies watchers for about one step; returns whether all were notified. */
  #notifySome(): boolean {
    const before = this.#permissions.workUnits + this.#replyWriter.workUnits;
    for (let visited = 0; visited < this.#watchersPerStep; visited += watchersPerCheck) {
      if (this.#watches.dispatch(this.#notify, watchersPerCheck)) return true;
      if (this.#permissions.workUnits + this.#replyWriter.workUnits - before + visited * unitsPerWatcher >= this.#budget.units)
        return false;
    }
    return false;
  }

  *#notifyInSteps(eventType: number): Job {
    do yield;
    while (!this.#notifySome());
    this.#reportFired(eventType);
  }

  #reportFired(eventType: number): void {
    if (this.#firedCount > 0) this.#observer.watchesFired(eventType, this.#firedCount);
    if (this.#firedOnParentCount > 0) this.#observer.watchesFired(EventType.nodeChildrenChanged, this.#firedOnParentCount);
  }

  /** One function for all, so that firing a watch allocates nothing. */
  readonly #notify = (id: CnxnId, eventType: number, onParent: boolean): void => {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.isClosed) return;
    const acl = onParent ? this.#parentAcl : this.#acl;
    if (!this.#permissions.permits(acl, Perms.read, cnxn.identities)) return;
    const wanted = onParent ? 'parent' : 'znode';
    if (this.#prepared !== wanted) {
      this.#prepared = wanted;
      this.#replyWriter.prepareEvent(eventType, onParent ? parentOf(this.#path) : this.#path, this.#zxid);
    }
    if (onParent) this.#firedOnParentCount++;
    else this.#firedCount++;
    this.#replyWriter.sendEvent(cnxn);
  };
}

/** Finding a watcher and checking its ACL; the event is counted where it is written. */
const unitsPerWatcher = 4;
/** Watchers notified between two checks of the cost of their ACLs and events. */
const watchersPerCheck = 4;

function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash === 0 ? '/' : path.slice(0, slash);
}
