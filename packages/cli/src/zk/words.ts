/**
 * Splits a line of the shell into words by zkCli's rule: whitespace separates words, and a word
 * that begins with a quote ends at the next quote of the same kind. There are no escapes: a text
 * with both kinds of quotes cannot be typed.
 */
const word = /\s*([^"']\S*|"[^"]*"|'[^']*')\s*/g;

export function wordsOf(line: string): string[] {
  return [...line.trim().matchAll(word)].map(([, text]) => text!.replace(/^(['"])([^]*)\1$/, '$2'));
}
