/**
 * The environment in which the scripts of a foreign suite start servers: ours through the stand-in,
 * or Apache's.
 */
import path from 'node:path';

import { ensureForeignPrograms, repositoryFolder } from '../../../../scripts/foreign-programs.js';
import type { ServerKind } from '@tskeeper/harness';

export interface SuiteEnvironment {
  readonly variables: NodeJS.ProcessEnv;
  /** Class path of the servers that `java` starts; unused by the stand-in. */
  readonly classpath: string;
}

export async function suiteEnvironment(kind: ServerKind): Promise<SuiteEnvironment> {
  // The scripts prefer the JVM of JAVA_HOME to the one on PATH. A server with npm's variables would
  // look for npm among its ancestors.
  const variables = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'JAVA_HOME' && !name.startsWith('npm_')));
  if (kind === 'ours') {
    const standIn = path.join(repositoryFolder, 'verification', 'interop', 'stand-in');
    return { variables: { ...variables, PATH: `${standIn}:${variables['PATH']}` }, classpath: standIn };
  }
  const name = kind === 'java-3.8.0' ? 'zookeeper-3.8.0' : 'zookeeper-3.9.5';
  const { [name]: java } = await ensureForeignPrograms([name]);
  if (!java.installed) throw new Error(`cannot install ${name}: ${java.reason}`);
  return { variables, classpath: java.classpath };
}
