/** `4lw`: sends four letter words without `nc` to every server of the connect string. */
import { TestServer } from '@tskeeper/testing';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { jsonLines } from '../support/tool.ts';
import { zkAt } from '../support/zk.ts';

describe('4lw', () => {
  it('prints the reply of a server, without a session', async () => {
    await using server = await TestServer.start();
    const { code, out, err } = await zkAt(server.connectString, new FakeTerminal(), '4lw', 'srvr');
    expect([code, err]).toEqual([exitCodes.done, '']);
    expect(out).toMatch(/^Zookeeper version: [^]*\nMode: standalone\nNode count: \d+\n$/);
    // A line break is added to a reply without one.
    expect((await zkAt(server.connectString, new FakeTerminal(), '4lw', 'ruok')).out).toBe('imok\n');
    expect((await zkAt(`${server.connectString}/a/chroot`, new FakeTerminal(), '4lw', 'ruok')).out).toBe('imok\n');
    expect(server.inspect.watchCount()).toBe(0);
  });

  it('sends the word to every server, and fails when one does not answer', async () => {
    await using first = await TestServer.start();
    await using second = await TestServer.start();
    const both = await zkAt(`${first.connectString},${second.connectString}`, new FakeTerminal(), '4lw', 'ruok');
    expect(both).toEqual({ code: exitCodes.done, out: `${first.connectString}:\nimok\n${second.connectString}:\nimok\n`, err: '' });
    const one = await zkAt(`127.0.0.1:1,${second.connectString}`, new FakeTerminal(), '4lw', 'ruok');
    expect(one).toEqual({
      code: exitCodes.noConnection,
      out: `${second.connectString}:\nimok\n`,
      err: '127.0.0.1:1: connection refused\n',
    });
    const json = await zkAt(`${first.connectString},127.0.0.1:1`, new FakeTerminal(), '-o', 'json', '4lw', 'ruok');
    expect(jsonLines(json.out)).toEqual([{ server: first.connectString, word: 'ruok', answer: 'imok' }]);
    expect(jsonLines(json.err)).toEqual([{ error: { code: 'ConnectionLoss', message: '127.0.0.1:1: connection refused' } }]);
  });

  it('explains what a word is, and how to allow a word that is not on the whitelist', async () => {
    await using server = await TestServer.start({ config: { '4lw.commands.whitelist': 'srvr' } });
    const word = async (...words: readonly string[]) => await zkAt(server.connectString, new FakeTerminal(), '4lw', ...words);
    expect(await word('mntr')).toEqual({
      code: exitCodes.failed,
      out: '',
      err: `${server.connectString}: mntr is not in the 4lw.commands.whitelist of this server; add it to zoo.cfg and restart the server\n`,
    });
    expect(await word()).toMatchObject({ code: exitCodes.refused, err: '4lw word\n' });
    expect(await word('RUOK')).toEqual({
      code: exitCodes.refused,
      out: '',
      err: '4lw: "RUOK" is not a four letter word. A word has four lowercase letters, such as srvr, ruok, mntr or stat\n',
    });
    expect((await word('srvr', 'mntr')).err).toBe('4lw: unexpected argument "mntr". Usage: 4lw word\n');
  });

  it('gives up on a silent server after --timeout, on the clock of the terminal', async () => {
    await using server = await TestServer.start();
    using _silence = server.partition();
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, '--timeout', '3600000', '4lw', 'ruok');
    while (terminal.clock.timerCount === 0) await new Promise((resolve) => setImmediate(resolve));
    terminal.clock.advance(3_600_000);
    expect(await ended).toEqual({
      code: exitCodes.noConnection,
      out: '',
      err: `${server.connectString}: no answer from ${server.connectString} within 3600000 ms\n`,
    });
  });

  it('works in the shell, even if no session can be opened', async () => {
    await using server = await TestServer.start();
    const terminal = new FakeTerminal();
    terminal.input.end('4lw ruok\n4lw isro\n');
    expect(await zkAt(server.connectString, terminal, 'shell')).toEqual({ code: exitCodes.done, out: 'imok\nrw\n', err: '' });
  });
});
