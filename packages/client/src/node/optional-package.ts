/**
 * Packages that some need and most do not: they are loaded when an option asks for them, and are no dependencies of this one.
 */
import { ConnectOptionsError } from '../connect-options-error.ts';

/** Rejects with one sentence when it is not installed; `need` begins it: `tls.trustStore: JKS files are read`. */
export async function optionalPackage<Exports>(name: 'jks-js' | 'kerberos', need: string): Promise<Exports> {
  let module: { readonly default?: Exports };
  try {
    // By a variable, so that no bundler or checker takes it for needed.
    module = (await import(name)) as typeof module;
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    const what = isMissing ? 'is not installed' : `could not be loaded (${cause instanceof Error ? cause.message : String(cause)})`;
    throw new ConnectOptionsError(`${need} by the npm package ${name}, which ${what}; npm install ${name}`, { cause });
  }
  // Both are CommonJS, and all of their exports are there.
  return module.default as Exports;
}
