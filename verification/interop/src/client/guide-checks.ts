/** The program of the first guide, run by Node as a reader of the guide runs it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { repositoryFolder } from '../../../../scripts/foreign-programs.js';
import type { Check } from './checks.ts';

const program = path.join(repositoryFolder, 'packages', 'client', 'test', 'guide', 'first-steps.js');
const guide = path.join(repositoryFolder, 'docs', 'guides', 'first-steps.md');

export const guideChecks: readonly Check[] = [
  {
    name: 'the first steps print what their guide says',
    async run({ proxy }) {
      const { stdout } = await promisify(execFile)(process.execPath, [program, proxy.connectString], { timeout: 30_000 });
      const [, said] = [...(await readFile(guide, 'utf8')).matchAll(/^It prints:\n\n```\n([\s\S]*?)^```$/gm)].map(([, printed]) => printed);
      assert.equal(stdout, said);
    },
  },
];
