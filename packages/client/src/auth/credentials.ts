/** An identity to prove, as a program passes it. */
import type { Credentials } from '../session/session-auth.ts';

/** Copies the bytes, as the program may change them afterwards. Text becomes UTF-8. */
export function toCredentials(scheme: string, auth: Uint8Array | string): Credentials {
  return { scheme, auth: typeof auth === 'string' ? Buffer.from(auth, 'utf8') : new Uint8Array(auth) };
}
