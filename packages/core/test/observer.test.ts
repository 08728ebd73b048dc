/**
 * The events of an observer, on which metrics and audits depend.
 */
import { EventType, openAcl, OpCode, operations } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { expectIs } from '../../../test/expect-is.ts';
import { type CoreOptions, type Observer, silentObserver } from '../src/index.ts';
import { Replica, replicaOptions } from '../src/request/replica.ts';
import type { DataTree } from '../src/tree/data-tree.ts';
import { Script, testOptions } from './support/script.ts';
import { Stepper } from './support/stepper.ts';

/** Records some events, with namespaces by name. */
class Notes {
  readonly lines: string[] = [];
  readonly names: string[] = ['no namespace'];
  readonly observer: Observer;

  constructor(...heard: readonly (keyof Observer)[]) {
    const note = (kind: keyof Observer, ...words: readonly unknown[]): void => {
      if (heard.includes(kind)) this.lines.push([kind, ...words].join(' '));
    };
    this.observer = {
      ...silentObserver,
      namespaceAssigned: (id, name) => {
        this.names[id] = name;
        note('namespaceAssigned', id, name);
      },
      znodeRead: (id, bytes) => note('znodeRead', this.names[id], bytes),
      znodeWritten: (id, bytes) => note('znodeWritten', this.names[id], bytes),
      quotaExceeded: (id) => note('quotaExceeded', this.names[id]),
      eventSent: (_cnxn, bytes) => note('eventSent', bytes),
      watchesFired: (type, count) => note('watchesFired', type, count),
      changeQueued: () => note('changeQueued'),
      changesRemoved: (count) => note('changesRemoved', count),
      requestThrottled: () => note('requestThrottled'),
      staleRequest: (dropped) => note('staleRequest', dropped),
      admitted: (_cnxn, opCode, _bytes, waitedMs) => note('admitted', opCode, waitedMs),
      proposed: (_zxid, type, _bytes, judgedMs) => note('proposed', type, judgedMs),
      applied: (_zxid, type, _error, ageMs) => note('applied', type, ageMs),
      replied: (_cnxn, opCode, error, latencyMs, _bytes, write) => note('replied', opCode, error, latencyMs, write),
      sessionClosed: (_session, expired) => note('sessionClosed', expired),
      sessionRevalidated: (_session, accepted) => note('sessionRevalidated', accepted),
    };
  }

  /** The events since the last call. */
  take(): string[] {
    return this.lines.splice(0);
  }
}

function put(tree: DataTree, path: string, session = 0): void {
  expectIs(tree.create(path, null, tree.acls.intern(openAcl), 0, session, -1, 1, 1, true), 0);
}

/** A script whose log answers at once, with a client `a`. */
function scriptWith(notes: Notes, options: Partial<CoreOptions> = {}): Script {
  const script = new Script(options, undefined, notes.observer);
  script.run('log at once');
  script.run('a connects');
  notes.take();
  return script;
}

// Reads and writes of the root are reported too: counters by namespace leave it out.

describe('reads', () => {
  const notes = new Notes('znodeRead');
  const script = scriptWith(notes);
  for (const line of ['create /app "12345"', 'create /app/one "1"', 'create /app/three', 'create /shut acl=digest:u:x:31']) {
    script.run(`a ${line}`);
  }
  notes.take();

  it.each([
    ['getData /app', ['app 9']],
    ['getData /app/three', ['app 10']],
    ['exists /app/one', ['app 8']],
    ['getChildren /app', ['app 12']],
    ['getChildren2 /app', ['app 12']],
    ['getChildren /app/one', ['app 8']],
    ['getData /', ['no namespace 1']],
    ['multiRead [getData /app; getChildren /app; getData /missing; getData /shut; getChildren /app/one]', ['app 9', 'app 12', 'app 8']],
  ])('%s is reported with its namespace, and the bytes of path and data or names', (line, expected) => {
    script.run(`a ${line}`);
    expect(notes.take()).toEqual(expected.map((text) => `znodeRead ${text}`));
  });

  it.each([
    'getData /missing',
    'exists /missing',
    'getData /shut',
    'getChildren /shut',
    'getACL /app',
    'getAllChildrenNumber /app',
    'sync /app',
  ])('%s is not reported, as in ZooKeeper', (line) => {
    script.run(`a ${line}`);
    expect(notes.take()).toEqual([]);
  });

  it('are reported with the UTF-8 size of paths and names', () => {
    script.run('a create /ä');
    script.run('a create /ä/öü "x"');
    notes.take();
    script.run('a getData /ä/öü');
    script.run('a getChildren /ä');
    expect(notes.take()).toEqual(['znodeRead ä 9', 'znodeRead ä 7']);
  });
});

describe('reads that take more than one step', () => {
  const children = 20_000;

  function largeApp(notes: Notes): Stepper {
    const stepper = new Stepper(
      ({ tree, sessions }) => {
        sessions.open(0, 1, 10_000);
        put(tree, '/app');
        for (let n = 0; n < children; n++) put(tree, `/app/${String(n).padStart(5, '0')}`);
      },
      {},
      notes.observer,
    );
    stepper.attach(1, 1n);
    stepper.reset();
    return stepper;
  }

  it('are reported once', () => {
    const notes = new Notes('znodeRead');
    const stepper = largeApp(notes);
    stepper.ask(1, 1, OpCode.getChildren, (writer) => operations.getChildren.request.write(writer, { path: '/app', watch: false }));
    stepper.finish();
    expect(stepper.calls).toBeGreaterThan(1);
    expect(notes.take()).toEqual([`znodeRead app ${4 + children * 5}`]);
  });

  it('are reported once for each part of a multiRead', () => {
    const notes = new Notes('znodeRead');
    const stepper = largeApp(notes);
    stepper.ask(1, 1, OpCode.multiRead, (writer) =>
      operations.multiRead.request.write(writer, {
        ops: [
          { kind: 'getData', path: '/app/00001', watch: false },
          { kind: 'getChildren', path: '/app', watch: false },
          { kind: 'getData', path: '/missing', watch: false },
          { kind: 'getChildren', path: '/app/00001', watch: false },
        ],
      }),
    );
    stepper.finish();
    expect(stepper.calls).toBeGreaterThan(1);
    expect(notes.take()).toEqual(['znodeRead app 10', `znodeRead app ${4 + children * 5}`, 'znodeRead app 10']);
  });
});

describe('writes', () => {
  const notes = new Notes('znodeWritten');
  const script = scriptWith(notes);

  it.each([
    ['create /app "12345"', ['app 9']],
    ['create /app/e mode=1', ['app 6']],
    ['setData /app "123"', ['app 7']],
    ['setData /app', ['app 4']],
    ['setData / "x"', ['no namespace 2']],
    ['multi [create /app/m "1"; setData /app/m "22"; delete /app/m]', ['app 7', 'app 8', 'app 6']],
    ['multi [create /app/m "1"; delete /missing]', []],
    ['delete /app/e', ['app 6']],
    ['delete /app/e', []],
    ['create /app', []],
    ['setData /missing "x"', []],
    ['setACL /app acl=world:anyone:31', []],
    ['create /ä "x"', ['ä 3']],
    ['delete /ä', ['ä 2']],
  ])('%s is reported with its namespace, and the size of path and data', (line, expected) => {
    notes.take();
    script.run(`a ${line}`);
    expect(notes.take()).toEqual(expected.map((text) => `znodeWritten ${text}`));
  });

  it('the end of a session reports each of its ephemerals, watched or not', () => {
    const received = new Notes('znodeWritten');
    const other = scriptWith(received);
    other.run('a create /app');
    other.run('a create /app/e1 mode=1');
    other.run('a create /e2 mode=1');
    other.run('b connects');
    received.take();
    other.run('b exists /e2 watch');
    other.run('a closeSession');
    expect(received.take().toSorted()).toEqual(['znodeWritten app 7', 'znodeWritten e2 3']);
  });

  it('that a hard limit of a quota refuses are reported with their namespace', () => {
    const received = new Notes('quotaExceeded');
    const limited = scriptWith(received, { enforceQuota: true });
    for (const line of [
      'create /app',
      'create /zookeeper/quota/app',
      'create /zookeeper/quota/app/zookeeper_limits "count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2"',
      'create /zookeeper/quota/app/zookeeper_stats "count=0,bytes=0"',
      'create /app/a "1"',
    ]) {
      limited.run(`a ${line}`);
    }
    expect(received.take()).toEqual([]);
    expect(limited.run('a create /app/b').at(-1)).toMatch(/QuotaExceeded/);
    expect(limited.run('a setData /app/a "12345678901"').at(-1)).toMatch(/QuotaExceeded/);
    expect(received.take()).toEqual(['quotaExceeded app', 'quotaExceeded app']);
  });
});

describe('queued changes', () => {
  it('are counted as in ZooKeeper, and removed when they have been applied', () => {
    const notes = new Notes('changeQueued', 'changesRemoved');
    const script = scriptWith(notes);
    const counts = (line: string): number[] => {
      script.run(`a ${line}`);
      const lines = notes.take();
      const removed = lines.filter((one) => one.startsWith('changesRemoved')).map((one) => Number(one.split(' ')[1]));
      return [lines.filter((one) => one === 'changeQueued').length, removed.reduce((sum, one) => sum + one, 0)];
    };
    expect(counts('create /app')).toEqual([2, 2]);
    expect(counts('setData /app "1"')).toEqual([1, 1]);
    expect(counts('setACL /app acl=world:anyone:31')).toEqual([1, 1]);
    expect(counts('multi [create /app/a; check /app; setData /app "2"]')).toEqual([3, 3]);
    expect(counts('delete /app/a')).toEqual([2, 2]);
    expect(counts('delete /app/a')).toEqual([0, 0]);
    // Rolled back, not applied.
    expect(counts('multi [create /app/a; delete /missing]')).toEqual([2, 0]);
  });
});

describe('txns', () => {
  it('are reported with their age on the wall clock when they are applied', () => {
    const notes = new Notes('applied');
    const script = new Script({}, undefined, notes.observer);
    script.run('a connects');
    script.run('after 7');
    script.run('appended');
    script.run('a create /app');
    script.run('after 30');
    script.run('appended');
    expect(notes.take()).toEqual([`applied ${OpCode.createSession} 7`, `applied ${OpCode.create} 30`]);
  });

  it('are reported with the duration of their validation, which is 0 unless it takes more than one step', () => {
    const notes = new Notes('proposed');
    const ephemerals = 20_000;
    const stepper = new Stepper(
      ({ tree, sessions }) => {
        sessions.open(0, 1, 10_000);
        sessions.open(0, 2, 10_000);
        for (let n = 0; n < ephemerals; n++) put(tree, `/e${n}`, 1);
      },
      {},
      notes.observer,
    );
    stepper.attach(1, 1n);
    stepper.attach(2, 2n);
    stepper.ask(2, 1, OpCode.closeSession, () => {});
    stepper.ask(1, 1, OpCode.closeSession, () => {});
    while (stepper.core.isBusy) {
      stepper.pass(1);
      stepper.step();
    }
    stepper.finish();
    const [short, long] = notes.take().map((line) => line.split(' ').map(Number));
    expect(short).toEqual([NaN, OpCode.closeSession, 0]);
    expect(long![1]).toBe(OpCode.closeSession);
    expect(long![2]).toBeGreaterThan(2);
  });
});

describe('events', () => {
  it('are reported one by one with their size, those of watches and those that a client has missed', () => {
    const notes = new Notes('eventSent', 'watchesFired');
    const script = scriptWith(notes);
    script.run('b connects');
    script.run('a getData / watch');
    script.run('a exists /app watch');
    script.run('b exists /app watch');
    notes.take();
    script.run('a create /app');
    // Length, header of 16 bytes, type, state, and the path with its length.
    const bytes = 4 + 16 + 4 + 4 + 4 + '/app'.length;
    expect(notes.take()).toEqual([`eventSent ${bytes}`, `eventSent ${bytes}`, `watchesFired ${EventType.nodeCreated} 2`]);
    script.run('a setWatches exist=/app data=/gone');
    expect(notes.take()).toEqual([`eventSent ${bytes + 1}`, `eventSent ${bytes}`]);
  });
});

describe('handshakes', () => {
  it('report a reply for a new session as for a write, and none for a resumed or refused session', () => {
    const notes = new Notes('replied', 'sessionRevalidated');
    const script = new Script({}, undefined, notes.observer);
    script.run('a connects');
    script.run('after 5');
    script.run('appended');
    expect(notes.take()).toEqual([`replied ${OpCode.createSession} 0 5 true`]);
    script.run('a goes away');
    script.run('after 5');
    expect(script.run('a2 connects as a')).toEqual(['a2 <- session again timeout=10000']);
    expect(notes.take()).toEqual(['sessionRevalidated true']);
    expect(script.run('a3 connects as a password=wrong').some((line) => line.includes('session refused'))).toBe(true);
    expect(notes.take()).toEqual(['sessionRevalidated false']);
  });
});

describe('the end of a session', () => {
  it('is reported as an expiry or a close, also if the client disconnected after its closeSession', () => {
    const notes = new Notes('sessionClosed');
    const script = scriptWith(notes);
    script.run('b connects');
    script.run('log on request');
    script.run('a closeSession');
    script.run('a goes away');
    script.run('appended');
    expect(notes.take()).toEqual(['sessionClosed false']);
    script.run('log at once');
    script.run('after 60000');
    expect(notes.take()).toEqual(['sessionClosed true']);
  });
});

describe('the request throttle', () => {
  const throttled = { requestThrottleLimit: 1, requestThrottleStallMs: 100 };

  function withOneUnderWay(notes: Notes, options: Partial<CoreOptions> = {}): Script {
    const script = new Script({ ...throttled, ...options }, undefined, notes.observer);
    for (const line of ['log at once', 'a connects', 'b connects', 'c connects', 'log on request', 'a create /app']) script.run(line);
    notes.take();
    return script;
  }

  it('reports each check of a request that must wait, and how long it waited', () => {
    const notes = new Notes('requestThrottled', 'admitted');
    const script = withOneUnderWay(notes);
    script.run('b getData /app');
    // The one after it has not been checked.
    script.run('c getData /app');
    expect(notes.take()).toEqual(['requestThrottled']);
    script.run('after 250');
    expect(notes.take()).toEqual(['requestThrottled', 'requestThrottled']);
    script.run('appended');
    expect(notes.take()).toEqual([`admitted ${OpCode.getData} 250`, `admitted ${OpCode.getData} 250`]);
  });

  it('reports requests whose connection has closed before their turn', () => {
    for (const dropped of [true, false]) {
      const notes = new Notes('staleRequest');
      const script = withOneUnderWay(notes, { requestThrottleDropStale: dropped });
      script.run('b create /late');
      script.run('c getData /app');
      script.run('b goes away');
      expect(notes.take()).toEqual([]);
      script.run('appended');
      expect(notes.take()).toEqual([`staleRequest ${dropped}`]);
    }
  });

  it('performs a closeSession after its connection has closed, unless an earlier request was dropped', () => {
    for (const [ahead, ended] of [
      ['', true],
      ['b create /late', false],
    ] as const) {
      const notes = new Notes('staleRequest', 'sessionClosed');
      const script = withOneUnderWay(notes, { requestThrottleDropStale: true });
      if (ahead !== '') script.run(ahead);
      script.run('b closeSession');
      script.run('b goes away');
      script.run('log at once');
      script.run('appended');
      expect(notes.take()).toEqual(ended ? ['sessionClosed false'] : ['staleRequest true', 'staleRequest true']);
    }
  });

  it('counts a refused write with the reads, since it took no zxid', () => {
    const notes = new Notes('replied');
    const script = withOneUnderWay(notes, { throttledOpWaitMs: 100 });
    script.run('b create /late');
    script.run('after 150');
    script.run('appended');
    expect(notes.take()).toEqual([`replied ${OpCode.create} 0 150 true`, `replied ${OpCode.create} -127 150 false`]);
  });
});

describe('namespaces', () => {
  it('of recovered data are named before any other event', () => {
    const notes = new Notes('namespaceAssigned', 'znodeRead');
    const replica = new Replica(replicaOptions(testOptions, { uint32: () => 7 }));
    put(replica.tree, '/app');
    const script = new Script({}, replica, notes.observer);
    expect(notes.take()).toEqual(['namespaceAssigned 1 zookeeper', 'namespaceAssigned 2 app']);
    script.run('log at once');
    script.run('a connects');
    script.run('a create /new');
    script.run('a getData /app');
    expect(notes.take()).toEqual(['namespaceAssigned 3 new', 'znodeRead app 4']);
  });
});
