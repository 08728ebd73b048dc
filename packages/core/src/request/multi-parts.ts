/**
 * Which operations a multi may contain, and how their parts are interpreted. Stricter than outside
 * of a multi, as in ZooKeeper.
 */
import { CreateMode, type MultiOp, ProtocolError } from '@tskeeper/protocol';

export type MultiWrite = Exclude<MultiOp, { kind: 'getData' | 'getChildren' }>;

/**
 * In a multi, the flags of a create decide the kind of znode, not the opcode as for a single
 * create. Throws a `ProtocolError` for operations and modes that a multi may not contain.
 *
 * @param withKeeper whether it may contain operations of Keeper.
 */
export function toMultiWrite(op: MultiOp, withKeeper: boolean): MultiWrite {
  if (op.path === null) throw new ProtocolError('a path', 0);
  switch (op.kind) {
    case 'getData':
    case 'getChildren':
      throw new ProtocolError('only writes in a multi', 0);
    case 'create':
    case 'create2':
    case 'createContainer':
      if (op.flags < CreateMode.persistent || op.flags > CreateMode.container)
        throw new ProtocolError(`a mode without TTL, not ${op.flags}`, 0);
      if (op.acl === null) throw new ProtocolError('an ACL', 0);
      return op.flags === CreateMode.container ? { ...op, kind: 'createContainer' } : op;
    case 'createTTL': {
      if (isTtlMode(op.flags)) return op;
      const { path, data, acl, flags } = op;
      return { kind: flags === CreateMode.container ? 'createContainer' : 'create', path, data, acl, flags };
    }
    case 'createIfNotExists':
    case 'checkNotExists':
    case 'removeRecursive':
    case 'checkStat':
    case 'tryRemove':
      if (!withKeeper) throw new ProtocolError('no operation of Keeper in a multi', 0);
      return op;
    default:
      return op;
  }
}

export function isTtlMode(mode: number): boolean {
  return mode === CreateMode.persistentWithTtl || mode === CreateMode.persistentSequentialWithTtl;
}
