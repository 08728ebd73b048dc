/** Results of calls. */
import { KeeperError } from '../../src/index.ts';

export interface Settled<Result> {
  /** `done`, or code and outcome of the error. */
  readonly outcome: string;
  readonly result: Result | undefined;
  readonly error: KeeperError | undefined;
}

/** Throws an error that is not a KeeperError. */
export async function settle<Result>(promise: Promise<Result>): Promise<Settled<Result>> {
  try {
    return { outcome: 'done', result: await promise, error: undefined };
  } catch (thrown) {
    if (!KeeperError.is(thrown)) throw thrown;
    return { outcome: `${thrown.code} ${thrown.outcome}`, result: undefined, error: thrown };
  }
}

export const text = (data: Uint8Array | null | undefined): string | null | undefined =>
  data === null || data === undefined ? data : new TextDecoder().decode(data);
