/** Node's hooks into the loading of modules; they run on a thread of their own, and are told what to do by loader.ts. */
import type { LoadHook } from 'node:module';

let mutation: { readonly url: string; readonly source: string } | undefined;

export function initialize(data: { readonly url: string; readonly source: string }): void {
  mutation = data;
}

export const load: LoadHook = (url, context, nextLoad) =>
  url === mutation?.url ? { format: 'module', shortCircuit: true, source: mutation.source } : nextLoad(url, context);
