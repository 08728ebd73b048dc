/** Where a measurement was made: what a reader needs to compare its numbers. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import { promisify } from 'node:util';

import { repositoryFolder } from '../scripts/foreign-programs.js';

const run = promisify(execFile);

async function firstLine(command, args) {
  try {
    const { stdout, stderr } = await run(command, args, { cwd: repositoryFolder });
    return `${stdout}${stderr}`.split('\n')[0].trim();
  } catch {
    return 'unknown';
  }
}

export async function environmentOf(dataDir, say) {
  const [load] = os.loadavg();
  if (load > 0.5) say(`this machine is not quiet: its load average is ${load.toFixed(2)}, which will affect the results`);
  const [{ model }] = os.cpus();
  const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' '));
  const mount = mounts
    .filter(([, folder]) => folder !== undefined && `${dataDir}/`.startsWith(folder.endsWith('/') ? folder : `${folder}/`))
    .sort((a, b) => b[1].length - a[1].length)[0];
  return {
    date: new Date().toISOString(),
    commit: await firstLine('git', ['describe', '--always', '--dirty']),
    machine: `${os.cpus().length} x ${model}, ${Math.round(os.totalmem() / 2 ** 30)} GB, Linux ${os.release()}, data on ${mount?.[2] ?? 'an unknown file system'}`,
    node: process.version,
    java: await firstLine('java', ['-version']),
    'load average at the start': load.toFixed(2),
  };
}
