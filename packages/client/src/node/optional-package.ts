/**
 * Loads optional packages: an option that needs one loads it, and they are not dependencies of this
 * package.
 */
import { createRequire } from 'node:module';
import { ConnectOptionsError } from '../connect-options-error.ts';

/**
 * Both are CommonJS. Bundlers and checkers do not follow this, so they do not treat them as
 * required.
 */
const load = createRequire(import.meta.url);

/**
 * Throws a ConnectOptionsError of one sentence if the package is not installed; `need` starts it:
 * `tls.trustStore: JKS files require`.
 */
export function optionalPackage(name: 'jks-js' | 'kerberos', need: string): unknown {
  try {
    return load(name);
  } catch (cause) {
    const { message } = cause as Error;
    // If another module is missing, it is part of the package: a package with native code is often
    // installed but not built.
    const what = message.includes(`Cannot find module '${name}'`) ? 'is not installed' : `could not be loaded (${message.split('\n')[0]})`;
    throw new ConnectOptionsError(`${need} the npm package ${name}, which ${what}; run npm install ${name}`, { cause });
  }
}
