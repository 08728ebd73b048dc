/**
 * Options of `connect` that exclude each other or are incomplete, or name a file or package that
 * does not exist. The message is one sentence that names the option and the remedy.
 */
export class ConnectOptionsError extends Error {
  override readonly name = 'ConnectOptionsError';
}
