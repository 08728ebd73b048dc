/**
 * Splits a line of the shell into words by zkCli's rule: whitespace separates words, and a word
 * that begins with a quote ends at the next quote of the same kind. There are no escapes: a text
 * with both kinds of quotes cannot be typed.
 */
const wordPattern = /\s*([^"']\S*|"[^"]*"|'[^']*')\s*/g;

export function splitWords(line: string): string[] {
  return [...line.trim().matchAll(wordPattern)].map(([, text]) => text!.replace(/^(['"])([^]*)\1$/, '$2'));
}
