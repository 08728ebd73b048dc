/**
 * Answers what operators ask of one server (operator-operations.ts of the protocol). The request for
 * another leader is a write, unless no server here could fulfil it.
 */
import {
  epochOf,
  ErrorCode,
  OpCode,
  Perms,
  type Reader,
  readShedRequest,
  systemPath,
  writeGetLeaderReply,
  writeShedReply,
} from '@tskeeper/protocol';
import type { Permissions } from '../auth/permissions.ts';
import type { ConnectionShedder } from '../cnxn/connection-shedder.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';
import type { WriteSequencer } from './write-sequencer.ts';

const perMilleMax = 1000;

export class OperatorRequests {
  readonly #replica: Replica;
  readonly #permissions: Permissions;
  readonly #sequencer: Pick<WriteSequencer, 'leader' | 'isReadOnly'>;
  readonly #shedder: ConnectionShedder;

  constructor(
    replica: Replica,
    permissions: Permissions,
    sequencer: Pick<WriteSequencer, 'leader' | 'isReadOnly'>,
    shedder: ConnectionShedder,
  ) {
    this.#replica = replica;
    this.#permissions = permissions;
    this.#sequencer = sequencer;
    this.#shedder = shedder;
  }

  handle(request: Request, reader: Reader, replies: ReadReplies): undefined {
    switch (request.opCode) {
      case OpCode.getLeader:
        return this.#getLeader(request, replies);
      case OpCode.shedConnections:
        return this.#shed(request, reader, replies);
      default:
        // This server is standalone, learns from a follower, or has a leader that runs ZooKeeper.
        return replies.error(request, this.#sequencer.isReadOnly ? ErrorCode.NotReadOnly : ErrorCode.Unimplemented);
    }
  }

  #getLeader(request: Request, replies: ReadReplies): undefined {
    const { leader, isReadOnly } = this.#sequencer;
    if (isReadOnly) return replies.error(request, ErrorCode.NotReadOnly);
    const writer = replies.begin(request);
    writeGetLeaderReply(writer, { leader, epoch: leader === undefined ? 0 : epochOf(this.#replica.lastZxid) });
    return replies.end(request, writer);
  }

  #shed(request: Request, reader: Reader, replies: ReadReplies): undefined {
    const { perMille } = readShedRequest(reader);
    const { tree } = this.#replica;
    const node = tree.find(systemPath.config);
    if (node === 0 || !this.#permissions.permits(tree.aclOf(node), Perms.write, request.identities))
      return replies.error(request, ErrorCode.NoAuth);
    if (perMille < 0 || perMille > perMilleMax) return replies.error(request, ErrorCode.BadArguments);
    const count = this.#shedder.shed(perMille / perMilleMax, request.cnxn, request.now);
    const writer = replies.begin(request);
    writeShedReply(writer, { count });
    return replies.end(request, writer);
  }
}
