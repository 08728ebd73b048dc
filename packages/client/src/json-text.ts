/** `at position 7`, where the engine says so. The rest of its message may quote the text. */
const position = /at position \d+/;

/**
 * A text as JSON. Throws a SyntaxError, `not JSON at position 7`, without a word of the text: what JSON.parse throws quotes it, and a password in it would stand in
 * every log of the error.
 */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const [where] = position.exec((error as Error).message) ?? [];
    throw new SyntaxError(where === undefined ? 'not JSON' : `not JSON ${where}`);
  }
}
