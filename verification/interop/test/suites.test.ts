/**
 * How results of foreign test suites are parsed and counted, and how the stand-in parses a JVM's
 * command line.
 */
import { readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import { Report } from '../src/report.ts';
import { readResults } from '../src/suites/c-suite.ts';
import { countResult, cSuiteExceptions, type Exceptions, kazooSuiteExceptions } from '../src/suites/exceptions.ts';
import { parseJvmCommand, withoutUnsupported } from '../src/suites/jvm-command.ts';

/**
 * Output of cppunit: lines of servers and their scripts appear between a test's name and its
 * result.
 */
const printed = ` ZooKeeper server started
Running 
Zookeeper_simpleSystem::testNullData : elapsed 1013 : OK
Zookeeper_simpleSystem::testAcl : assertion : elapsed 1001
Zookeeper_simpleSystem::testAuth ZooKeeper server started ZooKeeper server started : elapsed 16918 : OK
Zookeeper_simpleSystem::testLogCallbackSetLog Message Received: [2026-01-01 00:00:00,000:1(0x1):ZOO_INFO@log_env@1250: Client environment]
 : elapsed 1007 : OK
Zookeeper_simpleSystem::testPing : assertion : elapsed 2002
tests/TestClient.cc:490: Assertion: assertion failed [Expression: a]
tests/TestClient.cc:856: Assertion: equality assertion failed [Expected: 0, Actual  : -4]
Failures !!!
`;

describe('results of the C suite', () => {
  test('each test passes or fails by its own result, whatever servers print in between', () => {
    const results = readResults(printed, 'Zookeeper_simpleSystem', 5, 'exit code 1');
    expect(results.map(({ test: name, detail }) => [name.split('::')[1], detail])).toEqual([
      ['testNullData', undefined],
      ['testAcl', 'tests/TestClient.cc:490: Assertion: assertion failed [Expression: a]'],
      ['testAuth', undefined],
      ['testLogCallbackSet', undefined],
      ['testPing', 'tests/TestClient.cc:856: Assertion: equality assertion failed [Expected: 0, Actual  : -4]'],
    ]);
  });

  test('a test during which the program ends has failed, and tests that did not run are missing', () => {
    const crashed = 'Running \nZookeeper_multi::testCreate : elapsed 3 : OK\nZookeeper_multi::testWatchterminate called\n';
    const results = readResults(crashed, 'Zookeeper_multi', 13, 'signal SIGABRT');
    expect(results.map(({ detail }) => detail?.slice(0, 60))).toEqual([
      undefined,
      expect.stringContaining('it ended the process: signal SIGABRT'),
      expect.stringContaining('2 tests ran instead of 13'),
    ]);
  });
});

describe('exceptions', () => {
  const exceptions: Exceptions = new Map([
    ['mt Fixture::testOne', 'no such thing'],
    ['mt Group::*', 'nor this'],
  ]);

  test.each([
    ['mt Fixture::testTwo', undefined, { passed: 1, failed: 0, skipped: 0 }],
    ['mt Fixture::testTwo', 'assertion', { passed: 0, failed: 1, skipped: 0 }],
    ['mt Fixture::testOne', 'assertion', { passed: 0, failed: 0, skipped: 0 }],
    ['mt Fixture::testOne', undefined, { passed: 0, failed: 1, skipped: 0 }],
    ['mt Group::testAny', 'assertion', { passed: 0, failed: 0, skipped: 0 }],
    ['mt Group::testAny', undefined, { passed: 0, failed: 1, skipped: 0 }],
  ])('%s with failure %s counts as %o: a listed test must fail, and any other must pass', (name, detail, counts) => {
    const report = new Report(() => {}, false);
    countResult('suite', { test: name, detail }, exceptions, report);
    expect(report.counts).toEqual(counts);
  });

  test.each([
    ['c-suite', cSuiteExceptions],
    ['kazoo-suite', kazooSuiteExceptions],
  ])('the page of interop lists the exceptions of %s, each with its reason', (suite, listed) => {
    const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `([a-z-]+)` \| `([^`]+)` \| (.+) \|$/gm)].filter(([, name]) => name === suite);
    expect(new Map(rows.map(([, , name, reason]) => [name, reason]))).toEqual(new Map(listed));
  });
});

describe('the stand-in for a JVM', () => {
  test('parses properties, class and arguments, and skips options of the JVM', () => {
    const argv = ['-Xmx1g', '-cp', 'a.jar:b.jar', '-Dzookeeper.extendedTypesEnabled=true', '-XX:+Some', 'org.Main', 'zoo.cfg', '-x'];
    expect(parseJvmCommand(argv)).toEqual({
      properties: ['-Dzookeeper.extendedTypesEnabled=true'],
      mainClass: 'org.Main',
      args: ['zoo.cfg', '-x'],
    });
  });

  test('starts a server without TLS, and names each omitted setting', () => {
    const config = 'tickTime=500\nssl.keyStore.location=a\nsecureClientPort=22281\nlocalSessionsEnabled=true';
    const kept = ['-Dzookeeper.authProvider.1=a.b.SASLAuthenticationProvider', '-Dznode.container.checkIntervalMs=100'];
    const properties = ['-Dzookeeper.authProvider.2=a.b.X509AuthenticationProvider', ...kept];
    expect(withoutUnsupported({ config, properties })).toEqual({
      config: 'tickTime=500\nlocalSessionsEnabled=true',
      properties: kept,
      leftOut: ['ssl.keyStore.location', 'secureClientPort', 'zookeeper.authProvider.2'],
    });
  });
});
