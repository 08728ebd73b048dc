/**
 * How `tskeeper` ends. A script that only tells 0 from the rest is right with every command; the finer codes say which remedy helps.
 * docs/reference/cli.md lists them; a test compares both.
 */
import { exitCodes as serverExitCodes } from '@tskeeper/server';

/** How the command ends; those of `serve` are those of the server. */
export const exitCodes = {
  /** Done as asked; of `verify`: nothing is wrong; of `diff`: no difference. */
  done: serverExitCodes.ended,
  /** Refused or failed for a reason that has no code of its own; of `verify`: damage; of `diff`: differences. */
  failed: 1,
  /** A slip on the command line or in a configuration, or a file that cannot be read. */
  refused: serverExitCodes.refused,
  /** The disk failed. */
  diskFailure: serverExitCodes.diskFailure,
  /** `txnlog verify`: nothing is wrong but a torn tail, which was never acknowledged. */
  tornTail: 4,
  /** No server could be reached, the connection or the session was lost, or an answer did not come in time. */
  noConnection: 5,
  noNode: 6,
  nodeExists: 7,
  badVersion: 8,
  notEmpty: 9,
  /** Not allowed, or not the one it says it is (NoAuth, AuthFailed). */
  noAuth: 10,
  /** There is no such command; the number is that of shells, and zkCli's. */
  noCommand: 127,
  /** Ended by SIGINT while it waited. */
  interrupted: 130,
  /** Ended by SIGTERM while it waited. */
  terminated: 143,
} as const;

/** Something the user has to put right before the command can work. The message is one sentence that says what. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
}
