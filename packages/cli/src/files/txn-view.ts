/**
 * Formats one txn of a log: as a line for people, as an object for programs, and as the paths that
 * it names.
 */
import { errorName, formatZxid, type TxnLogEntry, OpCode, type Txn } from '@tskeeper/protocol';
import { aclText, aclView, dataText, dataView, digestText, lengthText, sessionText, timeText } from './views.ts';

const namesByType = new Map<number, string>(Object.entries(OpCode).map(([name, type]) => [type, name]));

export function typeName(type: number): string {
  return namesByType.get(type) ?? `type ${type}`;
}

/** `time session 0x.. cxid 0x.. zxid 0x.. type ...`: the order of zkTxnLogToolkit.sh. */
export function txnLine({ header, txn }: TxnLogEntry, withData: boolean): string {
  const session = sessionText(header.clientHigh, header.clientLow);
  const cxid = `0x${(header.cxid >>> 0).toString(16)}`;
  const rest = bodyText(txn, withData);
  return `${timeText(header.time)} session ${session} cxid ${cxid} zxid ${formatZxid(header.zxid)} ${typeName(header.type)}${rest === '' ? '' : ` ${rest}`}`;
}

export function txnView({ header, txn, digest }: TxnLogEntry, withData: boolean): Record<string, unknown> {
  return {
    zxid: formatZxid(header.zxid),
    session: sessionText(header.clientHigh, header.clientLow),
    cxid: header.cxid,
    time: timeText(header.time),
    type: typeName(header.type),
    ...bodyView(txn, withData),
    ...(digest !== undefined && { digest: { version: digest.version, value: digestText(digest.high, digest.low) } }),
  };
}

/** Every path that a txn names, whether or not the txn changed it. */
export function pathsOf(txn: Txn): readonly string[] {
  switch (txn.kind) {
    case 'createSession':
    case 'error':
      return [];
    case 'closeSession':
      return txn.paths2Delete ?? [];
    case 'multi':
      return txn.txns.flatMap((member) => pathsOf(member.txn));
    default:
      return [txn.path];
  }
}

function bodyText(txn: Txn, withData: boolean): string {
  const data = (bytes: Uint8Array | null) => (withData ? `data ${dataText(bytes)}` : lengthText(bytes));
  switch (txn.kind) {
    case 'create':
      return `${txn.path} ${data(txn.data)}, acl ${aclText(txn.acl)}${txn.ephemeral ? ', ephemeral' : ''}, parent cversion ${txn.parentCVersion}`;
    case 'createContainer':
      return `${txn.path} ${data(txn.data)}, acl ${aclText(txn.acl)}, parent cversion ${txn.parentCVersion}`;
    case 'createTTL':
      return `${txn.path} ${data(txn.data)}, acl ${aclText(txn.acl)}, ttl ${txn.ttl} ms, parent cversion ${txn.parentCVersion}`;
    case 'delete':
      return txn.path;
    case 'setData':
      return `${txn.path} ${data(txn.data)}, version ${txn.version}`;
    case 'setACL':
      return `${txn.path} acl ${aclText(txn.acl)}, aversion ${txn.version}`;
    case 'check':
      return `${txn.path} version ${txn.version}`;
    case 'createSession':
      return `timeout ${txn.timeOut} ms`;
    case 'closeSession':
      if (txn.paths2Delete === null) return '';
      return txn.paths2Delete.length === 0 ? 'without ephemerals' : `deletes ${txn.paths2Delete.join(' ')}`;
    case 'error':
      return `${errorName(txn.err) ?? 'code'} (${txn.err})`;
    case 'multi':
      return `of ${txn.txns.length}: ${txn.txns.map((member) => `${typeName(member.type)} ${bodyText(member.txn, withData)}`).join('; ')}`;
    default:
      return txn satisfies never;
  }
}

function bodyView(txn: Txn, withData: boolean): Record<string, unknown> {
  const data = (bytes: Uint8Array | null) => ({ dataLength: bytes === null ? null : bytes.length, ...(withData && dataView(bytes)) });
  switch (txn.kind) {
    case 'create':
      return {
        path: txn.path,
        ...data(txn.data),
        acl: aclView(txn.acl),
        ephemeral: txn.ephemeral,
        parentCversion: txn.parentCVersion,
      };
    case 'createContainer':
      return { path: txn.path, ...data(txn.data), acl: aclView(txn.acl), parentCversion: txn.parentCVersion };
    case 'createTTL':
      return { path: txn.path, ...data(txn.data), acl: aclView(txn.acl), ttl: txn.ttl, parentCversion: txn.parentCVersion };
    case 'delete':
      return { path: txn.path };
    case 'setData':
      return { path: txn.path, ...data(txn.data), version: txn.version };
    case 'setACL':
      return { path: txn.path, acl: aclView(txn.acl), aversion: txn.version };
    case 'check':
      return { path: txn.path, version: txn.version };
    case 'createSession':
      return { timeout: txn.timeOut };
    case 'closeSession':
      return { deletes: txn.paths2Delete };
    case 'error':
      return { code: txn.err, error: errorName(txn.err) ?? null };
    case 'multi':
      return { txns: txn.txns.map((member) => ({ type: typeName(member.type), ...bodyView(member.txn, withData) })) };
    default:
      return txn satisfies never;
  }
}
