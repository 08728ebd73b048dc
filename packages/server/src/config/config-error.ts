/**
 * A mistake in the configuration. The message is one sentence with the place, the key and the
 * remedy; it is shown without a stack.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
