/**
 * A line of the shell, cut into words by zkCli's rule: white space separates, and a word that begins with a quote reaches to the next one
 * of its kind. There are no escapes: a text with both kinds of quotes cannot be typed.
 */
const word = /\s*([^"']\S*|"[^"]*"|'[^']*')\s*/g;

export function wordsOf(line: string): string[] {
  return [...line.trim().matchAll(word)].map(([, text]) => text!.replace(/^(['"])([^]*)\1$/, '$2'));
}
