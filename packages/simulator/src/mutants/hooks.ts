/** Node's hooks into the loading of modules; they run on a thread of their own, and are told by loader.ts what to do. */
import type { LoadHook } from 'node:module';

export interface Mutation {
  /** Of the compiled file. */
  readonly url: string;
  readonly source: string;
}

let mutation: Mutation | undefined;

export function initialize(data: Mutation): void {
  mutation = data;
}

export const load: LoadHook = (url, context, nextLoad) =>
  url === mutation?.url ? { format: 'module', shortCircuit: true, source: mutation.source } : nextLoad(url, context);
