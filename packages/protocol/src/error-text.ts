/**
 * Error codes in words. The names are those of `ErrorCode`; the texts are those of ZooKeeper's
 * exceptions, logs and shell, where they follow "KeeperErrorCode = ".
 */
import { ErrorCode } from './constants.ts';

/** The names in `ErrorCode`. */
export type ErrorName = keyof typeof ErrorCode;

/** Texts that differ from the name. */
const textOf: { readonly [Name in ErrorName]?: string } = {
  Ok: 'ok',
  UnknownSession: 'Unknown error UNKNOWNSESSION',
  ApiError: 'APIError',
  NotEmpty: 'Directory not empty',
  SessionExpired: 'Session expired',
  InvalidCallback: 'Invalid callback',
  SessionMoved: 'Session moved',
  NotReadOnly: 'Not a read-only call',
  EphemeralOnLocalSession: 'Ephemeral node on local session',
  NoWatcher: 'No such watcher',
  RequestTimeout: 'Unknown error REQUESTTIMEOUT',
  ReconfigDisabled: 'Reconfig is disabled',
  SessionClosedRequireSaslAuth: 'Session closed because client failed to authenticate',
  QuotaExceeded: 'Quota has exceeded',
  ThrottledOp: 'Op throttled due to high load',
};

const nameOf = new Map<number, ErrorName>();
for (const [name, code] of Object.entries(ErrorCode)) nameOf.set(code, name as ErrorName);

/** `NoNode` for -101; undefined for an unknown number. */
export function errorName(code: number): ErrorName | undefined {
  return nameOf.get(code);
}

/** The text after "KeeperErrorCode = ": `Directory not empty` for -111. */
export function errorText(code: number): string {
  const name = nameOf.get(code);
  return name === undefined ? `Unknown error ${code}` : (textOf[name] ?? name);
}

/** `KeeperErrorCode = NoNode for /a`, the message of ZooKeeper's exceptions. */
export function keeperErrorMessage(code: number, path?: string): string {
  const message = `KeeperErrorCode = ${errorText(code)}`;
  return path === undefined ? message : `${message} for ${path}`;
}
