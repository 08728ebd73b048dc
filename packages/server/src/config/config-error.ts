/** An operator's slip. The message is one sentence that names the place, the key and the remedy; it is shown without a stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
