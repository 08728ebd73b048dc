/**
 * Node's module loading hooks. They run on a thread of their own; loader.ts passes the mutation.
 */
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
