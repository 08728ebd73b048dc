/**
 * A data folder from which this server must not start. The message is for an operator: one sentence
 * that names what, where, and what to do about it. Nothing in the folder has been changed.
 */
export class StorageRefused extends Error {
  override readonly name = 'StorageRefused';
}
