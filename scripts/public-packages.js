/** The packages that people install: everything in packages/ that is not private. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** By folder: `client` for @tskeeper/client. */
export function publicPackages() {
  return readdirSync(join(root, 'packages'))
    .map((name) => ({ name, folder: join(root, 'packages', name) }))
    .filter(({ folder }) => existsSync(join(folder, 'package.json')))
    .map((each) => ({ ...each, manifest: JSON.parse(readFileSync(join(each.folder, 'package.json'), 'utf8')) }))
    .filter(({ manifest }) => manifest.private !== true);
}
