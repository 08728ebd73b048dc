import { readFileSync } from 'node:fs';
import { coreDefaults } from '@tskeeper/core';
import { describe, expect, it } from 'vitest';
import { type ConfigKey, configKeys, findKey, nearestKey } from '../../src/config/config-keys.ts';
import { exitCodes } from '../../src/exit.ts';

const page = readFileSync(new URL('../../../../docs/reference/config.md', import.meta.url), 'utf8');

const statuses: Record<ConfigKey['status'], string> = {
  built: 'built',
  ensemble: 'for ensembles',
  'no effect': 'accepted, no effect',
  warns: 'warns',
  stops: 'stops the start',
};
const places: Record<ConfigKey['source'], string> = {
  file: 'zoo.cfg',
  property: 'zoo.cfg, -Dzookeeper.',
  bare: '-D',
  either: 'zoo.cfg, -Dzookeeper., -D',
};

/** The rows of all tables with five columns. */
function documented(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter((cells) => cells.length === 7 && cells[1]!.startsWith('`'))
    .map(([, name, place, fallback, status]) => [name, place, fallback, status].join(' | '));
}

function known(keys: readonly ConfigKey[]): string[] {
  return keys.map(({ name, source, default: fallback, status }) => {
    return [`\`${name}\``, places[source], fallback === '' ? '' : `\`${fallback}\``, statuses[status]].join(' | ');
  });
}

describe('docs/reference/config.md', () => {
  it('A84a: lists every key with the place, default and status of the code, and no other', () => {
    expect(documented(page)).toEqual(known(configKeys));
  });

  it('fails the comparison with a wrong default, a missing key or an invented one', () => {
    const rows = known(configKeys);
    expect(documented(page.replace('`3000`', '`3001`'))).not.toEqual(rows);
    expect(documented(page.replace(/^\| `snapCount`.*\n/m, ''))).not.toEqual(rows);
    expect(documented(`${page}\n| \`invented\` | -D |  | built | x |\n`)).not.toEqual(rows);
  });

  it('explains every key', () => {
    const unexplained = page.split('\n').filter((line) => line.startsWith('| `') && /\|\s*\|$/.test(line));
    expect(unexplained).toEqual([]);
  });

  it('lists every exit code', () => {
    const codes = [...page.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => Number(code));
    expect(codes).toEqual(Object.values(exitCodes));
  });
});

describe('the table of keys', () => {
  it('names each key once', () => {
    const names = configKeys.map(({ name, source }) => `${name} ${source}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it('gives a reason for each key that has no effect, warns or stops the start', () => {
    expect(configKeys.filter(({ status, reason }) => status !== 'built' && reason === undefined)).toEqual([]);
  });

  it('gives jute.maxbuffer the default of the core', () => {
    expect(findKey('jute.maxbuffer', ['bare'])!.default).toBe(`${coreDefaults.juteMaxBuffer}`);
  });

  it('distinguishes a key of a family from a key of its own', () => {
    expect(findKey('server.1', ['file'])!.name).toBe('server.*');
    expect(findKey('server.realm', ['property'])!.name).toBe('server.realm');
    expect(findKey('metricsProvider.className', ['file'])!.name).toBe('metricsProvider.className');
    expect(findKey('metricsProvider.httpPort', ['file'])!.name).toBe('metricsProvider.*');
    expect(findKey('snapCount', ['file'])).toBeUndefined();
  });

  it.each([
    ['ticktime', 'tickTime'],
    ['zookeeper.tickTime', 'tickTime'],
    ['autopurge.purgeIntervall', 'autopurge.purgeInterval'],
    ['maxClientCnxn', 'maxClientCnxns'],
    ['zzz', undefined],
  ])('finds the nearest key to %s', (written, meant) => {
    expect(nearestKey(written)).toBe(meant);
  });
});
