/** Very many clients reconnect at once, to the real core and the real port. */
import type { MemoryProbe } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { VirtualServer } from './support/virtual-server.ts';

const count = 2000;
/** What the port may hold for all of its clients at any time: a handshake and a reply for each. */
const heldBytesMax = 128 * count;

/**
 * A process with room for just that: the port may use a tenth of the memory that also holds the
 * tree.
 */
const memory: MemoryProbe = () => [
  { what: 'the process', usedBytes: 0, limitBytes: 10 * heldBytesMax, remedy: 'none', holdsTree: true, slackBytes: 0, reserveBytes: 0 },
];

/** Runs everything without advancing the time, until the condition holds. */
async function settled(server: VirtualServer, isSo: () => boolean): Promise<void> {
  for (let round = 0; !isSo(); round++) {
    if (round === 200) throw new Error('it does not come to that without time passing');
    await server.settle();
  }
}

describe('a server whose clients have all lost their connections', () => {
  it('C2-13: resumes thousands of sessions at once, without a txn for any, holding at most 128 bytes for each, while it serves another client', async () => {
    const server = await VirtualServer.start('maxClientCnxns=0', { maxFileDescriptors: 65_536, memory });
    const before = Array.from({ length: count }, () => server.begin());
    await server.settle();
    for (const client of before) client.sendHandshake(20_000);
    await settled(server, () => before.every(({ timeoutMs }) => timeoutMs !== undefined));
    const other = await server.join('10.0.9.2');
    await other.create('/a', 'x');
    await settled(server, () => server.runtime.inspect.sessionCount() === count + 1);
    const zxid = server.runtime.inspect.lastZxid();
    const txns = server.txns().length;

    for (const client of before) client.hangUp();
    await settled(server, () => server.runtime.inspect.cnxnCount() === 1);

    const lines = server.lines.length;
    const startMs = server.clock.now().elapsedMs;
    const again = before.map(() => server.begin());
    await server.settle();
    for (const [at, client] of again.entries()) client.sendHandshake(20_000, before[at]!.session, before[at]!.password);
    const meanwhile = await other.call('getData', { path: '/a', watch: false });
    await settled(server, () => again.every(({ timeoutMs, closed }) => timeoutMs !== undefined || closed));
    const asked = again.map((client) => client.send('exists', { path: '/a', watch: false }));
    await settled(server, () => again.every(({ answered, closed }) => answered > 0 || closed));
    const reads = again.map((client, at) => client.answer<'exists'>(asked[at]!));

    expect(again.filter(({ timeoutMs, session }, at) => timeoutMs !== 20_000 || session !== before[at]!.session)).toEqual([]);
    expect(reads.filter((read) => read?.err !== 'Ok')).toEqual([]);
    expect(meanwhile.err).toBe('Ok');
    // No client had to wait for time to pass, and no session was created, closed or expired.
    expect(server.clock.now().elapsedMs).toBe(startMs);
    expect(server.runtime.inspect.sessionCount()).toBe(count + 1);
    // The cost: no txn and no sync, nothing held for clients afterwards, and a few lines of log.
    expect([server.runtime.inspect.lastZxid(), server.txns().length]).toEqual([zxid, txns]);
    expect(server.runtime.inspect.outstandingRequests()).toBe(0);
    expect(server.lines.length - lines).toBeLessThanOrEqual(200);
    // Above three quarters of its limit the port refuses connections, and above the limit it closes
    // some. It has done neither.
    expect(server.logged.filter(({ event }) => event === 'cnxn.memory' || event === 'cnxn.shed')).toEqual([]);
    await server.pass(30_000);
    expect(server.failure).toBeUndefined();
  });
});
