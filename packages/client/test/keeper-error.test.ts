import { ErrorCode } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { codeOf, KeeperError, RequestFailure } from '../src/keeper-error.ts';

describe('KeeperError', () => {
  it.each(Object.entries(ErrorCode).filter(([name]) => name !== 'Ok'))('has a code for %s', (name, errno) => {
    const error = new KeeperError('getData', '/a', new RequestFailure(errno, 'refused'));
    expect(error).toMatchObject({ name: 'KeeperError', code: name, errno, op: 'getData', path: '/a', outcome: 'refused' });
    expect(error.message).toMatch(/^KeeperErrorCode = .* for \/a( \(.*\))?$/);
  });

  it('has the code Unknown for unknown numbers', () => {
    expect(codeOf(0)).toBe('Unknown');
    expect(new KeeperError('sync', undefined, new RequestFailure(-4711, 'refused'))).toMatchObject({
      code: 'Unknown',
      errno: -4711,
      message: 'KeeperErrorCode = Unknown error -4711',
      retryable: false,
    });
  });

  it('marks temporary causes as retryable', () => {
    const retryable = Object.entries(ErrorCode).filter(
      ([, errno]) => new KeeperError('x', '/', new RequestFailure(errno, 'unknown')).retryable,
    );
    expect(retryable.map(([name]) => name)).toEqual([
      'ConnectionLoss',
      'OperationTimeout',
      'NewConfigNoQuorum',
      'ReconfigInProgress',
      'SessionMoved',
      'NotReadOnly',
      'RequestTimeout',
      'ThrottledOp',
    ]);
  });

  it('is recognised by its brand, also across copies of the package', () => {
    const error = new KeeperError('x', '/', new RequestFailure(ErrorCode.NoNode, 'refused'));
    expect(KeeperError.is(error)).toBe(true);
    expect(KeeperError.is(error, 'NoNode')).toBe(true);
    expect(KeeperError.is(error, 'BadVersion', 'NotEmpty')).toBe(false);
    const elsewhere = Object.assign(new Error('from another copy'), { [Symbol.for('tskeeper.KeeperError')]: true, code: 'NoNode' });
    expect(KeeperError.is(elsewhere, 'NoNode')).toBe(true);
    for (const other of [undefined, null, 'NoNode', new Error('x'), { code: 'NoNode' }]) expect(KeeperError.is(other)).toBe(false);
    // Printing or copying must not show the brand.
    expect(Object.getOwnPropertySymbols(Object.assign({}, error))).toEqual([]);
  });

  it('contains its cause and its reason', () => {
    const cause = new Error('why');
    const error = new KeeperError('x', '/a', new RequestFailure(ErrorCode.ConnectionLoss, 'unknown', 'zk:2181: gone', { cause }));
    expect(error.cause).toBe(cause);
    expect(error.message).toBe('KeeperErrorCode = ConnectionLoss for /a (zk:2181: gone)');
    expect('cause' in new KeeperError('x', '/a', new RequestFailure(ErrorCode.NoNode, 'refused'))).toBe(false);
  });
});
