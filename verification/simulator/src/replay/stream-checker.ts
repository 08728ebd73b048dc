/**
 * Compares what connections received with what the model sends. What the model sends for a txn or a
 * read becomes due; each received item must be the one that is due. Reads are performed in the
 * model when their reply turns up in the stream, after all txns up to the zxid in it.
 */
import { type AddWatchRequest, ErrorCode, type Zxid } from '@tskeeper/protocol';
import type { ModelOutput } from '../model/outbox.ts';
import type { ReferenceModel } from '../model/reference-model.ts';
import type { CnxnRecord, Item, Recording, Request } from '../record/recording.ts';
import { isAnsweredOutOfOrder, isThrottled, isWrite } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import { type Admissions, identitiesAfter } from './admissions.ts';
import { answerOf } from './answer.ts';
import { CnxnStream, type EventItem, eventText, expectedText } from './cnxn-stream.ts';
import type { PreviousAcls } from './previous-acls.ts';
import type { DeliveredEvent, Discrepancy, Expectation } from './replay-result.ts';

export class StreamChecker {
  readonly #recording: Recording;
  readonly #model: ReferenceModel;
  readonly #admissions: Admissions;
  readonly #previousAcls: PreviousAcls;
  /** By the number of the connection. */
  readonly #streams: readonly CnxnStream[];
  /** Streams with items left to check. */
  #active: CnxnStream[];
  /** For every read with a reply. */
  readonly reads: Expectation[] = [];
  readonly discrepancies: Discrepancy[] = [];
  readonly events: DeliveredEvent[] = [];

  constructor(
    recording: Recording,
    cnxns: readonly CnxnRecord[],
    model: ReferenceModel,
    admissions: Admissions,
    previousAcls: PreviousAcls,
  ) {
    this.#recording = recording;
    this.#model = model;
    this.#admissions = admissions;
    this.#previousAcls = previousAcls;
    this.#streams = cnxns.map((cnxn, number) => new CnxnStream(number, cnxn));
    this.#active = this.#streams.filter(({ isOver }) => !isOver);
  }

  // --- what is due

  /** What the model sent is due; a reply in it is the one to `request`. */
  expectOutputs(outputs: readonly ModelOutput[], request?: Request): void {
    for (const { cnxn, message, anyOrder } of outputs) {
      const stream = this.#streams[cnxn];
      if (stream === undefined) continue;
      if (message.kind === 'event') {
        const { zxid, type, path } = message;
        stream.expect({ kind: 'event', zxid, type, path, anyOrder: anyOrder === true });
      } else if (message.kind === 'reply' && request !== undefined) {
        stream.expect({ kind: 'reply', request });
      }
    }
  }

  /** The reply to a request that the model does not perform is due. */
  expectReply(cnxn: number, request: Request): void {
    this.#streams[cnxn]!.expect({ kind: 'reply', request });
  }

  /** The model need not follow a connection of which nothing is left to check. */
  dropIfOver(cnxn: number): void {
    if (!this.#active.includes(this.#streams[cnxn]!)) this.#model.disconnected(cnxn);
  }

  // --- what was received

  /** Checks everything that connections saw before this txn. */
  consume(zxid: Zxid): void {
    let isOver = false;
    for (const stream of this.#active) {
      const { items, shownZxid } = stream.cnxn;
      if (shownZxid !== undefined && shownZxid >= zxid) continue;
      while (!stream.isOver && this.#maybeConsumeOne(stream, items[stream.next]!, zxid)) stream.next++;
      if (stream.isOver) {
        isOver = true;
        this.#model.disconnected(stream.number);
      }
    }
    if (isOver) this.#active = this.#active.filter((stream) => !stream.isOver);
  }

  /** Returns whether the item was due. */
  #maybeConsumeOne(stream: CnxnStream, item: Item, zxid: Zxid): boolean {
    if (item.kind === 'event') return this.#maybeConsumeEvent(stream, item, zxid);
    const { request } = item;
    if (isAnsweredOutOfOrder(request)) return this.#maybeConsumeOutOfOrder(stream, request, zxid);
    if (item.zxid >= zxid) return false;
    if (!isWrite(request) && stream.expected.length === 0) this.#read(stream, request);
    else if (!isWrite(request) && stream.placeOfReply(request) === -1) {
      this.#reportMissing(stream, item);
      return true;
    }
    if (stream.hasDiscrepancy) return true;
    if (stream.placeOfReply(request) !== 0) this.#reportMissing(stream, item);
    else stream.expected.shift();
    return true;
  }

  #maybeConsumeEvent(stream: CnxnStream, item: EventItem, zxid: Zxid): boolean {
    if (item.zxid === -1) {
      // Sent in response to a setWatches, before its reply.
      const reply = stream.setWatchesReply(zxid);
      if (reply === 'not yet') return false;
      if (reply !== undefined && !stream.expected.some((due) => due.kind === 'event' && due.zxid === -1)) this.#read(stream, reply);
      // Without the reply the zxid to which the event refers is unknown.
      if (reply === undefined) return true;
    } else if (item.zxid >= zxid) return false;
    this.#checkEvent(stream, item);
    return true;
  }

  #maybeConsumeOutOfOrder(stream: CnxnStream, request: Request, zxid: Zxid): boolean {
    // It was answered at some moment between its neighbours; the latest is always possible.
    const next = stream.nextOrderedItem();
    if (next !== undefined && next.zxid > 0 && (next.kind === 'event' ? next.zxid > zxid : next.zxid >= zxid)) return false;
    this.#connectModel(stream);
    // It may also have overtaken the end of its session.
    if ((request.name !== 'auth' && request.name !== 'sasl') || !this.#model.hasCnxn(stream.number)) return true;
    if (request.reply!.err === ErrorCode.Ok) {
      this.#model.perform(this.#admissions.of(request));
      stream.identities = identitiesAfter(stream.identities, request, this.#recording.limits);
    }
    return true;
  }

  #connectModel(stream: CnxnStream): void {
    if (stream.isConnected) return;
    stream.isConnected = true;
    this.#model.connect(stream.number, stream.cnxn.address);
    this.#model.attach(stream.number, stream.cnxn.session ?? 0n);
  }

  /** Performs the request in the model. What the model returns is due now. */
  #read(stream: CnxnStream, request: Request): void {
    this.#connectModel(stream);
    if (!this.#model.hasCnxn(stream.number)) {
      this.#report(stream, 'order', `received the reply to ${requestText(request)} after its session had ended`);
      return;
    }
    if (isThrottled(request) || this.#isWatchRefused(stream.cnxn, request)) {
      // Nothing has changed, and only the server knows whether it had to refuse.
      stream.expect({ kind: 'reply', request });
      return;
    }
    if (request.closesLocally === true) {
      stream.expect({ kind: 'reply', request });
      this.#model.disconnected(stream.number);
      return;
    }
    const outputs = this.#model.perform(this.#admissions.of(request));
    this.reads.push({ request, answer: answerOf(outputs) });
    this.expectOutputs(outputs, request);
    if (request.name === 'addWatch' && request.reply!.err === ErrorCode.Ok) stream.persistent.add((request.record as AddWatchRequest).path);
  }

  /** A server whose memory is full refuses new watches, and reports that. */
  #isWatchRefused({ key, server }: CnxnRecord, { opCode, reply }: Request): boolean {
    const { memoryPressuredServers, throttledOps } = this.#recording;
    return reply?.err === ErrorCode.ThrottledOp && memoryPressuredServers.has(server) && throttledOps.get(key)?.includes(opCode) === true;
  }

  #checkEvent(stream: CnxnStream, item: EventItem): void {
    const { expected, cnxn } = stream;
    // A multi may have replaced a znode that it deleted: then the event may be of any of them.
    const acls = [...this.#previousAcls.of(item.path), this.#model.lookUp(item.path)?.acl].filter((acl) => acl !== undefined);
    // Events of restored watches are not guarded, in ZooKeeper neither.
    if (acls.length > 0 && item.zxid !== -1) {
      const mayRead = acls.some((acl) => this.#model.mayRead(acl, stream.identities));
      this.events.push({ cnxn, path: item.path, zxid: item.zxid, mayRead });
    }
    const place = stream.placeOfEvent(item);
    if (place === 0 || stream.isUnorderedWithFirst(place, item)) {
      expected.splice(place, 1);
      return;
    }
    const kind =
      item.zxid === -1
        ? 'restored'
        : stream.hasPersistentWatch(item.path)
          ? 'persistent'
          : place > 0
            ? 'order'
            : stream.hasReceived(item)
              ? 'twice'
              : 'unexpected';
    this.#report(stream, kind, `received ${eventText(item)}, where ${expectedText(expected[0])} was due`);
  }

  #reportMissing(stream: CnxnStream, item: Item): void {
    const [first] = stream.expected;
    const kind =
      first?.kind !== 'event' ? 'order' : first.zxid === -1 ? 'restored' : stream.hasPersistentWatch(first.path) ? 'persistent' : 'late';
    const what = item.kind === 'reply' ? `the reply to ${requestText(item.request)} at ${item.zxid}` : eventText(item);
    this.#report(stream, kind, `received ${what} before ${expectedText(first)}`);
  }

  #report(stream: CnxnStream, kind: Discrepancy['kind'], text: string): void {
    stream.hasDiscrepancy = true;
    this.discrepancies.push({ kind, text: `${stream.cnxn.client} at ${stream.cnxn.key} ${text}` });
  }
}
