/**
 * The first message of a server that dials an election port: its sid, and the addresses at which it
 * can be dialled back. It is not framed; frames with notifications follow it.
 *
 *     long  protocolVersion   -65536, or -65535 if several addresses may follow
 *     long  sid
 *     int   length            1 to 2048
 *     text  addresses         host:port, separated by "|", IPv6 hosts in brackets
 *
 * A first long that is not negative is the sid of a server of 3.4, which sends nothing else.
 */
import { formatHostPort, type HostPort, isWildcardHost, parseHostPort, splitList } from './host-port.ts';
import { PendingBytes } from '../jute/pending-bytes.ts';
import type { Sid } from './notification.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

export const InitialMessageVersion = {
  /** One address: sent by servers unless multiAddress.enabled is set. */
  oneAddress: -65536,
  /** Any number of addresses. */
  addresses: -65535,
} as const;

export interface InitialMessage {
  /** Undefined from an observer without a number of its own: the server it dialled assigns one. */
  readonly sid: Sid | undefined;
  /** Undefined from a server of 3.4, which sends only its sid. */
  readonly protocolVersion: number | undefined;
  /**
   * Election addresses of the dialling server. Wildcard addresses contain no location, and are
   * dropped by the decoder.
   */
  readonly addresses: readonly HostPort[];
}

/** Maximum size of the addresses in bytes; servers refuse more. */
export const addressesBytesMax = 2048;

const longBytes = 8;
const headBytes = 20;
/** 2^63-1, as halves: the sid of an observer without one. */
const anonymousHigh = 0x7fffffff;
const anonymousLow = -1;

/**
 * The minimum length of the message that begins at `start`, as far as [start, end) shows; the
 * message is complete when that many bytes are there.
 */
function knownLengthMin(bytes: Buffer, start: number, end: number): number {
  if (end - start < longBytes || bytes[start]! < 0x80) return longBytes;
  if (end - start < headBytes) return headBytes;
  const length = bytes.readInt32BE(start + headBytes - 4);
  if (length < 1 || length > addressesBytesMax) {
    throw new ProtocolError(`1 to ${addressesBytesMax} bytes of addresses, not ${length}`, start + headBytes - 4);
  }
  return headBytes + length;
}

function readSid(reader: Reader): Sid | undefined {
  const { bytes, offset } = reader;
  const sid = reader.int64();
  if (bytes.readInt32BE(offset) === anonymousHigh && bytes.readInt32BE(offset + 4) === anonymousLow) return undefined;
  if (!Number.isSafeInteger(sid)) throw new ProtocolError('a server id', offset);
  return sid;
}

function writeSid(writer: Writer, sid: Sid | undefined): void {
  if (sid === undefined) writer.int64Halves(anonymousHigh, anonymousLow);
  else writer.int64(sid);
}

function parseAddresses(text: string, at: number): HostPort[] {
  const addresses: HostPort[] = [];
  for (const part of splitList(text, '|')) {
    const address = parseHostPort(part);
    if (address === undefined) throw new ProtocolError(`host:port, not "${part}"`, at);
    if (!isWildcardHost(address.host)) addresses.push(address);
  }
  return addresses;
}

/** Decodes a complete message. Throws a ProtocolError; the caller then closes the connection. */
export function readInitialMessage(reader: Reader): InitialMessage {
  const at = reader.offset;
  const first = readSid(reader);
  if (first === undefined || first >= 0) return { sid: first, protocolVersion: undefined, addresses: [] };
  if (first !== InitialMessageVersion.oneAddress && first !== InitialMessageVersion.addresses) {
    throw new ProtocolError(`a version of the election protocol, not ${first}`, at);
  }
  const sid = readSid(reader);
  knownLengthMin(reader.bytes, at, reader.limit);
  const textAt = reader.offset;
  return { sid, protocolVersion: first, addresses: parseAddresses(reader.text('addresses'), textAt) };
}

export function writeInitialMessage(writer: Writer, { sid, protocolVersion, addresses }: InitialMessage): void {
  if (protocolVersion !== undefined) writer.int64(protocolVersion);
  writeSid(writer, sid);
  if (protocolVersion !== undefined) writer.ustring(addresses.map(formatHostPort).join('|'));
}

/** Assembles the initial message from pieces of any size; uses at most 2068 bytes of memory. */
export class InitialMessageDecoder {
  readonly #pending = new PendingBytes();
  #message: InitialMessage | undefined;

  /** The message, once it is complete. */
  get message(): InitialMessage | undefined {
    return this.#message;
  }

  /** Memory held for an incomplete message. */
  get retainedBytes(): number {
    return this.#pending.retainedBytes;
  }

  /**
   * Takes the bytes of [start, end) that belong to the message, and returns the offset of the first
   * byte after it; `end` if it is incomplete. Throws a ProtocolError as soon as the bytes cannot be
   * a message.
   */
  feed(chunk: Buffer, start: number, end: number): number {
    let at = start;
    const kept = this.#pending;
    while (this.#message === undefined) {
      const missing = knownLengthMin(kept.bytes, kept.start, kept.end) - kept.length;
      if (missing === 0) {
        this.#message = readInitialMessage(new Reader(kept.bytes, kept.start, kept.end));
        kept.release();
        break;
      }
      const taken = Math.min(missing, end - at);
      kept.append(chunk, at, at + taken);
      at += taken;
      if (taken < missing) break;
    }
    return at;
  }
}
