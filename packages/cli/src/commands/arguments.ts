/**
 * Parsers for arguments of the command line. Each throws InvalidArgumentError with a sentence that
 * says what is expected.
 */
import type { SessionId, Zxid } from '@tskeeper/protocol';
import { InvalidArgumentError } from 'commander';

/** Parses `0x1a`, as ZooKeeper prints it, or a decimal number. */
export function parseZxid(text: string): Zxid {
  const zxid = Number(text);
  if (!/^(0x[0-9a-f]+|\d+)$/i.test(text) || !Number.isSafeInteger(zxid)) throw new InvalidArgumentError('It must be a zxid, such as 0x1a.');
  return zxid;
}

export function parseSessionId(text: string): SessionId {
  if (!/^(0x[0-9a-f]{1,16}|\d+)$/i.test(text)) throw new InvalidArgumentError('It must be a session id, such as 0x100000ceb4c0000.');
  return BigInt.asIntN(64, BigInt(text));
}

export function parsePath(text: string): string {
  if (!text.startsWith('/')) throw new InvalidArgumentError('It must be the path of a znode, which begins with /.');
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
}

/** Parses a number of bytes or znodes. */
export function parseCount(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) throw new InvalidArgumentError('It must be a whole number, 0 or greater.');
  return number;
}
