import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { connect } from '@tskeeper/client';
import { ManualClock } from '@tskeeper/runtime';
import { TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { complete } from '../../src/zk/completion.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { jsonLines, temporaryFolder, type ToolResult } from '../support/tool.ts';
import { testServer, type ZkServer, zkAt } from '../support/zk.ts';

let server: ZkServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** Runs lines in a new shell. */
async function shell(lines: readonly string[], ...options: readonly string[]): Promise<ToolResult> {
  const terminal = new FakeTerminal();
  terminal.input.end(lines.map((line) => `${line}\n`).join(''));
  return await zkAt(server.connectString, terminal, ...options, 'shell');
}

describe('a script in the shell', () => {
  it('A87: gets answers and nothing else on standard output', async () => {
    const { code, out, err } = await shell(['create /s "two words"', 'get /s', 'get /missing', '', 'getAllChildrenNumber /s']);
    expect(code).toBe(exitCodes.done);
    expect(out).toBe('Created /s\ntwo words\n0\n');
    expect(err).toBe('Node does not exist: /missing\n');
  });

  it('runs in one session: ephemeral znodes exist until it ends', async () => {
    const { out } = await shell(['create -e /shell-ephemeral', 'getEphemerals', 'quit', 'ls /']);
    expect(out).toBe('Created /shell-ephemeral\n[/shell-ephemeral]\n');
    expect((await server.zk('stat', '/shell-ephemeral')).code).toBe(exitCodes.noNode);
  });

  it('ends with the exit code of its last command', async () => {
    expect((await shell(['get /missing', 'quit'])).code).toBe(exitCodes.noNode);
    expect((await shell(['get /missing', 'ls /zookeeper'])).code).toBe(exitCodes.done);
    expect((await shell(['get'])).code).toBe(exitCodes.refused);
    expect((await shell(['nonsense'])).code).toBe(exitCodes.noCommand);
    expect((await shell(['get /missing', 'redo 0', 'quit'])).code).toBe(exitCodes.noNode);
    expect((await shell([])).code).toBe(exitCodes.done);
  });

  it('answers in JSON, for all lines or line by line', async () => {
    expect(jsonLines((await shell(['ls /zookeeper', 'history', 'printwatches'], '-o', 'json')).out)).toEqual([
      { path: '/zookeeper', children: ['config', 'quota'] },
      {
        history: [
          { number: 0, line: 'ls /zookeeper' },
          { number: 1, line: 'history' },
        ],
      },
      { printwatches: true },
    ]);
    const mixed = await shell(['ls -o json /zookeeper', 'ls /zookeeper', 'get -o json /missing']);
    expect(mixed.out).toBe('{"path":"/zookeeper","children":["config","quota"]}\n[config, quota]\n');
    expect(JSON.parse(mixed.err)).toMatchObject({ error: { code: 'NoNode' } });
  });

  it('A87: repeats lines by their number', async () => {
    const { out, err } = await shell(['getAllChildrenNumber /zookeeper', 'redo 0', '!0', 'redo 3', 'redo 99', 'redo', 'redo 6', 'history']);
    expect(out).toBe(
      '2\n2\n2\n' +
        '0 - getAllChildrenNumber /zookeeper\n1 - getAllChildrenNumber /zookeeper\n2 - getAllChildrenNumber /zookeeper\n' +
        '3 - redo 3\n4 - redo 99\n5 - redo\n6 - redo 6\n7 - history\n',
    );
    expect(err).toBe('Command index out of range\n'.repeat(4));
    expect((await shell(['redo 5', 'redo 0'])).err).toBe('Command index out of range\nNo redoing redos\n');
  });

  it('prints events of watches until printwatches is off', async () => {
    const events = ({ err }: ToolResult) =>
      [...err.matchAll(/^WatchedEvent state:SyncConnected type:(\w+) path:(\S+)/gm)].map((m) => `${m[1]} ${m[2]}`);
    const loud = await shell(['create /loud', 'get -w /loud', 'ls -w /loud', 'set /loud x', 'delete /loud', 'sync /']);
    expect(events(loud)).toEqual(['NodeDataChanged /loud', 'NodeDeleted /loud']);
    const quiet = await shell(['printwatches off', 'printwatches', 'create /quiet', 'get -w /quiet', 'delete /quiet', 'sync /']);
    expect(events(quiet)).toEqual([]);
    expect(quiet.out).toContain('printwatches is off\n');
  });

  it('can end its session and open another', async () => {
    const { code, out, err } = await shell(['create -e /left', 'close', 'ls /', 'connect', 'getEphemerals', 'stat /left']);
    expect(out).toBe('Created /left\n[]\n');
    expect(err).toBe('Not connected; "connect" opens a new session\nNode does not exist: /left\n');
    expect(code).toBe(exitCodes.noNode);
    const elsewhere = await shell([`connect ${server.connectString}/zookeeper`, 'ls /']);
    expect(elsewhere.out).toBe('[config, quota]\n');
  });

  it('ends when the reader closes the pipe', async () => {
    const terminal = new FakeTerminal();
    terminal.reads = false;
    terminal.input.write('ls /\nget /missing\n');
    expect(await zkAt(server.connectString, terminal, 'shell')).toMatchObject({ code: exitCodes.done, err: '' });
  });

  it('ends at once on SIGTERM, and ends its session', async () => {
    const terminal = new FakeTerminal();
    const taken = new Promise<void>((resolve) => {
      terminal.write = () => {
        resolve();
        return Promise.resolve(true);
      };
    });
    const ended = zkAt(server.connectString, terminal, 'shell');
    terminal.input.write('create -e /terminated\n');
    await taken;
    terminal.signal('SIGTERM');
    expect((await ended).code).toBe(exitCodes.terminated);
    expect((await server.zk('stat', '/terminated')).code).toBe(exitCodes.noNode);
  });

  it('has commands that fail outside the shell with a hint to use it', async () => {
    for (const name of ['close', 'connect', 'exit', 'printwatches', 'quit', 'redo']) {
      const { code, err } = await server.zk(name, 'on');
      expect([code, err]).toEqual([exitCodes.refused, `tskeeper: ${name} acts on a session that stays open; use it in: tskeeper shell\n`]);
    }
  });

  it('A87: suggests the nearest command for an unknown word, and does not list all commands', async () => {
    expect((await shell(['lss /'])).err).toBe('Command not found: Command not found lss\nDid you mean "ls"? "help" lists the commands.\n');
    expect((await shell(['getacl /'])).err).toContain('Did you mean "getAcl"?');
    expect((await shell(['srvr'])).err).toBe(
      'Command not found: Command not found srvr\nDid you mean "4lw srvr"? "help" lists the commands.\n',
    );
    expect((await shell(['nonsense'])).err).toBe('Command not found: Command not found nonsense\n"help" lists the commands.\n');
    expect(JSON.parse((await shell(['lss /'], '-o', 'json')).err)).toEqual({
      error: { message: 'Command not found: Command not found lss\nDid you mean "ls"? "help" lists the commands.' },
    });
  });

  it('ends by `exit` as by `quit`, with the exit code of the command before it', async () => {
    const { code, out } = await shell(['get /missing', 'exit', 'ls /zookeeper']);
    expect([code, out]).toEqual([exitCodes.noNode, '']);
  });

  it('without a server fails every command at once after the first has given up, and ends with 5', async () => {
    const terminal = new FakeTerminal();
    terminal.input.end('ls /\nget /a\n');
    const ended = zkAt('127.0.0.1:1', terminal, '--timeout', '1000', 'shell');
    await terminal.shows('trying again');
    terminal.clock.advance(1000);
    const { code, out, err } = await ended;
    expect([code, out]).toEqual([exitCodes.noConnection, '']);
    const cannot = 'cannot connect to 127.0.0.1:1: connection refused; ';
    expect(err).toBe(
      `${cannot}trying again for 1 s\n${cannot}gave up after 1 s, --timeout <ms> sets another time\n${cannot}still trying\n`,
    );
  });

  it('lists the commands of the shell with help', async () => {
    const { out } = await shell(['help']);
    for (const line of ['\tls [-s] [-w] [-R] path', '\thistory ', '\tredo cmdno', '\tquit ']) expect(out.split('\n')).toContain(line);
  });
});

/** A terminal with a keyboard, and its screen. */
class Keyboard extends FakeTerminal {
  readonly screen = new PassThrough();
  shown = '';

  constructor(home: string) {
    super();
    this.prompt = this.screen;
    this.environment = { HOME: home };
    this.screen.on('data', (bytes: Buffer) => {
      this.shown += bytes.toString();
      this.changed();
    });
  }
  override write(bytes: Uint8Array): Promise<boolean> {
    this.shown += Buffer.from(bytes).toString();
    return super.write(bytes);
  }
  override err(text: string): void {
    this.shown += text;
    super.err(text);
  }
  /** Types, and waits until the screen shows a text that was printed afterwards. */
  async type(keys: string, until: string): Promise<void> {
    this.shown = '';
    this.input.write(keys);
    await this.shows(until);
  }
  protected override hasShown(text: string): boolean {
    return this.shown.includes(text);
  }
}

describe('a shell with a keyboard', () => {
  it('prompts as zkCli does, completes words, and interrupts a running command', async () => {
    await server.zk('create', '/completed');
    await server.zk('create', '/completed/first');
    await server.zk('create', '/completed/second');
    const home = mkdtempSync(join(tmpdir(), 'tskeeper-home-'));
    const keyboard = new Keyboard(home);
    const ended = zkAt(server.connectString, keyboard, 'shell');
    await keyboard.shows(`[zk: ${server.connectString}(CONNECTED) 0] `);
    // TAB completes getA... to a command, and the beginning of a path.
    await keyboard.type('getAl\t', 'getAllChildrenNumber ');
    await keyboard.type('/comp\t', '/completed');
    await keyboard.type('\r', '(CONNECTED) 1] ');
    expect(keyboard.shown).toContain('2\n');
    // Ctrl+C discards a line; Ctrl+D ends the shell.
    await keyboard.type('garbage', 'garbage');
    await keyboard.type('\u0003', '(CONNECTED) 1] ');
    await keyboard.type('addauth digest ann:secret\r', '(CONNECTED) 2] ');
    keyboard.input.write('\u0004');
    expect((await ended).code).toBe(exitCodes.done);
    // Typed lines are there the next time, passwords are not.
    const history = readFileSync(join(home, '.local/state/tskeeper/history'), 'utf8');
    expect(history).toBe('getAllChildrenNumber /completed\n');
    const listing = new FakeTerminal();
    listing.environment = { HOME: home };
    expect((await zkAt(server.connectString, listing, 'history')).out).toBe('0 - getAllChildrenNumber /completed\n');
    const again = new Keyboard(home);
    const endedAgain = zkAt(server.connectString, again, 'shell');
    await again.shows('(CONNECTED) 0] ');
    await again.type('\u001b[A', 'getAllChildrenNumber /completed');
    again.input.write('\u0003\u0004');
    await endedAgain;
    rmSync(home, { recursive: true });
  });

  describe('while it connects', () => {
    /** No server listens there. */
    const nowhere = '127.0.0.1:1';
    /** A shell that waits for a session. */
    async function connecting(): Promise<{ keyboard: Keyboard; ended: Promise<ToolResult> } & Disposable> {
      const folder = temporaryFolder();
      const keyboard = new Keyboard(folder.path);
      const ended = zkAt(nowhere, keyboard, 'shell');
      await keyboard.shows(`[zk: ${nowhere}(CONNECTING) 0] `);
      return { keyboard, ended, [Symbol.dispose]: () => folder[Symbol.dispose]() };
    }

    it('prompts at once with its state, and reports why there is no session', async () => {
      using shellAt = await connecting();
      const { keyboard, ended } = shellAt;
      await keyboard.shows(`cannot connect to ${nowhere}: connection refused; trying again for `);
      keyboard.input.write('\u0004');
      expect((await ended).code).toBe(exitCodes.done);
    });

    it('ends by Ctrl+D, `exit` and `quit`, also while a command waits for the session', async () => {
      for (const end of ['\u0004', 'exit\r', 'quit\r']) {
        using shellAt = await connecting();
        const { keyboard, ended } = shellAt;
        keyboard.input.write(`ls /\r`);
        await keyboard.shows('ls /');
        keyboard.input.write(end);
        expect([end, (await ended).code]).toEqual([end, exitCodes.interrupted]);
        using idle = await connecting();
        idle.keyboard.input.write(end);
        expect([end, (await idle.ended).code]).toEqual([end, exitCodes.done]);
      }
    });

    it('Ctrl+C interrupts the waiting command, and not the shell', async () => {
      using shellAt = await connecting();
      const { keyboard, ended } = shellAt;
      keyboard.input.write('ls /\r');
      await keyboard.shows('ls /');
      await keyboard.type('\u0003', '(CONNECTING) 1] ');
      expect(keyboard.errors).toContain('interrupted\n');
      keyboard.input.write('\u0004');
      expect((await ended).code).toBe(exitCodes.interrupted);
    });

    it('shows in the prompt that the session is open, and keeps the line being typed', async () => {
      const first = await testServer();
      const { connectString } = first;
      await first.close();
      using folder = temporaryFolder();
      const keyboard = new Keyboard(folder.path);
      const ended = zkAt(connectString, keyboard, 'shell');
      await keyboard.shows('(CONNECTING) 0] ');
      await keyboard.type('half a li', 'half a li');
      await using _second = await testServer(Number(connectString.split(':')[1]));
      await keyboard.shows(`[zk: ${connectString}(CONNECTED) 0] half a li`);
      keyboard.input.write('\u0003\u0004');
      expect((await ended).code).toBe(exitCodes.done);
    });
  });

  it('shows an event, and keeps the line being typed', async () => {
    const home = mkdtempSync(join(tmpdir(), 'tskeeper-home-'));
    const keyboard = new Keyboard(home);
    const ended = zkAt(server.connectString, keyboard, 'shell');
    await keyboard.shows('(CONNECTED) 0] ');
    await keyboard.type('stat -w /event\r', '(CONNECTED) 1] ');
    await keyboard.type('half a li', 'half a li');
    keyboard.shown = '';
    await server.zk('create', '/event');
    await keyboard.shows('(CONNECTED) 1] half a li');
    expect(keyboard.errors).toContain('WatchedEvent state:SyncConnected type:NodeCreated path:/event');
    keyboard.input.write('\u0003\u0004');
    await ended;
    rmSync(home, { recursive: true });
  });
});

describe('completion', () => {
  it('offers commands first, then options and paths for the current word', async () => {
    await server.zk('create', '/tab');
    await server.zk('create', '/tab/one');
    await server.zk('create', '/tab/other');
    await using client = await connect(server.connectString);
    const clock = new ManualClock();
    expect(await complete('del', client, clock)).toEqual([['delete', 'deleteall', 'delquota'], 'del']);
    expect(await complete('getE', client, clock)).toEqual([['getEphemerals '], 'getE']);
    expect(await complete('reconfig -m', client, clock)).toEqual([['-members '], '-m']);
    expect(await complete('ls -s /ta', client, clock)).toEqual([['/tab'], '/ta']);
    expect(await complete('ls /tab/', client, clock)).toEqual([['/tab/one', '/tab/other'], '/tab/']);
    expect(await complete('ls /tab/on', client, clock)).toEqual([['/tab/one'], '/tab/on']);
    expect(await complete('ls /', undefined, clock)).toEqual([[], '/']);
    expect(await complete('set /tab wor', client, clock)).toEqual([[], 'wor']);
    await expect(complete('ls /missing/', client, clock)).rejects.toThrow('NoNode');
  });

  it('fails after two seconds when the server does not answer', async () => {
    await using silent = await TestServer.start();
    await using client = await connect(silent.connectString);
    using _silence = silent.partition();
    const clock = new ManualClock();
    const candidates = complete('ls /', client, clock);
    clock.advance(1999);
    expect(clock.timerCount).toBe(1);
    clock.advance(1);
    await expect(candidates).rejects.toThrow('timed out after 2000 ms listing /');
  });
});
