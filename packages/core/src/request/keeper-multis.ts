/**
 * Multis that contain operations of ClickHouse Keeper.
 *
 * Their txns are multis as ZooKeeper makes them: a part is one create, delete, setData or check, and
 * a removeRecursive is a delete for each znode, the one that it names last. Where a part changes
 * nothing, it is a check, whose path and version have no effect when it is applied. So a server that
 * answers the client must know the parts of the request.
 */
import { OpCode, ProtocolError, type Reader } from '@tskeeper/protocol';
import type { KeeperPart } from '../pending/proposal.ts';
import { scanMulti } from './multi-scan.ts';

/**
 * The parts of the multi that `reader` is placed over; undefined if none is an operation of Keeper,
 * or if it cannot be decoded, which validation will report.
 */
export function keeperPartsOf(reader: Reader): readonly KeeperPart[] | undefined {
  const { offset } = reader;
  try {
    if (!containsAny(reader, isKeeperPart)) return undefined;
    reader.offset = offset;
    const parts: KeeperPart[] = [];
    scanMulti(reader, (opCode) => {
      const path = opCode === OpCode.removeRecursive ? reader.bytes.toString('utf8', reader.rangeStart, reader.rangeEnd) : '';
      parts.push({ opCode, path });
    });
    return parts;
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  } finally {
    reader.offset = offset;
  }
}

function containsAny(reader: Reader, isOne: (opCode: number) => boolean): boolean {
  let found = false;
  scanMulti(reader, (opCode) => {
    if (isOne(opCode)) found = true;
  });
  return found;
}

function isKeeperPart(opCode: number): boolean {
  return opCode >= OpCode.checkNotExists && opCode <= OpCode.tryRemove;
}

/**
 * The most znodes that a removeRecursive may remove, alone or as parts of a multi, as the request
 * says; 0 for any other request, and for one that cannot be decoded. `reader` is placed over the
 * record, and is not moved.
 */
export function removalLimitOf(opCode: number, reader: Reader): number {
  if (opCode !== OpCode.removeRecursive && opCode !== OpCode.multi) return 0;
  const { offset } = reader;
  try {
    if (opCode === OpCode.removeRecursive) {
      reader.range('a path');
      return reader.int32() >>> 0;
    }
    let limit = 0;
    scanMulti(reader, (part) => {
      // The limit is the last field of the part.
      if (part === OpCode.removeRecursive) limit += reader.bytes.readUInt32BE(reader.offset - limitBytes);
    });
    return limit;
  } catch (error) {
    if (error instanceof ProtocolError) return 0;
    throw error;
  } finally {
    reader.offset = offset;
  }
}

const limitBytes = 4;
