/**
 * Answers all requests that change no znode, from the current state. It waits for nothing and, on
 * the common path, allocates nothing: a path is looked up as the bytes received, and the reply is
 * copied into the connection's output in wire form.
 */
import {
  AddWatchMode,
  ErrorCode,
  EventType,
  type MultiOp,
  OpCode,
  Perms,
  ProtocolError,
  readAddWatchRequest,
  Reader,
  readCheckWatchesRequest,
  readGetEphemeralsRequest,
  readMultiRequestOp,
  WatcherType,
  type Writer,
  writeMultiEnd,
  writeMultiHeader,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import type { AuthRegistry } from '../auth/auth-provider.ts';
import type { Identities } from '../auth/identities.ts';
import type { Permissions } from '../auth/permissions.ts';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Observer } from '../observer.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { WatchMode, type WatchTable } from '../tree/watch-table.ts';
import type { ReplyWriter } from './reply-writer.ts';
import { bytesPerUnit, type Job, startJob, type StepBudget } from './step-budget.ts';
import { LongReply } from './long-reply.ts';
import type { MemoryLimits } from './memory-limits.ts';
import { toMultiWrite } from './multi-parts.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';

export class ReadHandler {
  readonly #replica: Replica;
  readonly #watches: WatchTable;
  readonly #cnxns: CnxnTable;
  readonly #memoryLimits: MemoryLimits;
  readonly #replyWriter: ReplyWriter;
  readonly #registry: AuthRegistry;
  readonly #permissions: Permissions;
  readonly #observer: Observer;
  readonly #budget: StepBudget;
  readonly #namesPerPiece: number;
  /** Units spent on visiting znodes one by one, without those of jobs. */
  workUnits = 0;

  constructor(
    replica: Replica,
    watches: WatchTable,
    cnxns: CnxnTable,
    limits: MemoryLimits,
    answers: ReplyWriter,
    registry: AuthRegistry,
    permissions: Permissions,
    observer: Observer,
    budget: StepBudget,
  ) {
    this.#replica = replica;
    this.#watches = watches;
    this.#cnxns = cnxns;
    this.#memoryLimits = limits;
    this.#replyWriter = answers;
    this.#registry = registry;
    this.#permissions = permissions;
    this.#observer = observer;
    this.#budget = budget;
    this.#namesPerPiece = Math.min(namesPerPieceMax, budget.names);
  }

  /** Answers at once; returns a job if that takes more than one step. */
  handle(request: Request, reader: Reader): Job | undefined {
    try {
      return this.#dispatch(request, reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#replyError(request, ErrorCode.MarshallingError);
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
        return this.#replyOk({ ...request, xid: Xid.ping });
      case OpCode.getACL:
        return this.#getAcl(request, reader);
      case OpCode.sync:
        return this.#sync(request, reader);
      case OpCode.addWatch:
        return this.#addWatch(request, reader);
      case OpCode.checkWatches:
        return this.#checkWatches(request, reader);
      case OpCode.removeWatches:
        return this.#removeWatches(request, reader);
      case OpCode.setWatches:
        return this.#startDecodingJob({ ...request }, (own) => this.#setWatches(own, copyOf(reader), watchKinds.slice(0, 3)));
      case OpCode.setWatches2:
        return this.#startDecodingJob({ ...request }, (own) => this.#setWatches(own, copyOf(reader), watchKinds));
      case OpCode.getEphemerals:
        return this.#getEphemerals(request, reader);
      case OpCode.getAllChildrenNumber:
        return this.#getAllChildrenNumber(request, reader);
      case OpCode.whoAmI:
        return this.#whoAmI(request);
      case OpCode.multiRead:
        return this.#multiRead(request, reader);
      default:
        // As ZooKeeper's UnimplementedRequestProcessor: a reply without a zxid, then the connection
        // is closed. A client that sends an unknown operation is out of step with the protocol, and
        // its further input cannot be trusted. The session goes on.
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
        return undefined;
    }
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
        return true;
      default:
        return reader.remaining > this.#budget.shortFrameBytes;
    }
  }

  /**
   * Starts a job that decodes while it runs, and so may find late that the request is malformed.
   */
  #startDecodingJob(request: Request, job: (request: Request) => Job): Job | undefined {
    return startJob(this.#decodingJob(request, job(request)));
  }

  *#decodingJob(request: Request, job: Job): Job {
    try {
      yield* job;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (!request.cnxn.isClosed) this.#replyError(request, ErrorCode.MarshallingError);
    }
  }

  #begin(request: Request): Writer {
    return this.#replyWriter.begin(request.cnxn, request.xid, this.#replica.lastZxid, ErrorCode.Ok);
  }

  #end(request: Request, writer: Writer): undefined {
    const { cnxn, opCode, xid, arrivedMs, now } = request;
    this.#replyWriter.end(cnxn, writer, opCode, xid, this.#replica.lastZxid, ErrorCode.Ok, arrivedMs, now.elapsedMs, false);
  }

  /** A reply that consists of its header only. */
  #replyOk(request: Request): undefined {
    return this.#replyError(request, ErrorCode.Ok);
  }

  #replyError(request: Request, error: number): undefined {
    const { cnxn, opCode, xid, arrivedMs, now } = request;
    this.#replyWriter.replyWithoutBody(cnxn, opCode, xid, this.#replica.lastZxid, error, arrivedMs, now.elapsedMs, false);
  }

  #hasPermission(perms: number, node: NodeId, identities: Identities): boolean {
    return this.#permissions.permits(this.#replica.tree.aclOf(node), perms, identities);
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

  #getData(request: Request, reader: Reader): undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) return this.#replyError(request, ErrorCode.NoNode);
    if (!this.#hasPermission(Perms.read, node, request.identities)) return this.#replyError(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#replyError(request, ErrorCode.ThrottledOp);
    const { tree } = this.#replica;
    const writer = this.#begin(request);
    tree.writeDataAndStat(node, writer);
    this.#reportRead(node, reader, Math.max(0, tree.dataLengthOf(node)));
    return this.#end(request, writer);
  }

  #exists(request: Request, reader: Reader): undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) {
      if (reader.bytes.subarray(reader.rangeStart, reader.rangeEnd).includes(0)) return this.#replyError(request, ErrorCode.BadArguments);
      // The only watch that is set by a failed read: it fires when the znode is created.
      if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#replyError(request, ErrorCode.ThrottledOp);
      return this.#replyError(request, ErrorCode.NoNode);
    }
    if (!this.#hasPermission(Perms.read, node, request.identities)) return this.#replyError(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#replyError(request, ErrorCode.ThrottledOp);
    const writer = this.#begin(request);
    this.#replica.tree.writeStat(node, writer);
    this.#reportRead(node, reader, 0);
    return this.#end(request, writer);
  }

  #getChildren(request: Request, reader: Reader): Job | undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) return this.#replyError(request, ErrorCode.NoNode);
    if (!this.#hasPermission(Perms.read, node, request.identities)) return this.#replyError(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.child)) return this.#replyError(request, ErrorCode.ThrottledOp);
    const { tree } = this.#replica;
    const writer = this.#begin(request);
    const from = writer.offset;
    writer.int32(tree.childCountOf(node));
    const rest = tree.writeNames(tree.firstChildOf(node), writer, this.#budget.names, writer.offset + this.#budget.replyBytes);
    if (rest !== 0) {
      this.#replyWriter.discard(writer);
      return startJob(this.#getChildrenInSteps({ ...request }, node));
    }
    this.workUnits += tree.childCountOf(node) * unitsPerName;
    this.#reportRead(node, reader, this.#namesBytes(node, writer.offset - from));
    if (request.opCode === OpCode.getChildren2) tree.writeStat(node, writer);
    return this.#end(request, writer);
  }

  *#getChildrenInSteps(request: Request, node: NodeId): Job {
    const reply = new LongReply();
    yield* this.#gatherChildren(request, node, reply);
    this.#reportReadOf(node, this.#replica.tree.pathOf(node), this.#namesBytes(node, reply.bytes));
    if (request.opCode === OpCode.getChildren2) this.#replica.tree.writeStat(node, reply.writer);
    yield* this.#send(request, reply);
  }

  *#gatherChildren(request: Request, node: NodeId, reply: LongReply): Job {
    const { tree } = this.#replica;
    reply.writer.int32(tree.childCountOf(node));
    let child = tree.firstChildOf(node);
    let names = 0;
    while (child !== 0) {
      // A piece of 64 KiB has at most 16,384 names.
      child = tree.writeNames(child, reply.writer, this.#namesPerPiece, reply.end);
      names += this.#namesPerPiece;
      if (names < this.#budget.names) continue;
      names = 0;
      request.now = yield;
      if (request.cnxn.isClosed) return;
    }
  }

  /** Total length of the names of a znode's children, given the size of their vector. */
  #namesBytes(node: NodeId, bytes: number): number {
    return bytes - (1 + this.#replica.tree.childCountOf(node)) * lengthBytes;
  }

  /** Reports a read of `bytes` bytes; its path is in the reader's range. */
  #reportRead(node: NodeId, reader: Reader, bytes: number): void {
    this.#observer.znodeRead(this.#replica.tree.namespaceOf(node), reader.rangeEnd - reader.rangeStart + bytes);
  }

  /** Reports a read whose path is given as text. */
  #reportReadOf(node: NodeId, path: string, bytes: number): void {
    this.#observer.znodeRead(this.#replica.tree.namespaceOf(node), Buffer.byteLength(path) + bytes);
  }

  /** Sends a reply that has been collected. */
  *#send(request: Request, reply: LongReply): Job {
    const { cnxn, opCode, xid, arrivedMs } = request;
    const { lastZxid } = this.#replica;
    const { bytes } = reply;
    if (cnxn.isClosed) return;
    this.#replyWriter.beginLong(cnxn, xid, lastZxid, ErrorCode.Ok, bytes);
    let sent = 0;
    for (const piece of reply.take()) {
      if (sent >= this.#budget.replyBytes) {
        sent = 0;
        request.now = yield;
        // The id of the connection may have been reused.
        if (cnxn.isClosed) return;
      }
      this.#replyWriter.writePiece(cnxn, piece.bytes, piece.offset);
      sent += piece.offset;
    }
    this.#replyWriter.endLong(cnxn, opCode, xid, lastZxid, ErrorCode.Ok, arrivedMs, request.now.elapsedMs, bytes, false);
  }

  #getAcl(request: Request, reader: Reader): undefined {
    const node = this.#lookup(reader);
    if (node === 0) return this.#replyError(request, ErrorCode.NoNode);
    if (!this.#hasPermission(Perms.read | Perms.admin, node, request.identities)) return this.#replyError(request, ErrorCode.NoAuth);
    const { tree } = this.#replica;
    const acl = tree.aclOf(node);
    const showsHashes = this.#hasPermission(Perms.admin, node, request.identities);
    const writer = this.#begin(request);
    const from = writer.offset;
    if (showsHashes) tree.acls.write(acl, writer);
    else tree.acls.writeWithoutHashes(acl, writer);
    // Without hashes each entry is written separately, and an entry has more than eight bytes.
    if (!showsHashes) this.workUnits += (writer.offset - from) / aclBytesPerUnit;
    tree.writeStat(node, writer);
    return this.#end(request, writer);
  }

  /** The sync has waited for the txns proposed before it, here or by the leader. */
  #sync(request: Request, reader: Reader): undefined {
    const path = reader.ustring();
    const writer = this.#begin(request);
    writer.ustring(path);
    return this.#end(request, writer);
  }

  #addWatch(request: Request, reader: Reader): undefined {
    const { path, mode } = readAddWatchRequest(reader);
    if (mode !== AddWatchMode.persistent && mode !== AddWatchMode.persistentRecursive) {
      return this.#replyError(request, ErrorCode.MarshallingError);
    }
    if (!this.#memoryLimits.admitsWatch(request.cnxn, request.opCode)) return this.#replyError(request, ErrorCode.ThrottledOp);
    this.#watches.addPath(request.cnxn.id, path, mode === AddWatchMode.persistent ? WatchMode.persistent : WatchMode.recursive);
    const writer = this.#begin(request);
    writer.int32(ErrorCode.Ok);
    return this.#end(request, writer);
  }

  #checkWatches(request: Request, reader: Reader): undefined {
    const { path, type } = readCheckWatchesRequest(reader);
    if (!isWatcherType(type)) return this.#replyError(request, ErrorCode.MarshallingError);
    return this.#replyError(request, this.#watches.has(request.cnxn.id, path, type) ? ErrorCode.Ok : ErrorCode.NoWatcher);
  }

  #removeWatches(request: Request, reader: Reader): undefined {
    const { path, type } = readCheckWatchesRequest(reader);
    if (!isWatcherType(type)) return this.#replyError(request, ErrorCode.MarshallingError);
    return this.#replyError(request, this.#watches.remove(request.cnxn.id, path, type) ? ErrorCode.Ok : ErrorCode.NoWatcher);
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
    this.#replyOk(request);
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
    if (node !== 0 && !this.#hasPermission(Perms.read, node, cnxn.identities)) return;
    this.#replyWriter.prepareEvent(eventType, path, -1);
    this.#replyWriter.sendEvent(cnxn);
  }

  #getEphemerals(request: Request, reader: Reader): Job | undefined {
    const { prefixPath } = readGetEphemeralsRequest(reader);
    const { sessionHigh, sessionLow } = request.cnxn;
    const { tree } = this.#replica;
    const prefix = prefixPath === null || prefixPath.trim() === '' || prefixPath.trim() === '/' ? '' : prefixPath;
    if (tree.ephemeralCountOf(sessionHigh, sessionLow) > this.#budget.ephemerals)
      return startJob(this.#getEphemeralsInSteps({ ...request }, prefix));
    this.workUnits += tree.ephemeralCountOf(sessionHigh, sessionLow) * unitsPerPath;
    const paths = this.#replica.ephemeralPaths(sessionHigh, sessionLow).filter((path) => path.startsWith(prefix));
    const writer = this.#begin(request);
    writer.vector(paths, writeText);
    return this.#end(request, writer);
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
    yield* this.#send(request, reply);
  }

  #getAllChildrenNumber(request: Request, reader: Reader): Job | undefined {
    const node = this.#lookup(reader);
    if (node === 0) return this.#replyError(request, ErrorCode.NoNode);
    if (!this.#hasPermission(Perms.read, node, request.identities)) return this.#replyError(request, ErrorCode.NoAuth);
    const { tree } = this.#replica;
    if (tree.isRoot(node)) return this.#replyCount(request, tree.size - 1);
    let count = 0;
    for (let at = tree.nextBelow(node, node); at !== 0; at = tree.nextBelow(at, node)) {
      if (++count === this.#budget.visits) return this.#countInSteps({ ...request }, node, at, count);
    }
    this.workUnits += count;
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
    const writer = this.#begin(request);
    writer.int32(count);
    return this.#end(request, writer);
  }

  #whoAmI(request: Request): undefined {
    this.workUnits += request.identities.count * unitsPerIdentity;
    const writer = this.#begin(request);
    writer.vector(request.identities.toList(), (w, identity) => {
      w.ustring(identity.scheme);
      w.ustring(this.#registry.userName(identity));
    });
    return this.#end(request, writer);
  }

  /** Each part succeeds or fails on its own; the watch flag of a part has no effect. */
  #multiRead(request: Request, reader: Reader): Job | undefined {
    if (reader.remaining > this.#budget.shortFrameBytes)
      return this.#startDecodingJob({ ...request }, (own) => this.#multiReadInSteps(own, copyOf(reader), []));
    const ops: MultiOp[] = [];
    for (let op = readMultiRequestOp(reader); op !== undefined; op = readMultiRequestOp(reader)) ops.push(op);
    if (!this.#areReads(request, ops)) return undefined;
    const { tree } = this.#replica;
    const writer = this.#begin(request);
    const end = writer.offset + this.#budget.replyBytes;
    // Counted only after all parts have been written: otherwise they will be read again.
    const sizes: number[] = [];
    let names = 0;
    for (const op of ops) {
      const node = this.#writePartHead(request, op, writer, sizes);
      if (node !== 0) names += tree.childCountOf(node);
      if (names > this.#budget.names || writer.offset > end) {
        this.#replyWriter.discard(writer);
        return startJob(this.#multiReadInSteps({ ...request }, undefined, ops));
      }
      if (node === 0) continue;
      const from = writer.offset;
      tree.writeChildren(node, writer);
      sizes[sizes.length - 1] = this.#namesBytes(node, writer.offset - from);
    }
    this.workUnits += ops.length * unitsPerRead + names * unitsPerName;
    for (let i = 0; i < ops.length; i++) this.#reportPart(ops[i]!, sizes[i]!);
    writeMultiEnd(writer);
    return this.#end(request, writer);
  }

  /**
   * Decodes the parts from `reader`; without one, `ops` are decoded already and known to be reads.
   */
  *#multiReadInSteps(request: Request, reader: Reader | undefined, ops: MultiOp[]): Job {
    const { cnxn } = request;
    const { tree } = this.#replica;
    if (reader !== undefined) {
      for (let op = readMultiRequestOp(reader); op !== undefined; op = readMultiRequestOp(reader)) {
        ops.push(op);
        if (ops.length % this.#budget.paths === 0) request.now = yield;
      }
      if (cnxn.isClosed || !this.#areReads(request, ops)) return;
    }
    const reply = new LongReply();
    const sizes: number[] = [];
    let spent = 0;
    for (const op of ops) {
      const before = reply.bytes;
      const judgedBefore = this.#permissions.workUnits;
      const node = this.#writePartHead(request, op, reply.writer, sizes);
      const from = reply.bytes;
      if (node !== 0 && tree.childCountOf(node) <= this.#namesPerPiece) tree.writeChildren(node, reply.writer);
      else if (node !== 0) yield* this.#gatherChildren(request, node, reply);
      const size = sizes.pop()!;
      this.#reportPart(op, node === 0 ? size : this.#namesBytes(node, reply.bytes - from));
      if (reply.bytes > multiReadBytesMax) {
        this.#replyError(request, ErrorCode.MarshallingError);
        return;
      }
      spent += unitsPerRead + (reply.bytes - before) / bytesPerUnit + this.#permissions.workUnits - judgedBefore;
      if (spent < this.#budget.units) continue;
      spent = 0;
      request.now = yield;
      if (cnxn.isClosed) return;
    }
    writeMultiEnd(reply.writer);
    yield* this.#send(request, reply);
  }

  /** Whether all parts are reads; if not, the request has been answered. */
  #areReads(request: Request, ops: readonly MultiOp[]): boolean {
    const reads = ops.filter(isRead).length;
    if (reads === ops.length) return true;
    if (reads > 0) throw new ProtocolError('only reads in a multiRead', 0);
    for (const op of ops) toMultiWrite(op);
    // ZooKeeper finds that these are writes only after it has begun the reply: the error is
    // followed by an empty list.
    const { cnxn, xid, opCode, arrivedMs, now } = request;
    const { lastZxid } = this.#replica;
    const writer = this.#replyWriter.begin(cnxn, xid, lastZxid, ErrorCode.MarshallingError);
    writeMultiEnd(writer);
    this.#replyWriter.end(cnxn, writer, opCode, xid, lastZxid, ErrorCode.MarshallingError, arrivedMs, now.elapsedMs, false);
    return false;
  }

  /**
   * Writes the result of one part, except the names of children: then it returns the znode of the
   * children, otherwise 0. Adds the number of bytes read to `sizes`; see `#reportPart`.
   */
  #writePartHead(request: Request, op: MultiOp, writer: Writer, sizes: number[]): NodeId {
    const { tree } = this.#replica;
    const node = op.path === null ? 0 : tree.find(op.path);
    const error =
      node === 0 ? ErrorCode.NoNode : this.#hasPermission(Perms.read, node, request.identities) ? ErrorCode.Ok : ErrorCode.NoAuth;
    if (error !== ErrorCode.Ok) {
      writeMultiHeader(writer, { type: OpCode.error, done: false, err: error });
      writer.int32(error);
      sizes.push(nothingRead);
      return 0;
    }
    writeMultiHeader(writer, { type: OpCode[op.kind], done: false, err: ErrorCode.Ok });
    sizes.push(op.kind === 'getChildren' ? 0 : Math.max(0, tree.dataLengthOf(node)));
    if (op.kind === 'getChildren') return node;
    tree.writeDataAndStat(node, writer);
    return 0;
  }

  #reportPart(op: MultiOp, bytes: number): void {
    if (bytes !== nothingRead) this.#reportReadOf(this.#replica.tree.find(op.path!), op.path!, bytes);
  }
}

type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive';
/** In the order in which setWatches2 lists them; setWatches has the first three. */
const watchKinds: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];
/** The length prefix of a path. */
const pathBytesMin = 4;

/** Length prefix of a string or vector. */
const lengthBytes = 4;
/** Replaces the size for a part that has failed. */
const nothingRead = -1;
/** Writing the name of a child, which may be far from the others in memory. */
const unitsPerName = 2;
/** Names written between two checks of how full a piece is. */
const namesPerPieceMax = 1024;
/** Looking up and starting a part of a multiRead. */
const unitsPerRead = 12;
/**
 * A frame of a megabyte can read the same megabyte of data 60,000 times. A longer reply is refused
 * before all of it is in memory; no client reads replies of nearly this length unless configured
 * to.
 */
const multiReadBytesMax = 64 * 1024 * 1024;

/** Writing an identity for its owner. */
const unitsPerIdentity = 2;
/** For an ACL whose entries are written one by one. */
const aclBytesPerUnit = 8;
/** Handling a path of a setWatches, or building the path of an ephemeral. */
const unitsPerPath = 16;

function isRead(op: MultiOp): op is Extract<MultiOp, { kind: 'getData' | 'getChildren' }> {
  return op.kind === 'getData' || op.kind === 'getChildren';
}

function isWatcherType(type: number): boolean {
  return type >= WatcherType.children && type <= WatcherType.persistentRecursive;
}

/** For a job that outlives the frame, whose bytes will be reused. */
function copyOf(reader: Reader): Reader {
  return new Reader(Buffer.from(reader.bytes.subarray(reader.offset, reader.limit)));
}

function writeText(writer: Writer, text: string): void {
  writer.ustring(text);
}
