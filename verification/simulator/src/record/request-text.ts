/** Requests and replies as text, for findings and for comparison. */
import { bodyFrom, operationFrom, sortedBody } from '../model/from-wire.ts';
import type { Request } from './recording.ts';

const textMax = 300;

export function requestText({ session, xid, name, opCode, record }: Request): string {
  const text = record === undefined ? '' : ` ${textOf(operationFrom(name, opCode, record))}`;
  return `${name ?? opCode}${text.length > textMax ? `${text.slice(0, textMax)}...` : text} (session 0x${BigInt.asUintN(64, session).toString(16)}, xid ${xid})`;
}

/** A reply as text, equal if it has the same content. */
export function replyText({ reply }: Pick<Request, 'reply'>): string {
  return reply === undefined ? 'nothing' : textOf({ err: reply.err, body: sortedBody(bodyFrom(reply.body)) });
}

/** A value as text, equal for equal values. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (key, each: unknown) => {
    if (typeof each === 'bigint') return `0x${BigInt.asUintN(64, each).toString(16)}`;
    if (key === 'acl' && Array.isArray(each)) return each.map((entry) => JSON.stringify(entry)).toSorted();
    return isPlain(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each;
  });
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
