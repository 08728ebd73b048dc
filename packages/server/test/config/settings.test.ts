import { describe, expect, it } from 'vitest';
import { parseDefinition, parseJavaFlags, parseProperties } from '../../src/config/settings.ts';

describe('a properties file', () => {
  const text = [
    '# a comment',
    '! another',
    '',
    'tickTime=2000',
    '  dataDir : /var/lib/zookeeper  ',
    'clientPort 2181',
    'server.1=a:2888:3888;\\',
    '    2181',
    'after = \\u0041\\tb',
    'empty=',
    'colon\\:key=1',
  ].join('\n');

  it('A84: is read as Java reads it, with the line each key starts on', () => {
    expect(parseProperties(text, 'zoo.cfg')).toEqual([
      { name: 'tickTime', value: '2000', where: 'zoo.cfg:4' },
      { name: 'dataDir', value: '/var/lib/zookeeper', where: 'zoo.cfg:5' },
      { name: 'clientPort', value: '2181', where: 'zoo.cfg:6' },
      { name: 'server.1', value: 'a:2888:3888;2181', where: 'zoo.cfg:7' },
      { name: 'after', value: 'A\tb', where: 'zoo.cfg:9' },
      { name: 'empty', value: '', where: 'zoo.cfg:10' },
      { name: 'colon:key', value: '1', where: 'zoo.cfg:11' },
    ]);
  });

  it('may have the line ends of Windows', () => {
    expect(parseProperties(text.replaceAll('\n', '\r\n'), 'zoo.cfg')).toEqual(parseProperties(text, 'zoo.cfg'));
  });
});

describe('JVMFLAGS', () => {
  it('are split as a shell splits them, into -D settings and others', () => {
    const { properties, others } = parseJavaFlags(
      `-Xmx1g  -Dzookeeper.a=1 "-Dzookeeper.b=two words" -Dzookeeper.c='x y' -Dd -De=f\\ g`,
      'JVMFLAGS',
    );
    expect(others).toEqual(['-Xmx1g']);
    expect(properties.map(({ name, value }) => [name, value])).toEqual([
      ['zookeeper.a', '1'],
      ['zookeeper.b', 'two words'],
      ['zookeeper.c', 'x y'],
      ['d', ''],
      ['e', 'f g'],
    ]);
    expect(properties[0]!.where).toBe('-Dzookeeper.a in JVMFLAGS');
  });

  it('keep everything after the first equals sign of a setting', () => {
    expect(parseDefinition('a=b=c')).toEqual({ name: 'a', value: 'b=c', where: '-Da' });
  });
});
