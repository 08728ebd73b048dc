/**
 * Answers the requests that set, check and remove watches, apart from the watch flags of reads.
 */
import {
  AddWatchMode,
  ErrorCode,
  EventType,
  OpCode,
  Perms,
  ProtocolError,
  readAddWatchRequest,
  readCheckWatchesRequest,
  type Reader,
  WatcherType,
  type Zxid,
} from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { WatchMode } from '../tree/watch-mode.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import type { MemoryLimits } from './memory-limits.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { Request } from './request.ts';
import { copyForJob, type Job, type StepBudget, unitsPerPath } from '../step-budget.ts';

type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive';
/** In the order in which setWatches2 lists them; setWatches has the first three. */
const watchKinds: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];
/** The length prefix of a path. */
const pathBytesMin = 4;

export class WatchRequests {
  readonly #replica: Replica;
  readonly #watches: WatchTable;
  readonly #cnxns: CnxnTable;
  readonly #memoryLimits: MemoryLimits;
  readonly #replyWriter: ReplyWriter;
  readonly #replies: ReadReplies;
  readonly #budget: StepBudget;
  /** Units spent on visiting znodes one by one, without those of jobs. */
  workUnits = 0;

  constructor(
    replica: Replica,
    watches: WatchTable,
    cnxns: CnxnTable,
    limits: MemoryLimits,
    replyWriter: ReplyWriter,
    replies: ReadReplies,
    budget: StepBudget,
  ) {
    this.#replica = replica;
    this.#watches = watches;
    this.#cnxns = cnxns;
    this.#memoryLimits = limits;
    this.#replyWriter = replyWriter;
    this.#replies = replies;
    this.#budget = budget;
  }

  addWatch(request: Request, reader: Reader): undefined {
    const { path, mode } = readAddWatchRequest(reader);
    if (mode !== AddWatchMode.persistent && mode !== AddWatchMode.persistentRecursive) {
      return this.#replies.error(request, ErrorCode.MarshallingError);
    }
    if (!this.#memoryLimits.admitsWatch(request.cnxn, request.opCode)) return this.#replies.error(request, ErrorCode.ThrottledOp);
    this.#watches.addPath(request.cnxn.id, path, mode === AddWatchMode.persistent ? WatchMode.persistent : WatchMode.recursive);
    const writer = this.#replies.begin(request);
    writer.int32(ErrorCode.Ok);
    return this.#replies.end(request, writer);
  }

  checkWatches(request: Request, reader: Reader): undefined {
    const { path, type } = readCheckWatchesRequest(reader);
    if (!isWatcherType(type)) return this.#replies.error(request, ErrorCode.MarshallingError);
    return this.#replies.error(request, this.#watches.has(request.cnxn.id, path, type) ? ErrorCode.Ok : ErrorCode.NoWatcher);
  }

  removeWatches(request: Request, reader: Reader): undefined {
    const { path, type } = readCheckWatchesRequest(reader);
    if (!isWatcherType(type)) return this.#replies.error(request, ErrorCode.MarshallingError);
    return this.#replies.error(request, this.#watches.remove(request.cnxn.id, path, type) ? ErrorCode.Ok : ErrorCode.NoWatcher);
  }

  /** setWatches has the first three kinds of lists, setWatches2 all five. */
  setWatches(request: Request, reader: Reader): Job | undefined {
    const kinds = request.opCode === OpCode.setWatches ? watchKinds.slice(0, 3) : watchKinds;
    return this.#replies.startDecodingJob(request.copy(), (own) => this.#setWatches(own, copyForJob(reader), kinds));
  }

  /**
   * A reconnecting client lists its watches and the last zxid it has seen. Changes since then are
   * reported at once, with zxid -1; the other watches are set again. Persistent watches are set
   * again without events for missed changes. As when a watch fires, a client that may not read the
   * znode gets no event: that watch is removed silently. ZooKeeper sends the event.
   */
  *#setWatches(request: Request, reader: Reader, kinds: readonly WatchKind[]): Job {
    const { cnxn } = request;
    const first = reader.offset;
    // The whole request must be decodable before any part of it takes effect.
    for (const isSecondPass of [false, true]) {
      reader.offset = first;
      const relativeZxid = reader.int64();
      let done = 0;
      for (const kind of kinds) {
        const count = reader.count(pathBytesMin);
        for (let i = 0; i < count; i++) {
          this.workUnits += isSecondPass ? unitsPerPath : 1;
          if (isSecondPass) {
            this.#setWatch(cnxn, kind, reader.text('a path'), relativeZxid);
            // Clients ignore the reply, and would rely on watches that are not set: better that
            // they connect to another server.
            if (!this.#memoryLimits.canKeepWatches(cnxn)) {
              this.#cnxns.close(cnxn, 'too many watches');
              return;
            }
          } else if (!reader.range('a path')) throw new ProtocolError('a path, not null', reader.offset);
          if (++done % (isSecondPass ? this.#budget.paths : this.#budget.visits) !== 0) continue;
          request.now = yield;
          if (cnxn.isClosed) return;
        }
      }
    }
    this.#replies.ok(request);
  }

  #setWatch(cnxn: Cnxn, kind: WatchKind, path: string, relativeZxid: Zxid): void {
    const { tree } = this.#replica;
    switch (kind) {
      case 'data': {
        const node = tree.find(path);
        if (node === 0) this.#sendMissedEvent(cnxn, EventType.nodeDeleted, path);
        else if (tree.mzxidOf(node) > relativeZxid) this.#sendMissedEvent(cnxn, EventType.nodeDataChanged, path, node);
        else this.#watches.addPath(cnxn.id, path, WatchMode.data);
        return;
      }
      case 'exist': {
        const node = tree.find(path);
        if (node === 0) this.#watches.addPath(cnxn.id, path, WatchMode.data);
        else this.#sendMissedEvent(cnxn, EventType.nodeCreated, path, node);
        return;
      }
      case 'child': {
        const node = tree.find(path);
        if (node === 0) this.#sendMissedEvent(cnxn, EventType.nodeDeleted, path);
        else if (tree.pzxidOf(node) > relativeZxid) this.#sendMissedEvent(cnxn, EventType.nodeChildrenChanged, path, node);
        else this.#watches.addPath(cnxn.id, path, WatchMode.child);
        return;
      }
      case 'persistent':
        this.#watches.addPath(cnxn.id, path, WatchMode.persistent);
        return;
      case 'recursive':
        this.#watches.addPath(cnxn.id, path, WatchMode.recursive);
        return;
      default:
        kind satisfies never;
    }
  }

  /** @param node the znode, if it exists. Read permission on a deleted znode is no longer known. */
  #sendMissedEvent(cnxn: Cnxn, eventType: number, path: string, node: NodeId = 0): void {
    if (node !== 0 && !this.#replies.hasPermission(Perms.read, node, cnxn.identities)) return;
    this.#replyWriter.prepareEvent(eventType, path, -1);
    this.#replyWriter.sendEvent(cnxn);
  }
}

function isWatcherType(type: number): boolean {
  return type >= WatcherType.children && type <= WatcherType.persistentRecursive;
}
