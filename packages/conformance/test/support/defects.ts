/** Ways in which a server can be wrong, and the check that has to detect each. */
import {
  type CreateRequest,
  type Create2Reply,
  type ConnectRequest,
  ErrorCode,
  type GetDataReply,
  type GetEphemeralsRequest,
  type MultiReply,
  OpCode,
  openAcl,
  type SessionId,
  sessionPassword,
  type SetDataRequest,
  type StatReply,
} from '@tskeeper/protocol';
import { type Outgoing, withRecord, withReply, type Wrongness } from './wrong-server.ts';

export interface Case {
  readonly wrong: string;
  /** The name of the check. */
  readonly found: string;
  readonly make: () => Wrongness;
}

const creates: readonly number[] = [OpCode.create2, OpCode.createContainer, OpCode.createTTL];
const isEvent = (frame: Outgoing): boolean => frame.kind === 'event';
/** Requests of this type are answered without the server. */
const answers = (type: number, err: number): Wrongness => ({
  request: (request, answer) => {
    if (request.type !== type) return request;
    answer(err);
    return undefined;
  },
});
/** An unknown opcode is answered as it should be, but the connection stays open. */
const keepsOpen = (): Wrongness => ({
  request: (request, answer) => {
    if (![999, 0, 99, -7, OpCode.check].includes(request.type)) return request;
    answer(ErrorCode.Unimplemented);
    return undefined;
  },
});
const replaces = (type: number, from: number, to: number): Wrongness => ({
  outgoing: (frame) => [frame.kind === 'reply' && frame.type === type && frame.err === from ? { ...frame, err: to } : frame],
});

const parentOf = ({ path }: CreateRequest): CreateRequest => ({
  path: path!.slice(0, path!.lastIndexOf('/')) || '/',
  data: null,
  acl: openAcl,
  flags: 0,
});

const passwordOf = (id: SessionId): Buffer => sessionPassword(Number(BigInt.asIntN(32, id >> 32n)), Number(BigInt.asIntN(32, id)));
/** getData returns what it should have returned the time before. */
function lateReads(): Wrongness {
  let before: Buffer | undefined;
  return {
    outgoing: (frame) => {
      if (frame.kind !== 'reply' || frame.type !== OpCode.getData || frame.err !== 0) return [frame];
      const body = before ?? frame.body;
      before = frame.body;
      return [{ ...frame, body }];
    },
  };
}

export const cases: readonly Case[] = [
  {
    wrong: 'each setData counts twice',
    found: 'versions.set-data',
    make: () => ({
      outgoing: (frame) => withReply<StatReply>(frame, [OpCode.setData], ({ stat }) => ({ stat: { ...stat, version: stat.version * 2 } })),
    }),
  },
  {
    wrong: 'versions are not compared',
    found: 'versions.compare-and-set',
    make: () => ({
      request: (request) =>
        request.type === OpCode.setData ? withRecord<SetDataRequest>(request, (record) => ({ ...record, version: -1 })) : request,
    }),
  },
  {
    wrong: 'sequences begin at 1',
    found: 'sequence.format',
    make: () => ({
      outgoing: (frame) =>
        withReply<Create2Reply>(frame, creates, (reply) => ({
          ...reply,
          path: reply.path.replace(/\d{10}$/, (number) => String(Number(number) + 1).padStart(10, '0')),
        })),
    }),
  },
  {
    wrong: 'numbers have as many digits as they need',
    found: 'sequence.one-counter-per-parent',
    make: () => ({
      outgoing: (frame) => withReply<Create2Reply>(frame, creates, (reply) => ({ ...reply, path: reply.path.replace(/0*(\d+)$/, '$1') })),
    }),
  },
  {
    wrong: 'events come after the reply that shows the change',
    found: 'watches-once.before-the-reply',
    make: () => {
      const held: Outgoing[] = [];
      return {
        outgoing: (frame) => {
          if (!isEvent(frame)) return [frame, ...held.splice(0)];
          held.push(frame);
          return [];
        },
      };
    },
  },
  {
    wrong: 'a watch fires twice',
    found: 'watches-once.once',
    make: () => ({ outgoing: (frame) => (isEvent(frame) ? [frame, frame] : [frame]) }),
  },
  {
    wrong: 'a deletion is reported as a change',
    found: 'watches-once.data',
    make: () => ({ outgoing: (frame) => [frame.kind === 'event' && frame.type === 2 ? { ...frame, type: 3 } : frame] }),
  },
  {
    wrong: 'no watch receives events of children',
    found: 'watches-once.children',
    make: () => ({ outgoing: (frame) => (frame.kind === 'event' && frame.type === 4 ? [] : [frame]) }),
  },
  {
    wrong: 'exists sets no watch on a missing znode',
    found: 'watches-once.exists',
    make: () => ({
      request: (request) =>
        request.type === OpCode.exists
          ? withRecord<{ path: string; watch: boolean }>(request, ({ path }) => ({ path, watch: false }))
          : request,
    }),
  },
  {
    wrong: 'events have no zxid',
    found: 'watches-once.zxid',
    make: () => ({ outgoing: (frame) => [frame.kind === 'event' ? { ...frame, zxid: -1 } : frame] }),
  },
  {
    wrong: 'a recursive watch also receives NodeChildrenChanged',
    found: 'watches-staying.recursive-frames',
    make: () => ({
      outgoing: (frame) =>
        frame.kind === 'event' && frame.type === 1 ? [frame, { ...frame, type: 4, path: frame.path.replace(/\/[^/]*$/, '') }] : [frame],
    }),
  },
  {
    wrong: 'removeWatches succeeds without a watch',
    found: 'watches-removal.no-watcher',
    make: () => replaces(OpCode.removeWatches, ErrorCode.NoWatcher, ErrorCode.Ok),
  },
  {
    wrong: 'a removed watch still fires',
    found: 'watches-removal.check',
    make: () => answers(OpCode.removeWatches, ErrorCode.Ok),
  },
  {
    wrong: 'watches are not restored',
    found: 'watches-restored.missed',
    make: () => answers(OpCode.setWatches, ErrorCode.Ok),
  },
  {
    wrong: 'ephemeral znodes stay when their session is closed',
    found: 'sessions.close',
    make: () => answers(OpCode.closeSession, ErrorCode.Ok),
  },
  {
    wrong: 'every password is accepted',
    found: 'sessions.wrong-password',
    make: () => ({
      connectRequest: (request: ConnectRequest) => ({ ...request, passwd: passwordOf(request.sessionId) }),
    }),
  },
  {
    wrong: 'a resumed session is silently replaced by a new one',
    found: 'sessions.taken-up',
    make: () => ({ connectRequest: (request) => ({ ...request, sessionId: 0n }) }),
  },
  {
    wrong: 'the granted timeout is one millisecond too short',
    found: 'sessions.timeout',
    make: () => ({
      connectResponse: (response) => ({ ...response, timeOut: response.timeOut === 1 ? 1 : Math.floor(response.timeOut / 10) * 10 - 1 }),
    }),
  },
  {
    wrong: 'a client with a later zxid is accepted',
    found: 'sessions.client-ahead',
    make: () => ({ connectRequest: (request) => ({ ...request, lastZxidSeen: 0 }) }),
  },
  {
    wrong: 'the readOnly byte is sent to a client that sent none',
    found: 'sessions.handshake-of-old-clients',
    make: () => ({ connectResponse: (response) => ({ ...response, readOnly: false }) }),
  },
  {
    wrong: 'pings do not keep a session alive',
    found: 'sessions.pings',
    make: () => answers(OpCode.ping, ErrorCode.Ok),
  },
  {
    wrong: 'null data become empty data',
    found: 'data.null-and-empty',
    make: () => ({
      outgoing: (frame) => withReply<GetDataReply>(frame, [OpCode.getData], (reply) => ({ ...reply, data: reply.data ?? Buffer.alloc(0) })),
    }),
  },
  {
    wrong: 'deletes are not counted by cversion',
    found: 'stat.children',
    make: () => ({
      outgoing: (frame) =>
        withReply<StatReply>(frame, [OpCode.exists], ({ stat }) => ({
          stat: { ...stat, cversion: (stat.cversion + stat.numChildren) / 2 },
        })),
    }),
  },
  {
    wrong: 'setACL counts as a change of data',
    found: 'stat.set-acl',
    make: () => ({
      outgoing: (frame) => withReply<StatReply>(frame, [OpCode.setACL], ({ stat }) => ({ stat: { ...stat, version: stat.version + 1 } })),
    }),
  },
  {
    wrong: 'a container shows its owner',
    found: 'create.container',
    make: () => ({
      outgoing: (frame) =>
        withReply<Create2Reply>(frame, [OpCode.createContainer], (reply) => ({
          ...reply,
          stat: { ...reply.stat, ephemeralOwner: -(2n ** 63n) },
        })),
    }),
  },
  {
    wrong: 'a create also creates a missing parent',
    found: 'create.container',
    make: () => {
      /** For each create without an answer: whether the client has sent it. */
      const isAsked: boolean[] = [];
      return {
        request: (request) => {
          if (!creates.includes(request.type)) return request;
          isAsked.push(false, true);
          return [withRecord<CreateRequest>({ ...request, type: OpCode.create2 }, parentOf), request];
        },
        outgoing: (frame) => (frame.kind === 'reply' && creates.includes(frame.type) && !isAsked.shift() ? [] : [frame]),
      };
    },
  },
  {
    wrong: 'NotEmpty is reported as NodeExists',
    found: 'delete.refusals',
    make: () => replaces(OpCode.delete, ErrorCode.NotEmpty, ErrorCode.NodeExists),
  },
  {
    wrong: 'an invalid path is accepted',
    found: 'paths.server',
    make: () => replaces(OpCode.create2, ErrorCode.BadArguments, ErrorCode.Ok),
  },
  {
    wrong: 'ACLs are ignored',
    found: 'acl.read',
    make: () => ({
      request: (request) =>
        request.type === OpCode.create2 ? withRecord<CreateRequest>(request, (record) => ({ ...record, acl: openAcl })) : request,
    }),
  },
  {
    wrong: 'getEphemerals lists all of them',
    found: 'reads.ephemerals',
    make: () => ({
      request: (request) =>
        request.type === OpCode.getEphemerals ? withRecord<GetEphemeralsRequest>(request, () => ({ prefixPath: '' })) : request,
    }),
  },
  {
    wrong: 'a read returns what an earlier read returned',
    found: 'reads.own-writes',
    make: lateReads,
  },
  {
    wrong: 'the parts of a multi after the failed one are reported as done',
    found: 'multi.all-or-nothing',
    make: () => ({
      outgoing: (frame) =>
        withReply<MultiReply>(frame, [OpCode.multi], ({ results }) => ({
          results: results.map((each) =>
            each.kind === 'error' && each.err === ErrorCode.RuntimeInconsistency ? { ...each, err: 0 } : each,
          ),
        })),
    }),
  },
  {
    wrong: 'whoAmI is not supported',
    found: 'auth.who-am-i',
    make: () => answers(OpCode.whoAmI, ErrorCode.Unimplemented),
  },
  {
    wrong: 'an unknown operation is answered as done',
    found: 'opcodes.unknown',
    make: () => answers(999, ErrorCode.Ok),
  },
  {
    wrong: 'a connection stays open after an unknown operation',
    found: 'opcodes.unknown',
    make: keepsOpen,
  },
  {
    wrong: 'a connection stays open after a check outside a multi',
    found: 'opcodes.check-alone',
    make: keepsOpen,
  },
];

/** Bugs that only a second server can have. `server` is the index of the wrong one. */
export const ensembleCases: readonly (Case & { readonly server: number })[] = [
  { wrong: 'a server reads late', found: 'ensemble.write-anywhere', server: 1, make: lateReads },
  {
    wrong: 'a server does not know the sessions of the others',
    found: 'ensemble.session-moves',
    server: 1,
    make: () => ({ connectRequest: (request) => ({ ...request, sessionId: 0n }) }),
  },
  {
    wrong: 'a moved session may still write at its old server',
    found: 'ensemble.session-moved',
    server: 0,
    make: () => answers(OpCode.setData, ErrorCode.Ok),
  },
  {
    wrong: 'a server sends no events for writes at other servers',
    found: 'ensemble.watches',
    server: 0,
    make: () => ({ outgoing: (frame) => (isEvent(frame) ? [] : [frame]) }),
  },
];
