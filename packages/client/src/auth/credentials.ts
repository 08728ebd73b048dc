/** An identity to prove, as a program gives it. */
import type { Credentials } from '../session/session-machine.ts';

/** A copy, since what a program does with its bytes afterwards is its own affair. Text becomes UTF-8. */
export function credentialsOf(scheme: string, auth: Uint8Array | string): Credentials {
  return { scheme, auth: typeof auth === 'string' ? Buffer.from(auth, 'utf8') : new Uint8Array(auth) };
}
