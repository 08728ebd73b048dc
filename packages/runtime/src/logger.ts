import type { FieldsAt } from './log-events.ts';

/**
 * The log of a server: each call writes one sentence, and for programs the name of an event and its
 * fields (`docs/reference/logging.md` lists them). `console` has this shape.
 */
export interface Logger {
  debug(message: string, fields: FieldsAt<'debug'>): void;
  info(message: string, fields: FieldsAt<'info'>): void;
  warn(message: string, fields: FieldsAt<'warn'>): void;
  error(message: string, fields: FieldsAt<'error'>): void;
}

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
