/** Sessions in the log of a whole server, in virtual time. */
import { formatSessionId } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { VirtualServer } from './support/virtual-server.ts';

const sessionLines = (server: VirtualServer) =>
  server.lines.map((line, at) => ({ line, fields: server.logged[at]! })).filter(({ fields }) => /^(session|log)\./.test(fields.event));

describe('the log of a server', () => {
  it('reports a session that is opened, resumed, refused, closed and expired, with its id, time-out and client', async () => {
    const server = await VirtualServer.start();
    const client = await server.join('10.0.9.1', 6000);
    const session = formatSessionId(client.session);
    client.hangUp();
    await server.settle();

    const again = await server.dial('10.0.9.2');
    await again.shakeHands(6000, client.session, client.password);
    await again.call('closeSession', undefined);
    const late = await server.dial('10.0.9.3');
    await late.shakeHands(6000, client.session, client.password);
    const silent = await server.join('10.0.9.4', 6000);
    silent.hangUp();
    await server.pass(10_000);

    const lines = sessionLines(server).map(({ line, fields }) => [line.slice(0, line.indexOf(' ')), fields]);
    const at = (host: string) => expect.stringMatching(new RegExp(`^${host}:\\d+$`)) as string;
    const silentId = formatSessionId(silent.session);
    expect(lines).toEqual([
      ['info', { event: 'session.opened', session, timeoutMs: 6000, address: at('10.0.9.1') }],
      ['debug', { event: 'session.disconnected', session, address: at('10.0.9.1'), reason: 'closed by the other side' }],
      ['info', { event: 'session.resumed', session, timeoutMs: 6000, address: at('10.0.9.2') }],
      ['info', { event: 'session.closed', session, address: at('10.0.9.2') }],
      ['debug', { event: 'session.disconnected', session, address: at('10.0.9.2'), reason: 'closed by the client' }],
      ['info', { event: 'session.refused', session, address: at('10.0.9.3') }],
      ['info', { event: 'session.opened', session: silentId, timeoutMs: 6000, address: at('10.0.9.4') }],
      ['debug', { event: 'session.disconnected', session: silentId, address: at('10.0.9.4'), reason: 'closed by the other side' }],
      ['info', { event: 'session.expired', session: silentId, timeoutMs: 6000 }],
    ]);
    expect(server.lines).toContainEqual(
      expect.stringMatching(/^info session 0x[0-9a-f]+ opened by 10\.0\.9\.1:\d+, with a time-out of 6000 ms$/),
    );
    expect(server.lines).toContain(`info session ${silentId} expired after its time-out of 6000 ms`);
  });

  it('has at most 50 lines a second of each session event, and one line with the number left out', async () => {
    const server = await VirtualServer.start('maxClientCnxns=0');
    const clients = await Promise.all(Array.from({ length: 300 }, () => server.dial()));
    await Promise.all(clients.map((client) => client.shakeHands()));
    const opened = () => sessionLines(server).filter(({ fields }) => fields.event === 'session.opened').length;
    expect(opened()).toBe(50);
    await server.pass(1000);
    const leftOut = sessionLines(server).filter(({ fields }) => fields.event === 'log.left-out');
    expect(leftOut.map(({ fields }) => fields)).toEqual([{ event: 'log.left-out', of: 'session.opened', count: 250 }]);
    await server.join();
    expect(opened()).toBe(51);

    // Lines left out before the server closes are counted in its last lines, at the level of those
    // lines.
    for (const client of clients) client.hangUp();
    await server.settle();
    await server.close();
    expect(server.lines.at(-1)).toBe('debug 251 more lines of session.disconnected were left out: a server logs 50 of them per second');
  });
});
