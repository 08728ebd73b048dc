import { expect, test } from 'vitest';
import type { CnxnRecord, Recording } from '../../src/record/recording.ts';
import { shownZxid } from '../../src/run/run.ts';

const cnxn = (client: string, lastZxidSeen: number | undefined): CnxnRecord =>
  ({ client, handshake: lastZxidSeen === undefined ? undefined : { lastZxidSeen } }) as CnxnRecord;

test('a client has seen the zxid of its last handshake; other clients and failed connections do not count', () => {
  const recording: Pick<Recording, 'cnxns'> = { cnxns: [cnxn('a', 7), cnxn('a', 9), cnxn('b', 12), cnxn('a', undefined)] };
  expect(shownZxid(recording, { name: 'a' })).toBe(9);
  expect(shownZxid(recording, { name: 'c' })).toBe(0);
});
