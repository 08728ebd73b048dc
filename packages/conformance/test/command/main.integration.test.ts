/** The command, run in this process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checks, main } from '../../src/index.ts';
import { WrongServer } from '../support/wrong-server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start({ config: { tickTime: 200 } });
});

afterAll(async () => {
  await server.close();
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly progress: string;
}

/** `interruptAt`: interrupts the command as Ctrl+C does after it has printed this. */
async function run(argv: readonly string[], interruptAt?: string): Promise<Ran> {
  let [out, err, progress] = ['', '', ''];
  const interruption = new AbortController();
  const code = await main(argv, {
    out: (text) => {
      out += text;
      if (interruptAt !== undefined && out.includes(interruptAt)) interruption.abort();
    },
    err: (text) => (err += text),
    progress: (text) => (progress += `${text}\n`),
    interrupted: interruption.signal,
  });
  return { code, out, err, progress };
}

async function tree(): Promise<string[]> {
  await using zk = await connect(server.connectString);
  const paths: string[] = [];
  for await (const { path, stat } of zk.walk('/')) paths.push(`${path} ${stat.version} ${stat.numChildren}`);
  return paths.toSorted();
}

describe('the command', () => {
  it('prints the servers and the result of each check, and ends with 0 when none failed', async () => {
    const { code, out, err, progress } = await run([server.connectString, '--only', 'stat.,create.ttl']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(progress).toMatch(/^1\/9 create\.ttl\n.*\n9\/9 stat\.zxids-grow\n\n$/s);
    expect(out).toContain(`${server.connectString}  3.9.5-`);
    expect(out).toContain(
      'checked as ZooKeeper 3.9.5, as reported by srvr; sessions of 400 to 4000 ms; extended types off; local sessions disabled',
    );
    expect(out).toMatch(/^ok {14}\d+ +stat\.set-data$/m);
    expect(out).toContain(
      'not applicable, because zookeeper.extendedTypesEnabled is off: the server answers Unimplemented to a create with a TTL:\n  create.ttl\n',
    );
    expect(out).toMatch(/\n8 passed, 0 failed, 1 not applicable\n$/);
  });

  it('leaves the tree unchanged', async () => {
    const before = await tree();
    await run([server.connectString, '--only', 'multi,acl', '--only', 'create']);
    expect(await tree()).toEqual(before);
  });

  it('ends with 1 when a check failed, prints the expected and the actual value and the documentation, and runs the other checks', async () => {
    const before = await tree();
    const make = () => ({
      request: (request: { xid: number; type: number; body: Buffer }) => ({ ...request, type: request.type === 7 ? 999 : request.type }),
    });
    await using wrong = await WrongServer.start(server.port, make);
    const { code, out } = await run([wrong.connectString, '--only', 'versions', '--timeout', '2']);
    expect(code).toBe(1);
    expect(out).toMatch(
      /^FAILED: versions\.set-acl, .*\n {2}the version of the data: expected BadVersion; got Unimplemented .* Documentation: ZooKeeper\.setACL$/m,
    );
    expect(out).toMatch(/\n4 passed, 1 failed, 0 not applicable\n$/);
    expect(await tree()).toEqual(before);
  });

  it('prints JSON with --json', async () => {
    const { code, out } = await run([server.connectString, '--json', '--only', 'errors.numbers,ensemble.multi']);
    const { facts, results, left } = JSON.parse(out) as {
      facts: { release: string; servers: unknown[] };
      results: object[];
      left: unknown;
    };
    expect({ code, left }).toEqual({ code: 0, left: undefined });
    expect(facts).toMatchObject({ release: '3.9.5', isEnsemble: false, servers: [{ address: server.connectString, mode: 'standalone' }] });
    expect(results).toMatchObject([
      { name: 'errors.numbers', rows: ['A17'], outcome: 'passed' },
      {
        name: 'ensemble.multi',
        outcome: 'notApplicable',
        reason: 'only one server was reached, and it needs two of one ensemble in the connect string',
      },
    ]);
  });

  it('lists the checks without a server', async () => {
    const { code, out } = await run(['--list', '--only', 'watches-staying']);
    expect(code).toBe(0);
    expect(out.split('\n')[0]).toMatch(/^check +since +needs +correct behaviour$/);
    expect(out).toMatch(/^watches-staying\.several-modes +3\.9\.0 +one client may watch one path/m);
    const all = JSON.parse((await run(['--list', '--json'])).out) as { checks: object[] };
    expect(all.checks).toHaveLength(checks.length);
  });

  it('works below a chroot, and compares with the given release', async () => {
    await using zk = await connect(server.connectString);
    await zk.create('/app');
    const { code, out } = await run(['--release', '3.8', '--only', 'watches-once.zxid,reads.exists', `${server.connectString}/app`]);
    await zk.delete('/app');
    expect(code).toBe(0);
    expect(out).toContain('checked as ZooKeeper 3.8.0, as --release says');
    expect(out).toContain('it came with ZooKeeper 3.9.0, and the servers are compared with 3.8.0');
  });

  it('compares a server that does not report its release with the default release, and reports that', async () => {
    await using silent = await WrongServer.start(server.port, () => ({ isMute: true }));
    const { code, out } = await run([silent.connectString, '--only', 'reads.exists']);
    expect(code).toBe(0);
    expect(out).toContain('not reported');
    expect(out).toContain('checked as ZooKeeper 3.9.5, because srvr does not answer; --release sets another');
  });

  it('removes the scratch znode when it is interrupted, and ends with 130', async () => {
    const before = await tree();
    const { code, out } = await run([server.connectString, '--slow'], 'checked as');
    expect(code).toBe(130);
    expect(out).toMatch(/\n0 passed, 0 failed, 0 not applicable\n$/);
    expect(await tree()).toEqual(before);
  });

  it.each([
    [[], 2, 'missing connect string of a server, such as 127.0.0.1:2181.'],
    [['localhost:2181', '--only', 'nonsense'], 2, 'no check has "nonsense" in its name; --list prints the names.'],
    [['localhost:2181', '--timeout', 'soon'], 2, 'It must be a number of seconds, more than 0 and at most 3600.'],
    [['localhost:2181', '--release', 'new'], 2, 'It must be a release of ZooKeeper, such as 3.8 or 3.9.2.'],
    [['localhost:2181', '--super', 'me'], 2, 'It must be user:password.'],
    [['localhost:2181', '--reconfig'], 2, '--reconfig needs --super: only the super user may write the configuration.'],
    [['localhost:port'], 2, 'localhost:port'],
    [['srv:_zookeeper._tcp.example.com'], 3, 'name them one by one'],
    [['127.0.0.1:1', '--timeout', '0.2'], 3, 'cannot open a session at 127.0.0.1:1'],
  ] as const)('explains in a sentence why it rejects the arguments %j', async (argv, expected, sentence) => {
    const { code, err } = await run(argv);
    expect(code).toBe(expected);
    expect(err).toContain(sentence);
  });

  it('reports a missing chroot', async () => {
    const { code, err } = await run([`${server.connectString}/missing`]);
    expect(code).toBe(3);
    expect(err).toBe(
      `tskeeper-conformance: the chroot of ${server.connectString}/missing does not exist; create it, or name another one.\n`,
    );
  });
});

describe('the list of checks', () => {
  it('has unique names in the form subject.what, grouped by subject', () => {
    const names = checks.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => !/^[a-z-]+\.[a-z-]+$/.test(name))).toEqual([]);
    const subjects = names.map((name) => name.split('.')[0]!);
    expect(subjects.filter((subject, at) => subject !== subjects[at - 1])).toEqual([...new Set(subjects)]);
  });

  it('has the length that the README states', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
    expect(readme).toContain(` ${checks.length} checks of behaviour that a client can observe`);
  });

  it('has documentation and promises for each check', () => {
    expect(checks.filter(({ behaviourIds, docs }) => behaviourIds.length === 0 || docs === '')).toEqual([]);
  });
});
