/**
 * Finds out something about a multi before it is validated. Nothing is decoded into objects: a multi
 * may have tens of thousands of parts.
 */
import { OpCode, ProtocolError, readStat, type Reader } from '@tskeeper/protocol';

/** Permissions, scheme and id of an entry of an ACL. */
const aclEntryBytesMin = 12;

/**
 * Calls `visit` for each part with its opcode and, for a create, its flags; otherwise 0. When it is
 * called, the path of the part is in the reader's range. Throws a `ProtocolError` if a part is not a
 * write, or cannot be decoded.
 */
export function scanMulti(reader: Reader, visit: (opCode: number, flags: number) => void): void {
  for (;;) {
    const at = reader.offset;
    const type = reader.int32();
    const done = reader.boolean();
    reader.int32();
    if (done) return;
    const flags = skipPart(reader, type, at);
    const { offset } = reader;
    reader.offset = at + partHeaderBytes;
    reader.range('a path');
    reader.offset = offset;
    visit(type, flags);
  }
}

/** Type, whether it is the end, and an error. */
const partHeaderBytes = 9;

/** Skips a CreateRequest, and returns its flags. */
export function skipCreate(reader: Reader): number {
  reader.range('a path');
  reader.range('data');
  for (let left = reader.count(aclEntryBytesMin); left > 0; left--) {
    reader.int32();
    reader.range('a scheme');
    reader.range('an id');
  }
  return reader.int32();
}

/** Skips the record of a part. Returns the flags of a create; otherwise 0. */
function skipPart(reader: Reader, type: number, at: number): number {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createIfNotExists:
      return skipCreate(reader);
    case OpCode.createTTL: {
      const flags = skipCreate(reader);
      reader.int64();
      return flags;
    }
    case OpCode.setData:
      reader.range('a path');
      reader.range('data');
      reader.int32();
      return 0;
    case OpCode.delete:
    case OpCode.check:
    case OpCode.checkNotExists:
    case OpCode.tryRemove:
    case OpCode.removeRecursive:
      reader.range('a path');
      reader.int32();
      return 0;
    case OpCode.checkStat:
      reader.range('a path');
      reader.int32();
      readStat(reader);
      return 0;
    default:
      throw new ProtocolError(`a write in a multi, not ${type}`, at);
  }
}
