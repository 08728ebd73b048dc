/**
 * A data folder that this server must not start from. The message is for an operator: one sentence that names what, where, and what to
 * do about it. Nothing has been changed in the folder.
 */
export class StorageRefused extends Error {
  override readonly name = 'StorageRefused';
}
