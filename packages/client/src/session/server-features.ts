/**
 * What the connected server can do that servers of ZooKeeper cannot.
 *
 * A server closes the connection of a client that sends an opcode which it does not know, so the
 * client has to ask first. It reads a path that is a znode nowhere: a server of this project
 * answers with the names of its features, every other server with NoNode. The answer counts for the
 * connection on which it came, as the next server may be another kind.
 */
import { ErrorCode, featuresPath, OpCode, operations, type serverFeature } from '@tskeeper/protocol';
import type { Operation } from '../operations/operation.ts';

/** A name in the answer. */
export type ServerFeature = (typeof serverFeature)[keyof typeof serverFeature];

/** What `ServerFeatures` needs of the session. */
export interface FeatureSession {
  /** Counts the connections made; that of the current or last one. */
  readonly cnxnNumber: number;
  /** A request made now is sent on the current connection. */
  readonly sendsAtOnce: boolean;
}

const none: ReadonlySet<string> = new Set();

export class ServerFeatures {
  readonly #session: FeatureSession;
  /** The connection whose server has answered last. */
  #cnxnNumber = 0;
  #names = none;

  constructor(session: FeatureSession) {
    this.#session = session;
  }

  /**
   * Whether the server that receives a request made now has this feature; undefined if it must be
   * asked, or if the next server will receive the request.
   */
  has(feature: ServerFeature): boolean | undefined {
    const { sendsAtOnce, cnxnNumber } = this.#session;
    return sendsAtOnce && cnxnNumber === this.#cnxnNumber ? this.#names.has(feature) : undefined;
  }

  /** Asks the server. */
  question(): Operation<void> {
    const answered = (names: ReadonlySet<string>): void => {
      this.#cnxnNumber = this.#session.cnxnNumber;
      this.#names = names;
    };
    return {
      opCode: OpCode.getData,
      write: (writer) => operations.getData.request.write(writer, { path: featuresPath, watch: false }),
      read: (reader) => answered(new Set(operations.getData.reply.read(reader).data?.toString().split('\n'))),
      readError: (err) => {
        if (err !== ErrorCode.NoNode && err !== ErrorCode.NoAuth) return undefined;
        answered(none);
        return { result: undefined };
      },
    };
  }
}
