/** Every file that docs/internals/zookeeper-map.md names exists. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

/**
 * `core/request/{read,answer}.ts` names two files of packages/core/src; a folder ends in a slash.
 */
function filesNamed(page: string): string[] {
  return [...page.matchAll(/`([a-z]+)\/([^`]+(?:\.ts|\/))`/g)].flatMap(([, name, path]) => {
    const braces = /^(.*)\{(.*)\}(.*)$/.exec(path!);
    const paths = braces === null ? [path!] : braces[2]!.split(',').map((one) => `${braces[1]}${one}${braces[3]}`);
    return paths.map((one) => `packages/${name}/src/${one}`);
  });
}

const missing = (page: string): string[] => filesNamed(page).filter((path) => !existsSync(join(root, path)));

it('every file on the map of ZooKeeper’s classes exists', () => {
  const page = readFileSync(join(root, 'docs/internals/zookeeper-map.md'), 'utf8');
  expect(filesNamed(page).length).toBeGreaterThan(40);
  expect(missing(page)).toEqual([]);
});

it('the check of the map reports a missing file', () => {
  expect(missing('`core/request/{replica,nothing}.ts`')).toEqual(['packages/core/src/request/nothing.ts']);
});
