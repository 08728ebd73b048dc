/** The client as one file, for programs of a test that run as separate processes. */
import { build, type BuildOptions } from 'esbuild';

/** Writes what `program` exports to a file, and returns its path. */
export async function bundle(program: string, file: string, options: BuildOptions = {}): Promise<string> {
  await build({
    stdin: { contents: program, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    outfile: file,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['tskeeper-source'],
    external: ['jks-js', 'kerberos'],
    ...options,
  });
  return file;
}
