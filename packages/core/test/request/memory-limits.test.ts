import { describe, expect, it } from 'vitest';
import { Script } from '../support/script.ts';

/** A server with a client, a znode with five bytes and one without, in this state of memory. */
function server(state: 'ample' | 'tight' | 'full', watchesMayGrow = true): Script {
  const script = new Script();
  for (const line of ['log at once', 'a connects', 'a create /x "12345"', 'a create /y ""']) script.run(line);
  script.core.setMemoryState(state, watchesMayGrow);
  return script;
}

const throttled = expect.stringContaining('ThrottledOp');

describe('F34: with memory full', () => {
  it.each([
    'a create /z ""',
    'a create2 /z ""',
    'a create /z "" mode=1',
    'a setData /x "123456"',
    'a setData /y "1"',
    'a setACL /x acl=world:anyone:1',
    'a multi [create /z ""]',
    'a multi [delete /y; setData /x "123456"]',
    'a multi [check /x; create /z ""; delete /y]',
  ])('%s is refused as ThrottledOp, and nothing reaches the log', (line) => {
    const script = server('full');
    expect(script.run(line).filter((received) => !received.startsWith('append'))).toEqual([throttled]);
    expect(script.core.inspect.lastZxid()).toBe(3);
  });

  it.each([
    'a getData /x',
    'a exists /x',
    'a getChildren /',
    'a sync /',
    'a ping',
    'a setData /x "54321"',
    'a setData /x ""',
    'a delete /y',
    'a multi [delete /y; check /x; setData /x "1234"]',
    'a closeSession',
  ])('%s is served', (line) => {
    const received = server('full').run(line);
    expect(received.some((one) => one.startsWith('a <- '))).toBe(true);
    expect(received).not.toContainEqual(throttled);
  });

  it.each([
    ['a create /no/parent ""', 'ThrottledOp'],
    ['a setData /none "1"', 'NoNode'],
    ['a setData /x "123456" version=9', 'ThrottledOp'],
    ['a delete /none', 'NoNode'],
  ])('%s is answered %s', (line, error) => {
    expect(server('full').run(line).at(-1)).toContain(error);
  });

  it('a refusal keeps its place after earlier requests of its session', () => {
    const script = server('full');
    script.run('log on request');
    script.run('a delete /y');
    expect(script.run('a create /z ""')).toEqual([]);
    expect(script.run('appended')).toEqual(['a <- delete 0x4 ok', throttled]);
  });

  it('a read that would set one more watch is refused, and one without a watch is not', () => {
    const script = server('full');
    for (const line of ['a getData /x watch', 'a exists /z watch', 'a getChildren / watch', 'a addWatch /x']) {
      expect(script.run(line)).toEqual([throttled]);
    }
    expect(script.core.inspect.watchCount()).toBe(0);
  });

  it('a watch that has fired may be set again', () => {
    const script = server('ample');
    script.run('a getData /x watch');
    script.core.setMemoryState('full', true);
    expect(script.run('a getData /y watch')).toEqual([throttled]);
    script.run('a setData /x "54321"');
    expect(script.run('a getData /x watch')).not.toEqual([throttled]);
    expect(script.core.inspect.watchCount()).toBe(1);
  });

  it('every request is served again once memory is released', () => {
    const script = server('full');
    script.core.setMemoryState('ample', true);
    expect(script.run('a create /z ""').at(-1)).toBe('a <- create 0x4 /z');
    expect(script.run('a getData /x watch')).not.toEqual([throttled]);
  });
});

describe('F34: with memory tight', () => {
  it('writes and watches are served', () => {
    const script = server('tight');
    expect(script.run('a create /z ""').at(-1)).toBe('a <- create 0x4 /z');
    expect(script.run('a getData /x watch')).not.toEqual([throttled]);
  });

  it('a multi of more than 64 KiB is refused, a shorter one is not', () => {
    const script = server('tight');
    const multi = (parts: number): string => `a multi [${Array.from({ length: parts }, () => 'check /x').join('; ')}]`;
    expect(script.run(multi(4000))).toEqual([throttled]);
    expect(script.run(multi(2000))).not.toContainEqual(throttled);
  });
});

describe('F34: watches', () => {
  it('that use up their share of memory cannot grow in number, while znodes can', () => {
    const script = server('ample', false);
    expect(script.run('a getData /x watch')).toEqual([throttled]);
    expect(script.run('a create /z ""').at(-1)).toBe('a <- create 0x4 /z');
  });

  it('of one connection are limited, however much memory there is', () => {
    const script = new Script({ watchesPerCnxnMax: 2 });
    for (const line of ['log at once', 'a connects', 'b connects', 'a exists /1 watch', 'a exists /2 watch']) script.run(line);
    expect(script.run('a exists /3 watch')).toEqual([throttled]);
    expect(script.run('b exists /3 watch')).not.toEqual([throttled]);
    script.run('a goes away');
    expect(script.core.inspect.watchCount()).toBe(1);
  });

  it('that a client had are restored when it reconnects, in any order', () => {
    // A path counts once in each of two tables, so a persistent watch counts twice, and one more on
    // the same path counts nothing.
    for (const [third, again] of [
      ['addWatch / mode=0', 'child=/1 persistent=/ recursive=/'],
      ['addWatch /2 mode=0', 'child=/1 persistent=/2 recursive=/'],
    ] as const) {
      const script = new Script({ watchesPerCnxnMax: 3 });
      for (const line of ['log at once', 'a connects', 'a create /1 ""', 'a addWatch / mode=1', 'a getChildren /1 watch']) script.run(line);
      expect(script.run(`a ${third}`)).not.toContainEqual(throttled);
      expect(script.run('a addWatch /3 mode=0')).toEqual([throttled]);
      script.run('b connects');
      expect(script.run(`b setWatches2 seen=0x9 ${again}`).join()).not.toContain('closed');
    }
  });

  it('that were removed silently, because their client may not read the znode, do not prevent it from reconnecting', () => {
    const script = new Script({ watchesPerCnxnMax: 2 });
    for (const line of ['log at once', 'a connects', 'b connects', 'b auth digest bob:pw']) script.run(line);
    for (const path of ['/1', '/2', '/3', '/4']) {
      script.run(`a exists ${path} watch`);
      // Only b may read it, so a gets no event.
      expect(script.run(`b create ${path} "" acl=auth::31`).join()).not.toContain('a <-');
      script.run(`b delete ${path}`);
    }
    script.run('a goes away');
    script.run('c connects');
    expect(script.run('c setWatches 0x9 exist=/1,/2,/3,/4').join()).not.toContain('closed');
  });

  it('restored by a reconnecting client close its connection if there is no room for all of them', () => {
    const script = new Script({ watchesPerCnxnMax: 2 });
    for (const line of ['log at once', 'a connects']) script.run(line);
    const paths = Array.from({ length: 2 * 2 + 64 + 1 }, (_, at) => `/${at}`);
    expect(script.run(`a setWatches 0x9 exist=${paths.join(',')}`)).toEqual(['a closed: too many watches']);
  });
});

describe('requests whose connection closes before their turn', () => {
  it('have no effect after one of them was refused for lack of memory', () => {
    const script = new Script({ requestThrottleLimit: 1, requestThrottleDropStale: false });
    for (const line of ['log at once', 'a connects', 'b connects', 'a create /kept ""', 'log on request']) script.run(line);
    for (const line of ['a create /under-way ""', 'b create /refused ""', 'b delete /kept', 'b goes away']) script.run(line);
    script.core.setMemoryState('full', true);
    script.run('log at once');
    script.run('appended');
    expect(script.run('a exists /refused').at(-1)).toContain('NoNode');
    expect(script.run('a exists /kept').at(-1)).not.toContain('NoNode');
  });

  it('have no effect after one of them has waited too long', () => {
    const script = new Script({ requestThrottleLimit: 1, requestThrottleDropStale: false, throttledOpWaitMs: 100 });
    for (const line of ['log at once', 'a connects', 'b connects', 'a create /kept ""', 'log on request']) script.run(line);
    for (const line of ['a create /under-way ""', 'b create /refused ""', 'after 90', 'b delete /kept', 'b goes away', 'after 20'])
      script.run(line);
    script.run('log at once');
    script.run('appended');
    expect(script.run('a exists /refused').at(-1)).toContain('NoNode');
    expect(script.run('a exists /kept').at(-1)).not.toContain('NoNode');
  });
});

describe('F34: while the disk is slow', () => {
  it('outstanding writes hold a bounded amount of memory: further ones are refused, deletes and reads are not', () => {
    const script = new Script({ inFlightBytesMax: 1000 });
    for (const line of ['a connects', 'appended', 'b connects', 'appended', 'c connects', 'appended', 'd connects', 'appended'])
      script.run(line);
    expect(script.run(`a create /a "${'x'.repeat(6000)}"`)).not.toContainEqual(throttled);
    expect(script.run(`b create /b "${'x'.repeat(6000)}"`)).not.toContainEqual(throttled);
    expect(script.run('c create /c "x"')).toEqual([throttled]);
    expect(script.run('c exists /c')).toHaveLength(1);
    expect(script.run('c delete /c')).not.toContainEqual(throttled);
    script.run('appended');
    expect(script.run('d create /d "x"')).not.toContainEqual(throttled);
  });
});
