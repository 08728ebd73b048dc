/**
 * Finds out whether a write would create an ephemeral, before it is validated: the session must be
 * global by then. Like ZooKeeper's checkUpgradeSession it looks at create and create2, alone or in
 * a multi, and also at Keeper's createIfNotExists.
 */
import { CreateMode, OpCode, ProtocolError, type Reader } from '@tskeeper/protocol';
import { scanMulti, skipCreate } from './multi-scan.ts';

/** Whether the record that `reader` is placed over can be decoded and creates an ephemeral. */
export function createsEphemeral(opCode: number, reader: Reader): boolean {
  if (!isEphemeralOperation(opCode) && opCode !== OpCode.multi) return false;
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

function isEphemeralOperation(opCode: number): boolean {
  return opCode === OpCode.create || opCode === OpCode.create2 || opCode === OpCode.createIfNotExists;
}

function isEphemeral(flags: number): boolean {
  return flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
}

function hasEphemeralCreate(reader: Reader): boolean {
  let found = false;
  scanMulti(reader, (opCode, flags) => {
    if (isEphemeralOperation(opCode)) found = isEphemeral(flags) || found;
  });
  return found;
}
