/** How the tools show values of ZooKeeper's files to people and to programs. */
import { type Acl, formatSessionId, permsText, sessionIdOf } from '@tskeeper/protocol';

/** Data for programs: text if the data are text, else base64. */
export type DataView = { readonly data: string | null; readonly encoding?: 'utf8' | 'base64' };

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function dataView(data: Uint8Array | null): DataView {
  if (data === null) return { data: null };
  try {
    return { data: strictUtf8.decode(data), encoding: 'utf8' };
  } catch {
    return { data: Buffer.from(data).toString('base64'), encoding: 'base64' };
  }
}

/** Data on one line: quoted text, or base64 marked as such. */
export function dataText(data: Uint8Array | null): string {
  const view = dataView(data);
  if (view.data === null) return 'null';
  return view.encoding === 'base64' ? `base64 ${view.data}` : JSON.stringify(view.data);
}

export function lengthText(data: Uint8Array | null): string {
  return data === null ? 'no data' : count(data.length, 'byte');
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

export function aclView(acl: readonly Acl[]): { scheme: string | null; id: string | null; perms: string }[] {
  return acl.map(({ perms, id }) => ({ scheme: id.scheme, id: id.id, perms: permsText(perms) }));
}

/** The format that zkCli accepts: `world:anyone:cdrwa,ip:10.0.0.1:r`. */
export function aclText(acl: readonly Acl[]): string {
  return acl.map(({ perms, id }) => `${id.scheme}:${id.id}:${permsText(perms)}`).join(',');
}

export function sessionText(high: number, low: number): string {
  return formatSessionId(sessionIdOf(high, low));
}

/** A 64-bit digest, unsigned. */
export function digestText(high: number, low: number): string {
  return `0x${BigInt.asUintN(64, sessionIdOf(high, low)).toString(16)}`;
}

/** A wall clock time in ms. A time beyond JavaScript's dates stays a number. */
export function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms}`;
}
