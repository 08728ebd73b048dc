/** What the name and the reply of a request tell about how the server handled it. */
import { ErrorCode, type Millis, type SessionId } from '@tskeeper/protocol';
import type { Request } from './recording.ts';

const writeNames: ReadonlySet<string> = new Set([
  'create',
  'create2',
  'createContainer',
  'createTTL',
  'delete',
  'setData',
  'setACL',
  'multi',
  'reconfig',
  'closeSession',
  'createIfNotExists',
  'removeRecursive',
  'tryRemove',
]);

/** Whether a request is a write that the server accepted and ordered, as far as its client knows. */
export function isWrite(request: Request): boolean {
  return request.name !== undefined && writeNames.has(request.name) && !isThrottled(request) && request.closesLocally !== true;
}

/** Refused before validation: it has no txn, and its reply keeps its place like that of a read. */
export function isThrottled({ name, reply }: Request): boolean {
  return reply?.err === ErrorCode.ThrottledOp && name !== undefined && writeNames.has(name);
}

/** Answered at once, before pending requests: its place among the replies says nothing. */
export function isAnsweredOutOfOrder({ name }: Request): boolean {
  return name === undefined || name === 'auth' || name === 'sasl' || name === 'check' || name === 'deleteContainer';
}

/**
 * When the SASL exchange of a connection ended, as far as its client knows: -Infinity without one,
 * Infinity if a token was not answered. A client library sends nothing else before.
 */
export function saslEndMs(requests: readonly Request[]): Millis {
  const tokens = requests.filter(({ name }) => name === 'sasl');
  if (tokens.length === 0) return -Infinity;
  // The first token asks for a challenge, and the second one answers it.
  return tokens.length === 1 ? Infinity : (tokens.at(-1)!.reply?.atMs ?? Infinity);
}

/** Equal for requests and txns that may belong together. */
export function requestKey(session: SessionId, xid: number): string {
  return `${session} ${xid}`;
}
