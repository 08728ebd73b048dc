/**
 * Answers all requests that change no znode, from the current state. It waits for nothing and, on
 * the common path, allocates nothing: a path is looked up as the bytes received, and the reply is
 * copied into the connection's output in wire form.
 */
import { ErrorCode, OpCode, Perms, ProtocolError, type Reader, readGetEphemeralsRequest, type Writer, Xid } from '@tskeeper/protocol';
import type { AuthRegistry } from '../auth/auth-provider.ts';
import type { Permissions } from '../auth/permissions.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import { ChildrenPages } from './children-pages.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { WatchMode } from '../tree/watch-mode.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import { KeeperReads } from './keeper-reads.ts';
import { LongReply } from './long-reply.ts';
import type { MemoryLimits } from './memory-limits.ts';
import { MultiReads } from './multi-reads.ts';
import type { OperatorRequests } from './operator-requests.ts';
import { ReadReplies } from './read-replies.ts';
import { isRefused } from './read-only-requests.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { Request } from './request.ts';
import { type Job, startJob, type StepBudget, unitsPerName, unitsPerPath } from '../step-budget.ts';
import { VirtualZnodes } from './virtual-znodes.ts';
import { WatchRequests } from './watch-requests.ts';
import type { WriteSequencer } from './write-sequencer.ts';

export class ReadHandler {
  readonly #replica: Replica;
  readonly #watches: WatchTable;
  readonly #cnxns: CnxnTable;
  readonly #memoryLimits: MemoryLimits;
  readonly #replyWriter: ReplyWriter;
  readonly #registry: AuthRegistry;
  readonly #budget: StepBudget;
  readonly #replies: ReadReplies;
  readonly #watchRequests: WatchRequests;
  readonly #multiReads: MultiReads;
  readonly #operatorRequests: OperatorRequests;
  readonly #isReadOnly: boolean;
  readonly #childrenPages: ChildrenPages;
  /** undefined without tskeeper.keeperExtensions. */
  readonly #keeperReads: KeeperReads | undefined;
  readonly #virtualZnodes: VirtualZnodes;
  #workUnits = 0;

  constructor(
    replica: Replica,
    watches: WatchTable,
    cnxns: CnxnTable,
    limits: MemoryLimits,
    replyWriter: ReplyWriter,
    registry: AuthRegistry,
    permissions: Permissions,
    observer: Observer,
    budget: StepBudget,
    operatorRequests: OperatorRequests,
    { juteMaxBuffer, keeperExtensions }: CoreOptions,
    sequencer: WriteSequencer,
  ) {
    this.#isReadOnly = sequencer.isReadOnly;
    this.#replica = replica;
    this.#watches = watches;
    this.#cnxns = cnxns;
    this.#memoryLimits = limits;
    this.#replyWriter = replyWriter;
    this.#registry = registry;
    this.#budget = budget;
    this.#operatorRequests = operatorRequests;
    this.#replies = new ReadReplies(replica, replyWriter, permissions, observer, budget);
    this.#watchRequests = new WatchRequests(replica, watches, cnxns, limits, replyWriter, this.#replies, budget);
    this.#multiReads = new MultiReads(replica, replyWriter, this.#replies, budget);
    this.#childrenPages = new ChildrenPages(replica, this.#replies, budget, juteMaxBuffer);
    this.#keeperReads = keeperExtensions ? new KeeperReads(replica, this.#replies) : undefined;
    this.#virtualZnodes = new VirtualZnodes(!keeperExtensions ? 'none' : sequencer.acceptsKeeperWrites ? 'all' : 'reads');
  }

  /** Units spent on visiting znodes one by one, without those of jobs. */
  get workUnits(): number {
    return this.#workUnits + this.#watchRequests.workUnits + this.#multiReads.workUnits;
  }

  /** Answers at once; returns a job if that takes more than one step. */
  handle(request: Request, reader: Reader): Job | undefined {
    try {
      return this.#dispatch(request, reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#replies.error(request, ErrorCode.MarshallingError);
      return undefined;
    }
  }

  #dispatch(request: Request, reader: Reader): Job | undefined {
    switch (request.opCode) {
      case OpCode.getData:
        return this.#getData(request, reader);
      case OpCode.exists:
        return this.#exists(request, reader);
      case OpCode.getChildren:
      case OpCode.getChildren2:
        return this.#getChildren(request, reader);
      case OpCode.ping:
        return this.#ping(request);
      case OpCode.getACL:
        return this.#getAcl(request, reader);
      case OpCode.sync:
        if (this.#isReadOnly && isRefused(request.opCode)) return this.#replies.error(request, ErrorCode.NotReadOnly);
        return this.#sync(request, reader);
      case OpCode.addWatch:
        return this.#watchRequests.addWatch(request, reader);
      case OpCode.checkWatches:
        return this.#watchRequests.checkWatches(request, reader);
      case OpCode.removeWatches:
        return this.#watchRequests.removeWatches(request, reader);
      case OpCode.setWatches:
      case OpCode.setWatches2:
        return this.#watchRequests.setWatches(request, reader);
      case OpCode.getEphemerals:
        return this.#getEphemerals(request, reader);
      case OpCode.getAllChildrenNumber:
        return this.#getAllChildrenNumber(request, reader);
      case OpCode.whoAmI:
        return this.#whoAmI(request);
      case OpCode.getLeader:
      case OpCode.transferLeader:
      case OpCode.shedConnections:
        return this.#operatorRequests.handle(request, reader, this.#replies);
      case OpCode.multiRead:
        return this.#multiReads.handle(request, reader);
      case OpCode.getChildrenPage:
      case OpCode.getChildrenDataPage:
        return this.#childrenPages.handle(request, reader, (path) => this.#watchChildren(request, path));
      case OpCode.filteredList:
      case OpCode.filteredListWithStatsAndData:
      case OpCode.listRecursive:
      case OpCode.checkNotExists:
      case OpCode.checkStat:
        if (this.#keeperReads === undefined) return this.#unimplemented(request);
        return this.#keeperReads.handle(request, reader, (path) => this.#watchChildren(request, path));
      case OpCode.createIfNotExists:
      case OpCode.removeRecursive:
      case OpCode.tryRemove:
        if (this.#keeperReads !== undefined && this.#isReadOnly) return this.#replies.error(request, ErrorCode.NotReadOnly);
        return this.#unimplemented(request);
      default:
        if (this.#isReadOnly && isRefused(request.opCode)) return this.#replies.error(request, ErrorCode.NotReadOnly);
        return this.#unimplemented(request);
    }
  }

  /**
   * As ZooKeeper's UnimplementedRequestProcessor: a reply without a zxid, then the connection is
   * closed. A client that sends an unknown operation is out of step with the protocol, and its
   * further input cannot be trusted. The session goes on.
   */
  #unimplemented(request: Request): undefined {
    this.#replyWriter.replyWithoutBody(
      request.cnxn,
      request.opCode,
      request.xid,
      -1,
      ErrorCode.Unimplemented,
      request.arrivedMs,
      request.now.elapsedMs,
      false,
    );
    this.#cnxns.close(request.cnxn, 'unknown operation');
  }

  /**
   * Whether the reply may take many steps, by a cheap estimate. `reader` is placed over the record.
   */
  isLong(opCode: number, reader: Reader): boolean {
    switch (opCode) {
      case OpCode.getChildren:
      case OpCode.getChildren2: {
        const { offset } = reader;
        const node = reader.range('a path') ? this.#replica.tree.lookup(reader.bytes, reader.rangeStart, reader.rangeEnd) : 0;
        reader.offset = offset;
        return node !== 0 && this.#replica.tree.childCountOf(node) > this.#budget.names;
      }
      case OpCode.getAllChildrenNumber:
      case OpCode.multiRead:
      case OpCode.getChildrenPage:
      case OpCode.getChildrenDataPage:
      case OpCode.filteredList:
      case OpCode.filteredListWithStatsAndData:
      case OpCode.listRecursive:
        return true;
      default:
        return reader.remaining > this.#budget.shortFrameBytes;
    }
  }

  /** Looks up the next path of the request; its bytes remain in the reader's range. */
  #lookup(reader: Reader): NodeId {
    if (!reader.range('a path')) throw new ProtocolError('a path', reader.offset);
    return this.#replica.tree.lookup(reader.bytes, reader.rangeStart, reader.rangeEnd);
  }

  /** Sets a watch on the path looked up last; returns false if the limits refuse it. */
  #watch({ cnxn, opCode }: Request, { bytes, rangeStart, rangeEnd }: Reader, mode: number): boolean {
    if (!this.#memoryLimits.admitsWatch(cnxn, opCode)) return false;
    this.#watches.add(cnxn.id, bytes, rangeStart, rangeEnd, mode);
    return true;
  }

  /** Sets a child watch; returns false if the limits refuse it. */
  #watchChildren({ cnxn, opCode }: Request, path: string): boolean {
    if (!this.#memoryLimits.admitsWatch(cnxn, opCode)) return false;
    const bytes = Buffer.from(path);
    this.#watches.add(cnxn.id, bytes, 0, bytes.length, WatchMode.child);
    return true;
  }

  /** The reply has the xid of pings, whatever the request had. */
  #ping(request: Request): undefined {
    const ping = request.copy();
    ping.xid = Xid.ping;
    this.#replies.ok(ping);
  }

  #getData(request: Request, reader: Reader): undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) return this.#getVirtualData(request, reader);
    if (!this.#replies.hasPermission(Perms.read, node, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#replies.error(request, ErrorCode.ThrottledOp);
    const { tree } = this.#replica;
    const writer = this.#replies.begin(request);
    tree.writeDataAndStat(node, writer);
    this.#replies.reportRead(node, reader, Math.max(0, tree.dataLengthOf(node)));
    return this.#replies.end(request, writer);
  }

  /** Some paths have data without a znode: what this server can do. They have no watches. */
  #getVirtualData(request: Request, { bytes, rangeStart, rangeEnd }: Reader): undefined {
    const reply = this.#virtualZnodes.replyTo(bytes, rangeStart, rangeEnd);
    if (reply === undefined) return this.#replies.error(request, ErrorCode.NoNode);
    const writer = this.#replies.begin(request);
    writer.raw(reply);
    return this.#replies.end(request, writer);
  }

  #exists(request: Request, reader: Reader): undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) {
      if (reader.bytes.subarray(reader.rangeStart, reader.rangeEnd).includes(0))
        return this.#replies.error(request, ErrorCode.BadArguments);
      // The only watch that is set by a failed read: it fires when the znode is created.
      if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#replies.error(request, ErrorCode.ThrottledOp);
      return this.#replies.error(request, ErrorCode.NoNode);
    }
    if (!this.#replies.hasPermission(Perms.read, node, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#replies.error(request, ErrorCode.ThrottledOp);
    const writer = this.#replies.begin(request);
    this.#replica.tree.writeStat(node, writer);
    this.#replies.reportRead(node, reader, 0);
    return this.#replies.end(request, writer);
  }

  #getChildren(request: Request, reader: Reader): Job | undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read, node, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.child)) return this.#replies.error(request, ErrorCode.ThrottledOp);
    const { tree } = this.#replica;
    const writer = this.#replies.begin(request);
    const from = writer.offset;
    writer.int32(tree.childCountOf(node));
    const rest = tree.writeNames(tree.firstChildOf(node), writer, this.#budget.names, writer.offset + this.#budget.replyBytes);
    if (rest !== 0) {
      this.#replyWriter.discard(writer);
      return startJob(this.#getChildrenInSteps(request.copy(), node));
    }
    this.#workUnits += tree.childCountOf(node) * unitsPerName;
    this.#replies.reportRead(node, reader, this.#replies.namesBytes(node, writer.offset - from));
    if (request.opCode === OpCode.getChildren2) tree.writeStat(node, writer);
    return this.#replies.end(request, writer);
  }

  *#getChildrenInSteps(request: Request, node: NodeId): Job {
    const reply = new LongReply();
    yield* this.#replies.gatherChildren(request, node, reply);
    this.#replies.reportReadOf(node, this.#replica.tree.pathOf(node), this.#replies.namesBytes(node, reply.bytes));
    if (request.opCode === OpCode.getChildren2) this.#replica.tree.writeStat(node, reply.writer);
    yield* this.#replies.send(request, reply);
  }

  #getAcl(request: Request, reader: Reader): undefined {
    const node = this.#lookup(reader);
    if (node === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read | Perms.admin, node, request.identities))
      return this.#replies.error(request, ErrorCode.NoAuth);
    const { tree } = this.#replica;
    const acl = tree.aclOf(node);
    const showsHashes = this.#replies.hasPermission(Perms.admin, node, request.identities);
    const writer = this.#replies.begin(request);
    const from = writer.offset;
    if (showsHashes) tree.acls.write(acl, writer);
    else tree.acls.writeWithoutHashes(acl, writer);
    // Without hashes each entry is written separately, and an entry has more than eight bytes.
    if (!showsHashes) this.#workUnits += (writer.offset - from) / aclBytesPerUnit;
    tree.writeStat(node, writer);
    return this.#replies.end(request, writer);
  }

  /** The sync has waited for the txns proposed before it, here or by the leader. */
  #sync(request: Request, reader: Reader): undefined {
    const path = reader.ustring();
    const writer = this.#replies.begin(request);
    writer.ustring(path);
    return this.#replies.end(request, writer);
  }

  #getEphemerals(request: Request, reader: Reader): Job | undefined {
    const { prefixPath } = readGetEphemeralsRequest(reader);
    const { sessionHigh, sessionLow } = request.cnxn;
    const { tree } = this.#replica;
    const prefix = prefixPath === null || prefixPath.trim() === '' || prefixPath.trim() === '/' ? '' : prefixPath;
    if (tree.ephemeralCountOf(sessionHigh, sessionLow) > this.#budget.ephemerals)
      return startJob(this.#getEphemeralsInSteps(request.copy(), prefix));
    this.#workUnits += tree.ephemeralCountOf(sessionHigh, sessionLow) * unitsPerPath;
    const paths = this.#replica.ephemeralPaths(sessionHigh, sessionLow).filter((path) => path.startsWith(prefix));
    const writer = this.#replies.begin(request);
    writer.vector(paths, writeText);
    return this.#replies.end(request, writer);
  }

  *#getEphemeralsInSteps(request: Request, prefix: string): Job {
    const { cnxn } = request;
    const { tree } = this.#replica;
    const reply = new LongReply();
    reply.writer.int32(0);
    let count = 0;
    let visited = 0;
    for (let node = tree.firstEphemeral(cnxn.sessionHigh, cnxn.sessionLow); node !== 0; node = tree.nextEphemeral(node)) {
      const path = tree.pathOf(node);
      if (path.startsWith(prefix)) {
        reply.writer.ustring(path);
        count++;
      }
      if (++visited % this.#budget.paths !== 0) continue;
      request.now = yield;
      if (cnxn.isClosed) return;
    }
    reply.patchFirstInt32(count);
    yield* this.#replies.send(request, reply);
  }

  #getAllChildrenNumber(request: Request, reader: Reader): Job | undefined {
    const node = this.#lookup(reader);
    if (node === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read, node, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    const { tree } = this.#replica;
    if (tree.isRoot(node)) return this.#replyCount(request, tree.size - 1);
    let count = 0;
    for (let at = tree.nextBelow(node, node); at !== 0; at = tree.nextBelow(at, node)) {
      if (++count === this.#budget.visits) return this.#countInSteps(request.copy(), node, at, count);
    }
    this.#workUnits += count;
    return this.#replyCount(request, count);
  }

  /** Continues after `from`, the last znode counted. */
  *#countInSteps(request: Request, top: NodeId, from: NodeId, counted: number): Job {
    const { tree } = this.#replica;
    let count = counted;
    request.now = yield;
    for (let at = tree.nextBelow(from, top); at !== 0; at = tree.nextBelow(at, top)) {
      if (++count % this.#budget.visits === 0) request.now = yield;
    }
    if (!request.cnxn.isClosed) this.#replyCount(request, count);
  }

  #replyCount(request: Request, count: number): undefined {
    const writer = this.#replies.begin(request);
    writer.int32(count);
    return this.#replies.end(request, writer);
  }

  #whoAmI(request: Request): undefined {
    this.#workUnits += request.identities.count * unitsPerIdentity;
    const writer = this.#replies.begin(request);
    writer.vector(request.identities.toList(), (w, identity) => {
      w.ustring(identity.scheme);
      w.ustring(this.#registry.userName(identity));
    });
    return this.#replies.end(request, writer);
  }
}

/** Writing an identity for its owner. */
const unitsPerIdentity = 2;
/** For an ACL whose entries are written one by one. */
const aclBytesPerUnit = 8;

function writeText(writer: Writer, text: string): void {
  writer.ustring(text);
}
