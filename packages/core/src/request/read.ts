/**
 * Answers everything that changes no znode, from the state as it is now. Nothing is awaited and, on the common path, nothing allocated:
 * a path is looked up as the bytes it came in, and the answer is copied into the connection's output in wire form.
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
import type { Permissions } from '../auth/permission.ts';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { WatchMode, type WatchTable } from '../tree/watch-table.ts';
import type { Answers } from './answer.ts';
import { bytesPerUnit, type Job, start, type StepBudget } from './budget.ts';
import { LongReply } from './long-reply.ts';
import type { MemoryLimits } from './memory-limits.ts';
import { asWrite } from './multi-parts.ts';
import type { Replica } from './replica.ts';

/** A request that only reads, as it was admitted. */
export interface ReadRequest {
  cnxn: Cnxn;
  xid: number;
  opCode: number;
  identities: Identities;
  arrivedMs: number;
  now: Now;
}

export class Reads {
  readonly #replica: Replica;
  readonly #watches: WatchTable;
  readonly #cnxns: CnxnTable;
  readonly #limits: MemoryLimits;
  readonly #answers: Answers;
  readonly #registry: AuthRegistry;
  readonly #permissions: Permissions;
  readonly #observer: Observer;
  readonly #budget: StepBudget;
  readonly #namesPerPiece: number;
  /** Units spent on looking at znodes one after the other, those of jobs left out. */
  work = 0;

  constructor(
    replica: Replica,
    watches: WatchTable,
    cnxns: CnxnTable,
    limits: MemoryLimits,
    answers: Answers,
    registry: AuthRegistry,
    permissions: Permissions,
    observer: Observer,
    budget: StepBudget,
  ) {
    this.#replica = replica;
    this.#watches = watches;
    this.#cnxns = cnxns;
    this.#limits = limits;
    this.#answers = answers;
    this.#registry = registry;
    this.#permissions = permissions;
    this.#observer = observer;
    this.#budget = budget;
    this.#namesPerPiece = Math.min(namesPerPieceMax, budget.names);
  }

  /** Answers at once; a job is returned when that takes more than one step. */
  answer(request: ReadRequest, reader: Reader): Job | undefined {
    try {
      return this.#answer(request, reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(request, ErrorCode.MarshallingError);
      return undefined;
    }
  }

  #answer(request: ReadRequest, reader: Reader): Job | undefined {
    switch (request.opCode) {
      case OpCode.getData:
        return this.#getData(request, reader);
      case OpCode.exists:
        return this.#exists(request, reader);
      case OpCode.getChildren:
      case OpCode.getChildren2:
        return this.#getChildren(request, reader);
      case OpCode.ping:
        return this.#succeed({ ...request, xid: Xid.ping });
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
        return this.#startDecoding({ ...request }, (own) => this.#setWatches(own, copyOf(reader), watchKinds.slice(0, 3)));
      case OpCode.setWatches2:
        return this.#startDecoding({ ...request }, (own) => this.#setWatches(own, copyOf(reader), watchKinds));
      case OpCode.getEphemerals:
        return this.#getEphemerals(request, reader);
      case OpCode.getAllChildrenNumber:
        return this.#getAllChildrenNumber(request, reader);
      case OpCode.whoAmI:
        return this.#whoAmI(request);
      case OpCode.multiRead:
        return this.#multiRead(request, reader);
      default:
        // As ZooKeeper's UnimplementedRequestProcessor: an answer without a zxid, then the end of the connection. A client that sends what no
        // client sends has lost its place in the protocol, and what follows is not to be trusted. Its session goes on.
        this.#answers.header(
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

  /** Whether the answer may take many steps, as far as can be seen at a glance. `reader` is placed over the record. */
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

  /** Starts a job that decodes as it goes, and so may find out late that the request cannot be read. */
  #startDecoding(request: ReadRequest, job: (request: ReadRequest) => Job): Job | undefined {
    return start(this.#decoding(request, job(request)));
  }

  *#decoding(request: ReadRequest, job: Job): Job {
    try {
      yield* job;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (!request.cnxn.isClosed) this.#fail(request, ErrorCode.MarshallingError);
    }
  }

  #begin(request: ReadRequest): Writer {
    return this.#answers.begin(request.cnxn, request.xid, this.#replica.lastZxid, ErrorCode.Ok);
  }

  #end(request: ReadRequest, writer: Writer): undefined {
    const { cnxn, opCode, xid, arrivedMs, now } = request;
    this.#answers.end(cnxn, writer, opCode, xid, this.#replica.lastZxid, ErrorCode.Ok, arrivedMs, now.elapsedMs, false);
  }

  /** A reply that is nothing but its header. */
  #succeed(request: ReadRequest): undefined {
    return this.#fail(request, ErrorCode.Ok);
  }

  #fail(request: ReadRequest, error: number): undefined {
    const { cnxn, opCode, xid, arrivedMs, now } = request;
    this.#answers.header(cnxn, opCode, xid, this.#replica.lastZxid, error, arrivedMs, now.elapsedMs, false);
  }

  #may(perms: number, node: NodeId, identities: Identities): boolean {
    return this.#permissions.permits(this.#replica.tree.aclOf(node), perms, identities);
  }

  /** Finds the path that comes next in the request; where its bytes are stays in the reader's range. */
  #lookup(reader: Reader): NodeId {
    if (!reader.range('a path')) throw new ProtocolError('a path', reader.offset);
    return this.#replica.tree.lookup(reader.bytes, reader.rangeStart, reader.rangeEnd);
  }

  /** Watches the path found last; returns whether there was room for that. */
  #watch({ cnxn, opCode }: ReadRequest, { bytes, rangeStart, rangeEnd }: Reader, mode: number): boolean {
    if (!this.#limits.admitsWatch(cnxn, opCode)) return false;
    this.#watches.add(cnxn.id, bytes, rangeStart, rangeEnd, mode);
    return true;
  }

  #getData(request: ReadRequest, reader: Reader): undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) return this.#fail(request, ErrorCode.NoNode);
    if (!this.#may(Perms.read, node, request.identities)) return this.#fail(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#fail(request, ErrorCode.ThrottledOp);
    const { tree } = this.#replica;
    const writer = this.#begin(request);
    tree.writeDataAndStat(node, writer);
    this.#countRead(node, reader, Math.max(0, tree.dataLengthOf(node)));
    return this.#end(request, writer);
  }

  #exists(request: ReadRequest, reader: Reader): undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) {
      if (reader.bytes.subarray(reader.rangeStart, reader.rangeEnd).includes(0)) return this.#fail(request, ErrorCode.BadArguments);
      // The one watch that is set by a read that fails: it waits for the znode to be created.
      if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#fail(request, ErrorCode.ThrottledOp);
      return this.#fail(request, ErrorCode.NoNode);
    }
    if (!this.#may(Perms.read, node, request.identities)) return this.#fail(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.data)) return this.#fail(request, ErrorCode.ThrottledOp);
    const writer = this.#begin(request);
    this.#replica.tree.writeStat(node, writer);
    this.#countRead(node, reader, 0);
    return this.#end(request, writer);
  }

  #getChildren(request: ReadRequest, reader: Reader): Job | undefined {
    const node = this.#lookup(reader);
    const watch = reader.boolean();
    if (node === 0) return this.#fail(request, ErrorCode.NoNode);
    if (!this.#may(Perms.read, node, request.identities)) return this.#fail(request, ErrorCode.NoAuth);
    if (watch && !this.#watch(request, reader, WatchMode.child)) return this.#fail(request, ErrorCode.ThrottledOp);
    const { tree } = this.#replica;
    const writer = this.#begin(request);
    const from = writer.offset;
    writer.int32(tree.childCountOf(node));
    const rest = tree.writeNames(tree.firstChildOf(node), writer, this.#budget.names, writer.offset + this.#budget.replyBytes);
    if (rest !== 0) {
      this.#answers.takeBack(writer);
      return start(this.#getChildrenSlowly({ ...request }, node));
    }
    this.work += tree.childCountOf(node) * unitsPerName;
    this.#countRead(node, reader, this.#namesBytes(node, writer.offset - from));
    if (request.opCode === OpCode.getChildren2) tree.writeStat(node, writer);
    return this.#end(request, writer);
  }

  *#getChildrenSlowly(request: ReadRequest, node: NodeId): Job {
    const reply = new LongReply();
    yield* this.#gatherChildren(request, node, reply);
    this.#countReadOf(node, this.#replica.tree.pathOf(node), this.#namesBytes(node, reply.bytes));
    if (request.opCode === OpCode.getChildren2) this.#replica.tree.writeStat(node, reply.writer);
    yield* this.#send(request, reply);
  }

  *#gatherChildren(request: ReadRequest, node: NodeId, reply: LongReply): Job {
    const { tree } = this.#replica;
    reply.writer.int32(tree.childCountOf(node));
    let child = tree.firstChildOf(node);
    let names = 0;
    while (child !== 0) {
      // A piece of 64 KiB is at most 16,384 names.
      child = tree.writeNames(child, reply.writer, this.#namesPerPiece, reply.end);
      names += this.#namesPerPiece;
      if (names < this.#budget.names) continue;
      names = 0;
      request.now = yield;
      if (request.cnxn.isClosed) return;
    }
  }

  /** What the names of a znode's children are long, when as a vector they took so many bytes. */
  #namesBytes(node: NodeId, bytes: number): number {
    return bytes - (1 + this.#replica.tree.childCountOf(node)) * lengthBytes;
  }

  /** Tells of a read of so many bytes, whose path is the reader's range. */
  #countRead(node: NodeId, reader: Reader, bytes: number): void {
    this.#observer.znodeRead(this.#replica.tree.namespaceOf(node), reader.rangeEnd - reader.rangeStart + bytes);
  }

  /** The same where the path is at hand as text. */
  #countReadOf(node: NodeId, path: string, bytes: number): void {
    this.#observer.znodeRead(this.#replica.tree.namespaceOf(node), Buffer.byteLength(path) + bytes);
  }

  /** Sends a reply that has been gathered. */
  *#send(request: ReadRequest, reply: LongReply): Job {
    const { cnxn, opCode, xid, arrivedMs } = request;
    const { lastZxid } = this.#replica;
    const { bytes } = reply;
    if (cnxn.isClosed) return;
    this.#answers.beginLong(cnxn, xid, lastZxid, ErrorCode.Ok, bytes);
    let sent = 0;
    for (const piece of reply.take()) {
      if (sent >= this.#budget.replyBytes) {
        sent = 0;
        request.now = yield;
        // Its number may be another connection's by now.
        if (cnxn.isClosed) return;
      }
      this.#answers.piece(cnxn, piece.bytes, piece.offset);
      sent += piece.offset;
    }
    this.#answers.endLong(cnxn, opCode, xid, lastZxid, ErrorCode.Ok, arrivedMs, request.now.elapsedMs, bytes, false);
  }

  #getAcl(request: ReadRequest, reader: Reader): undefined {
    const node = this.#lookup(reader);
    if (node === 0) return this.#fail(request, ErrorCode.NoNode);
    if (!this.#may(Perms.read | Perms.admin, node, request.identities)) return this.#fail(request, ErrorCode.NoAuth);
    const { tree } = this.#replica;
    const acl = tree.aclOf(node);
    const showsHashes = this.#may(Perms.admin, node, request.identities);
    const writer = this.#begin(request);
    const from = writer.offset;
    if (showsHashes) tree.acls.write(acl, writer);
    else tree.acls.writeWithoutHashes(acl, writer);
    // Without hashes each entry is looked at, and an entry is more than eight bytes.
    if (!showsHashes) this.work += (writer.offset - from) / aclBytesPerUnit;
    tree.writeStat(node, writer);
    return this.#end(request, writer);
  }

  /** It has waited for what it has to wait for: what was proposed before it, here or by the leader. */
  #sync(request: ReadRequest, reader: Reader): undefined {
    const path = reader.ustring();
    const writer = this.#begin(request);
    writer.ustring(path);
    return this.#end(request, writer);
  }

  #addWatch(request: ReadRequest, reader: Reader): undefined {
    const { path, mode } = readAddWatchRequest(reader);
    if (mode !== AddWatchMode.persistent && mode !== AddWatchMode.persistentRecursive) {
      return this.#fail(request, ErrorCode.MarshallingError);
    }
    if (!this.#limits.admitsWatch(request.cnxn, request.opCode)) return this.#fail(request, ErrorCode.ThrottledOp);
    this.#watches.addPath(request.cnxn.id, path, mode === AddWatchMode.persistent ? WatchMode.persistent : WatchMode.recursive);
    const writer = this.#begin(request);
    writer.int32(ErrorCode.Ok);
    return this.#end(request, writer);
  }

  #checkWatches(request: ReadRequest, reader: Reader): undefined {
    const { path, type } = readCheckWatchesRequest(reader);
    if (!isWatcherType(type)) return this.#fail(request, ErrorCode.MarshallingError);
    return this.#fail(request, this.#watches.has(request.cnxn.id, path, type) ? ErrorCode.Ok : ErrorCode.NoWatcher);
  }

  #removeWatches(request: ReadRequest, reader: Reader): undefined {
    const { path, type } = readCheckWatchesRequest(reader);
    if (!isWatcherType(type)) return this.#fail(request, ErrorCode.MarshallingError);
    return this.#fail(request, this.#watches.remove(request.cnxn.id, path, type) ? ErrorCode.Ok : ErrorCode.NoWatcher);
  }

  /**
   * A client that comes back tells what it watched and how far it had seen. What has changed since is told at once, under zxid -1; the
   * rest is watched again. Persistent watches are set again without a word on what they missed. What the client may not read it is not told, as
   * where a watch fires: that watch is used up in silence. ZooKeeper tells it.
   */
  *#setWatches(request: ReadRequest, reader: Reader, kinds: readonly WatchKind[]): Job {
    const { cnxn } = request;
    const first = reader.offset;
    // All of it must be readable before any of it may have an effect.
    for (const acts of [false, true]) {
      reader.offset = first;
      const relativeZxid = reader.int64();
      let done = 0;
      for (const kind of kinds) {
        const count = reader.count(pathBytesMin);
        for (let i = 0; i < count; i++) {
          this.work += acts ? unitsPerPath : 1;
          if (acts) {
            this.#setWatch(cnxn, kind, reader.text('a path'), relativeZxid);
            // Clients do not look at the answer, and would believe in watches that are not there: they had better ask another server.
            if (!this.#limits.mayKeepWatches(cnxn)) {
              this.#cnxns.close(cnxn, 'too many watches');
              return;
            }
          } else if (!reader.range('a path')) throw new ProtocolError('a path, not null', reader.offset);
          if (++done % (acts ? this.#budget.paths : this.#budget.visits) !== 0) continue;
          request.now = yield;
          if (cnxn.isClosed) return;
        }
      }
    }
    this.#succeed(request);
  }

  #setWatch(cnxn: Cnxn, kind: WatchKind, path: string, relativeZxid: Zxid): void {
    const { tree } = this.#replica;
    switch (kind) {
      case 'data': {
        const node = tree.find(path);
        if (node === 0) this.#catchUp(cnxn, EventType.nodeDeleted, path);
        else if (tree.mzxidOf(node) > relativeZxid) this.#catchUp(cnxn, EventType.nodeDataChanged, path, node);
        else this.#watches.addPath(cnxn.id, path, WatchMode.data);
        return;
      }
      case 'exist': {
        const node = tree.find(path);
        if (node === 0) this.#watches.addPath(cnxn.id, path, WatchMode.data);
        else this.#catchUp(cnxn, EventType.nodeCreated, path, node);
        return;
      }
      case 'child': {
        const node = tree.find(path);
        if (node === 0) this.#catchUp(cnxn, EventType.nodeDeleted, path);
        else if (tree.pzxidOf(node) > relativeZxid) this.#catchUp(cnxn, EventType.nodeChildrenChanged, path, node);
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

  /** `node`: the znode that there is, if there is one. Who might have read one that is gone nobody knows any more. */
  #catchUp(cnxn: Cnxn, eventType: number, path: string, node: NodeId = 0): void {
    if (node !== 0 && !this.#may(Perms.read, node, cnxn.identities)) return;
    this.#answers.prepareEvent(eventType, path, -1);
    this.#answers.event(cnxn);
  }

  #getEphemerals(request: ReadRequest, reader: Reader): Job | undefined {
    const { prefixPath } = readGetEphemeralsRequest(reader);
    const { sessionHigh, sessionLow } = request.cnxn;
    const { tree } = this.#replica;
    const prefix = prefixPath === null || prefixPath.trim() === '' || prefixPath.trim() === '/' ? '' : prefixPath;
    if (tree.ephemeralCountOf(sessionHigh, sessionLow) > this.#budget.ephemerals)
      return start(this.#getEphemeralsSlowly({ ...request }, prefix));
    this.work += tree.ephemeralCountOf(sessionHigh, sessionLow) * unitsPerPath;
    const paths = this.#replica.ephemeralPaths(sessionHigh, sessionLow).filter((path) => path.startsWith(prefix));
    const writer = this.#begin(request);
    writer.vector(paths, writeText);
    return this.#end(request, writer);
  }

  *#getEphemeralsSlowly(request: ReadRequest, prefix: string): Job {
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

  #getAllChildrenNumber(request: ReadRequest, reader: Reader): Job | undefined {
    const node = this.#lookup(reader);
    if (node === 0) return this.#fail(request, ErrorCode.NoNode);
    if (!this.#may(Perms.read, node, request.identities)) return this.#fail(request, ErrorCode.NoAuth);
    const { tree } = this.#replica;
    if (tree.isRoot(node)) return this.#answerCount(request, tree.size - 1);
    let count = 0;
    for (let at = tree.nextBelow(node, node); at !== 0; at = tree.nextBelow(at, node)) {
      if (++count === this.#budget.visits) return this.#countSlowly({ ...request }, node, at, count);
    }
    this.work += count;
    return this.#answerCount(request, count);
  }

  /** Goes on behind `from`, the last znode of those counted. */
  *#countSlowly(request: ReadRequest, top: NodeId, from: NodeId, counted: number): Job {
    const { tree } = this.#replica;
    let count = counted;
    request.now = yield;
    for (let at = tree.nextBelow(from, top); at !== 0; at = tree.nextBelow(at, top)) {
      if (++count % this.#budget.visits === 0) request.now = yield;
    }
    if (!request.cnxn.isClosed) this.#answerCount(request, count);
  }

  #answerCount(request: ReadRequest, count: number): undefined {
    const writer = this.#begin(request);
    writer.int32(count);
    return this.#end(request, writer);
  }

  #whoAmI(request: ReadRequest): undefined {
    this.work += request.identities.count * unitsPerIdentity;
    const writer = this.#begin(request);
    writer.vector(request.identities.toList(), (w, identity) => {
      w.ustring(identity.scheme);
      w.ustring(this.#registry.userName(identity));
    });
    return this.#end(request, writer);
  }

  /** Each part succeeds or fails on its own; a watch flag in a part means nothing. */
  #multiRead(request: ReadRequest, reader: Reader): Job | undefined {
    if (reader.remaining > this.#budget.shortFrameBytes)
      return this.#startDecoding({ ...request }, (own) => this.#multiReadSlowly(own, copyOf(reader), []));
    const ops: MultiOp[] = [];
    for (let op = readMultiRequestOp(reader); op !== undefined; op = readMultiRequestOp(reader)) ops.push(op);
    if (!this.#areReads(request, ops)) return undefined;
    const { tree } = this.#replica;
    const writer = this.#begin(request);
    const end = writer.offset + this.#budget.replyBytes;
    // Counted only when all parts have been written: otherwise they are about to be read again.
    const sizes: number[] = [];
    let names = 0;
    for (const op of ops) {
      const node = this.#writePartHead(request, op, writer, sizes);
      if (node !== 0) names += tree.childCountOf(node);
      if (names > this.#budget.names || writer.offset > end) {
        this.#answers.takeBack(writer);
        return start(this.#multiReadSlowly({ ...request }, undefined, ops));
      }
      if (node === 0) continue;
      const from = writer.offset;
      tree.writeChildren(node, writer);
      sizes[sizes.length - 1] = this.#namesBytes(node, writer.offset - from);
    }
    this.work += ops.length * unitsPerRead + names * unitsPerName;
    for (let i = 0; i < ops.length; i++) this.#countPart(ops[i]!, sizes[i]!);
    writeMultiEnd(writer);
    return this.#end(request, writer);
  }

  /** Reads the parts from `reader` unless they have been read already, in which case they were found to be reads. */
  *#multiReadSlowly(request: ReadRequest, reader: Reader | undefined, ops: MultiOp[]): Job {
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
      const judgedBefore = this.#permissions.work;
      const node = this.#writePartHead(request, op, reply.writer, sizes);
      const from = reply.bytes;
      if (node !== 0 && tree.childCountOf(node) <= this.#namesPerPiece) tree.writeChildren(node, reply.writer);
      else if (node !== 0) yield* this.#gatherChildren(request, node, reply);
      const size = sizes.pop()!;
      this.#countPart(op, node === 0 ? size : this.#namesBytes(node, reply.bytes - from));
      if (reply.bytes > multiReadBytesMax) {
        this.#fail(request, ErrorCode.MarshallingError);
        return;
      }
      spent += unitsPerRead + (reply.bytes - before) / bytesPerUnit + this.#permissions.work - judgedBefore;
      if (spent < this.#budget.units) continue;
      spent = 0;
      request.now = yield;
      if (cnxn.isClosed) return;
    }
    writeMultiEnd(reply.writer);
    yield* this.#send(request, reply);
  }

  /** Whether these are reads alone; if they are not, the request has been answered. */
  #areReads(request: ReadRequest, ops: readonly MultiOp[]): boolean {
    const reads = ops.filter(isRead).length;
    if (reads === ops.length) return true;
    if (reads > 0) throw new ProtocolError('reads alone in a multiRead', 0);
    for (const op of ops) asWrite(op);
    // ZooKeeper notices here that these are writes only after it has begun the reply: the error comes with an empty list behind it.
    const { cnxn, xid, opCode, arrivedMs, now } = request;
    const { lastZxid } = this.#replica;
    const writer = this.#answers.begin(cnxn, xid, lastZxid, ErrorCode.MarshallingError);
    writeMultiEnd(writer);
    this.#answers.end(cnxn, writer, opCode, xid, lastZxid, ErrorCode.MarshallingError, arrivedMs, now.elapsedMs, false);
    return false;
  }

  /**
   * One part's result, except for the names of children: then it returns the znode whose they are, otherwise 0. Adds to `sizes` how many
   * bytes have been read; see `#countPart`.
   */
  #writePartHead(request: ReadRequest, op: MultiOp, writer: Writer, sizes: number[]): NodeId {
    const { tree } = this.#replica;
    const node = op.path === null ? 0 : tree.find(op.path);
    const error = node === 0 ? ErrorCode.NoNode : this.#may(Perms.read, node, request.identities) ? ErrorCode.Ok : ErrorCode.NoAuth;
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

  #countPart(op: MultiOp, bytes: number): void {
    if (bytes !== nothingRead) this.#countReadOf(this.#replica.tree.find(op.path!), op.path!, bytes);
  }
}

type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive';
/** In the order in which setWatches2 lists them; setWatches has the first three. */
const watchKinds: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];
/** A path is at least its length. */
const pathBytesMin = 4;

/** Of a text or a vector. */
const lengthBytes = 4;
/** In place of a size, for a part that has failed. */
const nothingRead = -1;
/** A name of a child written, which may be far from the others in memory. */
const unitsPerName = 2;
/** Between two looks at how full a piece is. */
const namesPerPieceMax = 1024;
/** A part of a multiRead looked up and begun. */
const unitsPerRead = 12;
/**
 * A frame of a megabyte can ask for the same megabyte of data 60,000 times. More than this is refused before it is all in memory; no
 * client reads replies of anywhere near this length unless it was told to.
 */
const multiReadBytesMax = 64 * 1024 * 1024;

/** An identity told to its owner. */
const unitsPerIdentity = 2;
/** Of an ACL whose entries are written one by one. */
const aclBytesPerUnit = 8;
/** A path of a setWatches handled, or of an ephemeral put together. */
const unitsPerPath = 16;

function isRead(op: MultiOp): op is Extract<MultiOp, { kind: 'getData' | 'getChildren' }> {
  return op.kind === 'getData' || op.kind === 'getChildren';
}

function isWatcherType(type: number): boolean {
  return type >= WatcherType.children && type <= WatcherType.persistentRecursive;
}

/** For work that outlives the frame, whose bytes will be used again. */
function copyOf(reader: Reader): Reader {
  return new Reader(Buffer.from(reader.bytes.subarray(reader.offset, reader.limit)));
}

function writeText(writer: Writer, text: string): void {
  writer.ustring(text);
}
