import { expect, it } from 'vitest';
import type { HostFacts } from '../../src/index.ts';
import { planDescriptors, warnOfShortage } from '../../src/internal.ts';
import { ListLogger } from '../storage/support.ts';

function host(max: number | undefined, open: number | undefined = 25): HostFacts {
  return { version: '', environment: () => [], openFileDescriptors: () => open, maxFileDescriptors: () => max };
}

const alone = { maxCnxns: 0, maxClientCnxns: 60, peers: 0 };

it.each([
  ['200 of many descriptors are kept back from clients', 0, host(65_536), 65_336, true],
  ['200 of 1,024 descriptors are kept back from clients', 0, host(1024), 824, true],
  ['of few descriptors, those open and those that storage may open at once are kept back', 0, host(64), 23, true],
  ['other descriptors that the process has open are subtracted too', 0, host(1024, 500), 508, true],
  ['at least one client is accepted', 0, host(30), 1, true],
  ['maxCnxns applies where there are descriptors for it', 500, host(1024), 500, false],
  ['the limit of descriptors applies where maxCnxns asks for more', 5000, host(1024), 824, true],
  ['maxCnxns alone applies when the limit of descriptors is unknown', 0, host(undefined), 0, false],
])('F34: %s', (_title, maxCnxns, facts, cnxnsMax, isLimitedByDescriptors) => {
  expect(planDescriptors({ ...alone, maxCnxns }, facts)).toMatchObject({ cnxnsMax, isLimitedByDescriptors });
});

it('F34: other servers and unknown connections to their ports have descriptors that clients cannot take', () => {
  for (const limit of [128, 256, 1024, 65_536]) {
    const { cnxnsMax, unknownPeersMax } = planDescriptors({ ...alone, peers: 4 }, host(limit));
    expect(unknownPeersMax).toBeGreaterThanOrEqual(1);
    expect(unknownPeersMax).toBeLessThanOrEqual(256);
    // All at once: open descriptors, those of storage, four servers, both ports, three lists of
    // unknown servers, and all clients.
    expect(25 + 16 + 4 * 4 + 4 + 3 * unknownPeersMax + cnxnsMax).toBeLessThanOrEqual(limit);
  }
});

it.each([
  [
    'one address may have more connections than there are descriptors',
    alone,
    host(64),
    'the limit of open files is 64, but the configuration needs 101: 41 for',
  ],
  [
    'clients and other servers together need more than there are',
    { ...alone, peers: 2 },
    host(100),
    "the configuration needs 131: 41 for this server's own files, 30 for connections with other servers and",
  ],
  ['maxCnxns asks for more descriptors than there are', { ...alone, maxCnxns: 5000 }, host(1024), 'needs 5041: '],
  [
    'maxCnxns is below the number of descriptors, but above what is left of them',
    { ...alone, maxCnxns: 900 },
    host(1024),
    'maxCnxns is 900, but the limit of open files allows only 824',
  ],
])('F34: a warning is logged at the start when %s', (_title, needs, facts, received) => {
  const logger = new ListLogger();
  warnOfShortage(planDescriptors(needs, facts), needs.maxCnxns, logger);
  expect(logger.lines).toEqual([expect.stringContaining(received)]);
  expect(logger.lines[0]).toContain('(ulimit -n, LimitNOFILE)');
});

it('F34: nothing is logged when there are enough descriptors', () => {
  const logger = new ListLogger();
  for (const needs of [alone, { ...alone, maxCnxns: 500 }, { ...alone, peers: 4 }]) {
    warnOfShortage(planDescriptors(needs, host(1024)), needs.maxCnxns, logger);
  }
  expect(logger.lines).toEqual([]);
});
