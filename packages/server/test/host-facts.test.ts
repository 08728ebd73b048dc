/**
 * The facts about this server that programs parse: go-zookeeper's `FLWSrvr`, ZooKeeper's own tests,
 * scripts that grep `envi`.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { formatBuildDate, hostFacts } from '../src/host-facts.ts';

describe('the version of the server', () => {
  it('is a release, then a build date that go-zookeeper can parse (mm/dd/yyyy hh:mm GMT)', () => {
    const parsed = /^([A-Za-z0-9.-]+), built on (\d\d\/\d\d\/\d\d\d\d \d\d:\d\d [A-Za-z0-9:+-]+)$/.exec(hostFacts.version);
    expect(parsed?.[1]).toMatch(/^3\.9\.5-tskeeper-\d+\.\d+\.\d+/);
    expect(new Date(parsed![2]!).getTime()).not.toBeNaN();
    expect(parsed?.[2]).toMatch(/ GMT$/);
  });

  it('has its date in GMT, whatever the time zone of the machine', () => {
    expect(formatBuildDate('2026-01-02T03:04Z')).toBe('01/02/2026 03:04 GMT');
    expect(formatBuildDate('2026-12-31T23:30-01:00')).toBe('01/01/2027 00:30 GMT');
    expect(() => formatBuildDate('yesterday')).toThrow(
      'buildDate in package.json must be a date such as 2026-01-31T12:00Z, not "yesterday"',
    );
  });
});

describe('envi', () => {
  afterEach(() => vi.restoreAllMocks());

  it('prints <NA> for what the system does not report: in a process without a free descriptor, or in a removed folder', () => {
    const fail = (): never => {
      throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    };
    vi.spyOn(process.memoryUsage, 'rss').mockImplementation(fail);
    vi.spyOn(process, 'cwd').mockImplementation(fail);
    const environment = new Map(hostFacts.environment());
    expect([environment.get('user.dir'), environment.get('os.memory.total')]).toEqual(['<NA>', '<NA>']);
    expect(environment.get('node.version')).toBe(process.version);
  });

  it('has every key that ZooKeeper prints, in its order, and those of Node', () => {
    const environment = new Map(hostFacts.environment());
    expect([...environment.keys()].filter((key) => !key.startsWith('node.'))).toEqual([
      'zookeeper.version',
      'host.name',
      'java.version',
      'java.vendor',
      'java.home',
      'java.class.path',
      'java.library.path',
      'java.io.tmpdir',
      'java.compiler',
      'os.name',
      'os.arch',
      'os.version',
      'user.name',
      'user.home',
      'user.dir',
      'os.memory.free',
      'os.memory.max',
      'os.memory.total',
    ]);
    expect(environment.get('java.version')).toBe(`none (Node ${process.version})`);
    expect(environment.get('node.version')).toBe(process.version);
  });
});
