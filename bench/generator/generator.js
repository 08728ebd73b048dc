/** Builds the load generator and runs it; see generator.c for its modes. */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const source = path.join(import.meta.dirname, 'generator.c');
const cacheFolder = path.resolve(import.meta.dirname, '..', '..', '.cache');
const flags = ['-O2', '-Wall', '-Wextra', '-Wconversion', '-Werror'];

/** The path of the program, compiled if its source or the flags have changed. */
export async function buildGenerator() {
  const digest = createHash('sha256')
    .update(flags.join(' '))
    .update(await readFile(source))
    .digest('hex')
    .slice(0, 12);
  const program = path.join(cacheFolder, `generator-${digest}`);
  if (existsSync(program)) return program;
  await mkdir(cacheFolder, { recursive: true });
  const unfinished = `${program}.${process.pid}.tmp`;
  try {
    await run('gcc', [...flags, '-o', unfinished, source]);
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error('the load generator needs gcc, which is not installed on this machine', { cause: error });
    throw error;
  }
  await rename(unfinished, program);
  return program;
}

/** The generator ended with an error: 1, it could not run; 2, the server violated the protocol. */
export class GeneratorError extends Error {
  constructor(exitCode, message) {
    super(message);
    this.name = 'GeneratorError';
    this.exitCode = exitCode;
  }
}

function argumentsOf(options) {
  return Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .flatMap(([name, value]) => [`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, String(value)]);
}

/**
 * Starts one mode of the generator. `result` resolves with its JSON; `stop` ends it early, which
 * only a probe supports.
 */
export function startGenerator(program, mode, options) {
  const child = spawn(program, [mode, ...argumentsOf(options)], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (complaint += text));
  const result = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => {
      if (exitCode === 0) resolve(JSON.parse(output));
      else reject(new GeneratorError(exitCode, complaint.trim() || `the generator was ended by ${signal}`));
    });
  });
  return {
    result,
    stop() {
      child.kill('SIGTERM');
      return result;
    },
  };
}

export function runGenerator(program, mode, options) {
  return startGenerator(program, mode, options).result;
}
