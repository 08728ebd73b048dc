/** How a request is refused, and the checks that several kinds of requests share. */
import { ErrorCode } from '@tskeeper/protocol';
import type { Path } from './operation-types.ts';
import { isValidPath } from './znode-path.ts';

/**
 * A refusal, thrown while a request is processed and turned into its reply. Not an Error, since
 * half of all requests end so and a stack is expensive.
 */
export class Refusal {
  readonly code: number;
  constructor(code: number) {
    this.code = code;
  }
}

/** A null path makes the record of every operation invalid. */
export function requirePath(path: Path): string {
  if (path === null) throw new Refusal(ErrorCode.MarshallingError);
  return path;
}

export function requireValidPath(wanted: Path): string {
  if (wanted === null || !isValidPath(wanted)) throw new Refusal(ErrorCode.BadArguments);
  return wanted;
}

export function requireVersion(wanted: number, actual: number): void {
  if (wanted !== -1 && wanted !== actual) throw new Refusal(ErrorCode.BadVersion);
}
