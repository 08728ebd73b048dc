import { expect, test } from 'vitest';
import { ErrorCode, errorName, errorText, keeperErrorMessage } from '../src/index.ts';

test.each([
  [0, 'Ok', 'ok'],
  [-1, 'SystemError', 'SystemError'],
  [-2, 'RuntimeInconsistency', 'RuntimeInconsistency'],
  [-3, 'DataInconsistency', 'DataInconsistency'],
  [-4, 'ConnectionLoss', 'ConnectionLoss'],
  [-5, 'MarshallingError', 'MarshallingError'],
  [-6, 'Unimplemented', 'Unimplemented'],
  [-7, 'OperationTimeout', 'OperationTimeout'],
  [-8, 'BadArguments', 'BadArguments'],
  [-12, 'UnknownSession', 'Unknown error UNKNOWNSESSION'],
  [-13, 'NewConfigNoQuorum', 'NewConfigNoQuorum'],
  [-14, 'ReconfigInProgress', 'ReconfigInProgress'],
  [-100, 'ApiError', 'APIError'],
  [-101, 'NoNode', 'NoNode'],
  [-102, 'NoAuth', 'NoAuth'],
  [-103, 'BadVersion', 'BadVersion'],
  [-108, 'NoChildrenForEphemerals', 'NoChildrenForEphemerals'],
  [-110, 'NodeExists', 'NodeExists'],
  [-111, 'NotEmpty', 'Directory not empty'],
  [-112, 'SessionExpired', 'Session expired'],
  [-113, 'InvalidCallback', 'Invalid callback'],
  [-114, 'InvalidACL', 'InvalidACL'],
  [-115, 'AuthFailed', 'AuthFailed'],
  [-118, 'SessionMoved', 'Session moved'],
  [-119, 'NotReadOnly', 'Not a read-only call'],
  [-120, 'EphemeralOnLocalSession', 'Ephemeral node on local session'],
  [-121, 'NoWatcher', 'No such watcher'],
  [-122, 'RequestTimeout', 'Unknown error REQUESTTIMEOUT'],
  [-123, 'ReconfigDisabled', 'Reconfig is disabled'],
  [-124, 'SessionClosedRequireSaslAuth', 'Session closed because client failed to authenticate'],
  [-125, 'QuotaExceeded', 'Quota has exceeded'],
  [-127, 'ThrottledOp', 'Op throttled due to high load'],
])('error %i is named %s, with the text "%s"', (code, name, text) => {
  expect(errorName(code)).toBe(name);
  expect(errorText(code)).toBe(text);
  expect(Object.values(ErrorCode)).toContain(code);
});

test('A17: the table above contains every code', () => {
  expect(Object.keys(ErrorCode)).toHaveLength(32);
});

test('an unknown error number has no name, and its text contains the number', () => {
  expect(errorName(-99)).toBeUndefined();
  expect(errorText(-99)).toBe('Unknown error -99');
});

test("error messages are those of Java's exceptions, with a path or without", () => {
  expect(keeperErrorMessage(-101, '/a')).toBe('KeeperErrorCode = NoNode for /a');
  expect(keeperErrorMessage(-112)).toBe('KeeperErrorCode = Session expired');
});
