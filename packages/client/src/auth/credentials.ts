/** Identities to prove to a server, as a program passes them and as a session sends them. */

/** The proof of an identity: a scheme and its data, such as `digest` and `user:password`. */
export interface Credentials {
  readonly scheme: string;
  readonly auth: Uint8Array;
}

/**
 * Credentials whose caller waits for the first answer. One object per call, which identifies the
 * call.
 */
export interface AuthCall {
  readonly credentials: Credentials;
}

/** Copies the bytes, as the program may change them afterwards. Text becomes UTF-8. */
export function toCredentials(scheme: string, auth: Uint8Array | string): Credentials {
  return { scheme, auth: typeof auth === 'string' ? Buffer.from(auth, 'utf8') : new Uint8Array(auth) };
}
