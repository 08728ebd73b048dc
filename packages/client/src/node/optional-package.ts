/**
 * Packages that some need and most do not: they are loaded when an option asks for them, and are no dependencies of this one.
 */
import { createRequire } from 'node:module';
import { ConnectOptionsError } from '../connect-options-error.ts';

/** Both are CommonJS. No bundler or checker follows this, so none takes them for needed. */
const load = createRequire(import.meta.url);

/** Throws one sentence when it is not installed; `need` begins it: `tls.trustStore: JKS files are read`. */
export function optionalPackage(name: 'jks-js' | 'kerberos', need: string): unknown {
  try {
    return load(name);
  } catch (cause) {
    const { message } = cause as Error;
    // Another module that cannot be found is a part of the package: one with native code is often installed and not built.
    const what = message.includes(`Cannot find module '${name}'`) ? 'is not installed' : `could not be loaded (${message.split('\n')[0]})`;
    throw new ConnectOptionsError(`${need} by the npm package ${name}, which ${what}; npm install ${name}`, { cause });
  }
}
