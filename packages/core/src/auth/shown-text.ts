/** Longer texts are cut off. */
const lengthMax = 64;

/**
 * Text of a client as the log shows it: in quotes, short, and without characters that could break a
 * line or control a terminal.
 */
export function shownText(text: string): string {
  const short = text.length > lengthMax ? `${text.slice(0, lengthMax)}...` : text;
  return JSON.stringify(short).replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}
