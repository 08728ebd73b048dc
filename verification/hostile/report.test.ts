/**
 * A value over its limit is marked in the table of `npm run test:hostile`, and only for our server.
 */
import { describe, expect, it } from 'vitest';
import { atMost, isRed, percentile, type Row, shown, table, verdictOf } from './report.ts';

const row: Row = { part: 'attacks', name: 'x', limit: '250 ms', ours: undefined, java: undefined };
const within = { figures: [atMost('p99', 250, 250, 'ms'), shown('writes', '7 /s')] };
const over = { figures: [atMost('p99', 251, 250, 'ms'), atMost('errors', 0, 0, '')] };

describe('a row of hostile runs', () => {
  it('is ok within its limits', () => {
    expect(verdictOf({ ...row, ours: within })).toBe('ok');
    expect(isRed({ ...row, ours: within })).toBe(false);
  });

  it('names the values of our server that missed a limit', () => {
    expect(verdictOf({ ...row, ours: over })).toBe('MISSED: p99');
    expect(isRed({ ...row, ours: over })).toBe(true);
  });

  it('fails for a missing value, and for a failure', () => {
    expect(verdictOf({ ...row, ours: { figures: [atMost('ephemeral', Infinity, 60, 's')] } })).toBe('MISSED: ephemeral');
    expect(isRed({ ...row, ours: { failure: 'no leader' } })).toBe(true);
  });

  it('does not fail for a limit that only Java misses', () => {
    expect(isRed({ ...row, ours: within, java: over })).toBe(false);
    expect(isRed({ ...row, java: { failure: 'it ended' } })).toBe(false);
  });

  it('shows both servers, and marks what missed a limit', () => {
    expect(table([{ ...row, ours: within, java: over }]).split('\n')[2]).toBe(
      '| attacks | x | p99 250 ms, writes 7 /s | **p99 251 ms**, errors 0 | 250 ms | ok |',
    );
  });
});

it('a percentile is one of the values', () => {
  expect(percentile([3, 1, 2], 50)).toBe(2);
  expect(percentile([3, 1, 2], 99)).toBe(3);
  expect(percentile([], 99)).toBe(0);
});
