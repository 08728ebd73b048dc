/**
 * Makes text from servers and their files safe for a terminal. Control characters could move the
 * cursor, set titles or type answers, and bidi overrides could make a path look like another. A
 * terminal gets them as escapes; other outputs get every byte unchanged.
 */
import { isUtf8 } from 'node:buffer';
import type { Terminal } from './terminal.ts';

/**
 * C0 except tab, line feed and a carriage return before a line feed; DEL and C1; bidi marks,
 * embeddings, overrides and isolates; line and paragraph separators; the byte order mark; tags,
 * which are invisible.
 */
const controlCharacters =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\r(?!\n)|[\u{e0000}-\u{e007f}]/gu;

/** Whether a text contains characters that control a terminal. */
export function hasControlCharacters(text: string): boolean {
  return text.search(controlCharacters) !== -1;
}

/**
 * Replaces characters that control a terminal by escapes such as `\u001b`; within JSON the escapes
 * mean the same characters.
 */
export function escapeText(text: string): string {
  return text.replace(controlCharacters, (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** The same for bytes; bytes that are not UTF-8 become `\xff`. */
export function escapeBytes(bytes: Uint8Array): Uint8Array {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isUtf8(buffer)) return Buffer.from(escapeText(buffer.toString()));
  let text = '';
  let from = 0;
  for (let at = 0; at < buffer.length;) {
    const length = characterLength(buffer, at);
    if (length === 0) {
      text += `${escapeText(buffer.toString('utf8', from, at))}\\x${buffer[at]!.toString(16).padStart(2, '0')}`;
      from = at + 1;
    }
    at += Math.max(1, length);
  }
  return Buffer.from(text + escapeText(buffer.toString('utf8', from)));
}

/** Number of bytes of the UTF-8 character at `at`; 0 if there is none. */
function characterLength(buffer: Buffer, at: number): number {
  const lead = buffer[at]!;
  if (lead < 0x80) return 1;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  return at + length <= buffer.length && isUtf8(buffer.subarray(at, at + length)) ? length : 0;
}

/** A terminal that escapes what it writes where the output is a terminal. */
export function escapingTerminal(terminal: Terminal): Terminal {
  return {
    isTty: terminal.isTty,
    errIsTty: terminal.errIsTty,
    get input() {
      return terminal.input;
    },
    get prompt() {
      return terminal.prompt;
    },
    get environment() {
      return terminal.environment;
    },
    out: (text) => terminal.out(text),
    err: (text) => terminal.err(terminal.errIsTty ? escapeText(text) : text),
    write: (bytes) => terminal.write(terminal.isTty ? escapeBytes(bytes) : bytes),
    onSignal: (callback) => terminal.onSignal(callback),
    onHangup: (callback) => terminal.onHangup(callback),
    onNpmGone: (callback) => terminal.onNpmGone(callback),
    clock: terminal.clock,
    onUncaught: (callback) => terminal.onUncaught(callback),
    exit: (code) => terminal.exit(code),
  };
}
