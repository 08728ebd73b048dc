/** A recording as text: requests, replies, and what happened to the servers. */
import type { Millis } from '@tskeeper/protocol';
import { isWrite } from './request-kinds.ts';
import { requestText, replyText } from './request-text.ts';
import type { CnxnRecord, Recording } from './recording.ts';

interface Entry {
  readonly atMs: Millis;
  readonly text: string;
}

const lineMax = 240;

/** One line per event, in order; times are those of the world, in milliseconds. */
export function traceLines(recording: Recording): string[] {
  const entries: Entry[] = [];
  const add = (atMs: Millis | undefined, text: string) => {
    if (atMs !== undefined) entries.push({ atMs, text });
  };
  for (const { server, startedMs, servingMs, failedMs, failure, closingMs, endedMs } of recording.processes) {
    add(startedMs, `${server} starts`);
    add(servingMs, `${server} serves`);
    add(failedMs, `${server} fails: ${failure}`);
    add(closingMs, `${server} is asked to close`);
    add(endedMs, `${server} is gone`);
  }
  for (const { server, fromMs, toMs } of recording.pauses) {
    add(fromMs, `${server} is paused`);
    add(toMs, `${server} continues`);
  }
  for (const { atMs, text } of recording.annotations) add(atMs, text);
  for (const { server, fromMs, offsetMs } of recording.wallClocks)
    add(fromMs, `the wall clock of ${server} has an offset of ${offsetMs} ms`);
  for (const cnxn of recording.cnxns) traceCnxn(cnxn, add);
  for (const cnxn of recording.readOnlyCnxns) traceCnxn(cnxn, add, ', read-only');
  for (const { kind, server, atMs } of recording.peerEvents) {
    if (kind === 'readOnly') add(atMs, `${server} begins read-only mode`);
    if (kind === 'readOnlyEnded') add(atMs, `${server} ends read-only mode`);
  }
  for (const { client, atMs, kind, text } of recording.clientDeliveries) add(atMs, `${client} reports ${kind} ${text}`);
  for (const { atMs, logged } of recording.log) {
    const { clientHigh, clientLow, cxid, zxid, type } = logged.header;
    const session = `0x${clientHigh.toString(16)}${(clientLow >>> 0).toString(16).padStart(8, '0')}`;
    add(atMs, `  log: ${zxid} is ${logged.txn.kind} (type ${type}) of ${session}, xid ${cxid}`);
  }
  entries.sort((a, b) => a.atMs - b.atMs);
  return entries.map(({ atMs, text }) => `${atMs.toFixed(3)} ${text.length > lineMax ? `${text.slice(0, lineMax)}...` : text}`);
}

function traceCnxn(cnxn: CnxnRecord, add: (atMs: Millis | undefined, text: string) => void, mode = ''): void {
  const who = `${cnxn.client} ${cnxn.key}`;
  add(cnxn.openedMs, `${who} connects to ${cnxn.server}${mode}`);
  if (cnxn.session !== undefined) {
    const outcome = cnxn.session === 0n ? 'is refused' : `is in session 0x${cnxn.session.toString(16)} for ${cnxn.timeoutMs} ms`;
    add(cnxn.handshakeMs, `${who} ${outcome}`);
  }
  for (const request of cnxn.requests) add(request.sentMs, `${who} ${isWrite(request) ? 'writes' : 'sends'} ${requestText(request)}`);
  for (const item of cnxn.items) {
    if (item.kind === 'event') add(item.atMs, `${who} receives event ${item.type} of ${item.path} at ${item.zxid}`);
    else add(item.atMs, `${who} receives for xid ${item.xid} at ${item.zxid} ${replyText(item.request)}`);
  }
  add(cnxn.malformedMs, `${who} has sent bytes that are not a request`);
  add(cnxn.closedMs, `${who} is closed`);
}
