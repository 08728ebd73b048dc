/**
 * Exit codes of `tskeeper`. A script can treat every code other than 0 as a failure; the codes tell
 * which remedy helps. docs/reference/cli.md lists them; a test compares both.
 */
import { exitCodes as serverExitCodes } from '@tskeeper/server';

/** Exit codes of the command; `serve` uses those of the server. */
export const exitCodes = {
  /** Success; `verify`: no damage; `diff`: no difference. */
  done: serverExitCodes.ended,
  /** A failure without a code of its own; `verify`: damage; `diff`: differences. */
  failed: 1,
  /** An invalid command line or configuration, or a file that cannot be read. */
  refused: serverExitCodes.refused,
  /** The disk failed. */
  diskFailure: serverExitCodes.diskFailure,
  /** `txnlog verify`: no damage except a torn tail, which was never acknowledged. */
  tornTail: 4,
  /** No server could be reached, the connection or the session was lost, or a reply timed out. */
  noConnection: 5,
  noNode: 6,
  nodeExists: 7,
  badVersion: 8,
  notEmpty: 9,
  /** No permission, or failed authentication (NoAuth, AuthFailed). */
  noAuth: 10,
  /** Unknown command; shells and zkCli use the same number. */
  noCommand: 127,
  /** Ended by SIGINT while it worked or waited. */
  interrupted: 130,
  /** Ended by SIGTERM while it worked or waited. */
  terminated: 143,
} as const;

/**
 * A mistake that the user has to correct before the command can work. The message is one sentence
 * that says what to correct.
 */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
}
