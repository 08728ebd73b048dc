import { ErrorCode, EventType, OpCode, type TxnLogEntry } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { type CnxnRecord, type Item, newCnxnRecord, newRecording, type Request, type RunLimits } from '../../src/record/recording.ts';
import { replay } from '../../src/replay/replay.ts';

const session = 1n;

function answered(name: 'auth' | 'setWatches2', xid: number, record: object, zxid: number): Request {
  return { session, xid, opCode: OpCode[name], name, record, sentMs: 10, reply: { atMs: 11, zxid, err: ErrorCode.Ok, body: undefined } };
}

function entry(zxid: number, type: number, txn: object) {
  const header = { clientHigh: 0, clientLow: 1, cxid: 0, zxid, timeMs: zxid, type };
  return { atMs: zxid, bytes: 50, logged: { header, txn, digest: undefined } as unknown as TxnLogEntry };
}

/**
 * A client of a server in read-only mode that restores a watch: neither the reply to auth nor the event
 * of the watch has a zxid.
 */
function readOnlyCnxn(shownZxid: number): CnxnRecord {
  const watches = { dataWatches: ['/k'], existWatches: [], childWatches: [], persistentWatches: [], persistentRecursiveWatches: [] };
  const auth = answered('auth', -4, { type: 0, scheme: 'digest', auth: Buffer.from('a:b') }, 0);
  const setWatches = answered('setWatches2', -8, { kind: 'setWatches2', relativeZxid: 0, ...watches }, shownZxid);
  const cnxn = newCnxnRecord({ client: 'client-1', server: 'server-1', address: '10.0.0.1:1', openedMs: 5 });
  const items: Item[] = [
    { kind: 'reply', atMs: 11, xid: -4, zxid: 0, request: auth },
    { kind: 'event', atMs: 11, zxid: -1, type: EventType.nodeDeleted, path: '/k' },
    { kind: 'reply', atMs: 11, xid: -8, zxid: shownZxid, request: setWatches },
  ];
  return Object.assign(cnxn, { key: '10.0.0.1:1', session, requests: [auth, setWatches], items });
}

it('a read-only server whose last txn ended a session may serve the client that still has it', () => {
  const recording = newRecording({ tickMs: 100, extendedTypesEnabled: true } as RunLimits);
  recording.log = [
    entry(1, OpCode.createSession, { kind: 'createSession', timeoutMs: 1000 }),
    entry(2, OpCode.closeSession, { kind: 'closeSession', paths: [] }),
    entry(3, OpCode.createSession, { kind: 'createSession', timeoutMs: 1000 }),
  ];
  recording.readOnlyCnxns.push(readOnlyCnxn(2));
  const { discrepancies, reads } = replay(recording);
  expect(discrepancies).toEqual([]);
  expect(reads).toHaveLength(1);
});
