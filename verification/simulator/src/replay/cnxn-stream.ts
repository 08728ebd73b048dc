/** The stream of replies and events of one connection: what it received, and what is due next. */
import type { Zxid } from '@tskeeper/protocol';
import type { Id } from '../model/access-rules.ts';
import { parentOf } from '../record/parent-of.ts';
import type { CnxnRecord, Item, Request } from '../record/recording.ts';
import { isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import { initialIdentities } from './admissions.ts';

/** Something that a connection must receive. */
type ExpectedItem =
  | { readonly kind: 'event'; readonly zxid: Zxid; readonly type: number; readonly path: string; readonly anyOrder: boolean }
  | { readonly kind: 'reply'; readonly request: Request };

export type EventItem = Extract<Item, { kind: 'event' }>;

export class CnxnStream {
  /** The number of the connection in the model. */
  readonly number: number;
  readonly cnxn: CnxnRecord;
  /** The next received item to be checked. */
  next = 0;
  /** What is due, in order. */
  readonly expected: ExpectedItem[] = [];
  /** The identities of its client so far. */
  identities: readonly Id[];
  /** Paths under persistent watches. */
  readonly persistent = new Set<string>();
  /** Whether a discrepancy was found: what follows would only repeat it. */
  hasDiscrepancy = false;
  /** Whether the model knows the connection. */
  isConnected = false;

  constructor(number: number, cnxn: CnxnRecord) {
    this.number = number;
    this.cnxn = cnxn;
    this.identities = initialIdentities(cnxn);
  }

  /** Whether there is nothing left to check. */
  get isOver(): boolean {
    return this.hasDiscrepancy || this.next >= this.cnxn.items.length;
  }

  expect(due: ExpectedItem): void {
    if (!this.isOver) this.expected.push(due);
  }

  /** The place of the reply to a request among what is due; -1 if it is not due. */
  placeOfReply(request: Request): number {
    return this.expected.findIndex((due) => due.kind === 'reply' && due.request === request);
  }

  placeOfEvent(item: EventItem): number {
    return this.expected.findIndex((due) => due.kind === 'event' && isSameEvent(due, item));
  }

  /** Whether this event, at `place` of what is due, is one of a set without an order. */
  isUnorderedWithFirst(place: number, { zxid }: EventItem): boolean {
    return place > 0 && this.expected.slice(0, place + 1).every((each) => each.kind === 'event' && each.anyOrder && each.zxid === zxid);
  }

  hasReceived(item: EventItem): boolean {
    return this.cnxn.items.slice(0, this.next).some((each) => each.kind === 'event' && isSameEvent(each, item));
  }

  /** The next item whose place in the stream says when it was sent. */
  nextOrderedItem(): Item | undefined {
    return this.cnxn.items.slice(this.next + 1).find((each) => each.kind === 'event' || !isAnsweredOutOfOrder(each.request));
  }

  /**
   * The setWatches that caused the events that come next, once it is due; undefined if its reply is
   * missing.
   */
  setWatchesReply(zxid: Zxid): Request | 'not yet' | undefined {
    for (let at = this.next; at < this.cnxn.items.length; at++) {
      const item = this.cnxn.items[at]!;
      if (item.kind !== 'reply' || isAnsweredOutOfOrder(item.request)) continue;
      if (item.request.name !== 'setWatches' && item.request.name !== 'setWatches2') return undefined;
      return item.zxid >= zxid ? 'not yet' : item.request;
    }
    return undefined;
  }

  /** Whether the path or one above it is under a persistent watch. */
  hasPersistentWatch(path: string): boolean {
    for (let at = path; ; at = parentOf(at)) {
      if (this.persistent.has(at)) return true;
      if (at === '/') return false;
    }
  }
}

type EventKey = Pick<EventItem, 'path' | 'type' | 'zxid'>;

function isSameEvent(a: EventKey, b: EventKey): boolean {
  return a.path === b.path && a.type === b.type && a.zxid === b.zxid;
}

export function eventText({ type, path, zxid }: EventKey): string {
  return `event ${type} of ${path} at ${zxid}`;
}

export function expectedText(due: ExpectedItem | undefined): string {
  if (due === undefined) return 'nothing';
  return due.kind === 'event' ? eventText(due) : `the reply to ${requestText(due.request)}`;
}
