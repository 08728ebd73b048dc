/**
 * Finds out whether a write would create an ephemeral, before it is validated: the session must be
 * global by then. Like ZooKeeper's checkUpgradeSession it looks at create and create2, alone or in
 * a multi. Nothing is decoded into objects: a multi may have tens of thousands of parts.
 */
import { CreateMode, OpCode, ProtocolError, type Reader } from '@tskeeper/protocol';

/** Permissions, scheme and id of an entry of an ACL. */
const aclEntryBytesMin = 12;

/** Whether the record that `reader` is placed over can be decoded and creates an ephemeral. */
export function createsEphemeral(opCode: number, reader: Reader): boolean {
  if (opCode !== OpCode.create && opCode !== OpCode.create2 && opCode !== OpCode.multi) return false;
  const { offset } = reader;
  try {
    return opCode === OpCode.multi ? hasEphemeralCreate(reader) : isEphemeral(skipCreate(reader));
  } catch (error) {
    // Validation will report the error.
    if (error instanceof ProtocolError) return false;
    throw error;
  } finally {
    reader.offset = offset;
  }
}

function isEphemeral(flags: number): boolean {
  return flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
}

/** Skips a CreateRequest, and returns its flags. */
function skipCreate(reader: Reader): number {
  reader.range('a path');
  reader.range('data');
  for (let left = reader.count(aclEntryBytesMin); left > 0; left--) {
    reader.int32();
    reader.range('a scheme');
    reader.range('an id');
  }
  return reader.int32();
}

function hasEphemeralCreate(reader: Reader): boolean {
  let found = false;
  for (;;) {
    const at = reader.offset;
    const type = reader.int32();
    const done = reader.boolean();
    reader.int32();
    if (done) return found;
    switch (type) {
      case OpCode.create:
      case OpCode.create2:
        found = isEphemeral(skipCreate(reader)) || found;
        break;
      case OpCode.createContainer:
        skipCreate(reader);
        break;
      case OpCode.createTTL:
        skipCreate(reader);
        reader.int64();
        break;
      case OpCode.setData:
        reader.range('a path');
        reader.range('data');
        reader.int32();
        break;
      case OpCode.delete:
      case OpCode.check:
        reader.range('a path');
        reader.int32();
        break;
      default:
        throw new ProtocolError(`a write in a multi, not ${type}`, at);
    }
  }
}
