/** Options of `connect` that cannot be meant, or that name what is not there. The message is one sentence that names the option and the remedy. */
export class ConnectOptionsError extends Error {
  override readonly name = 'ConnectOptionsError';
}
