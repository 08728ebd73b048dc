/** `at position 7`, if the engine reports it. The rest of its message may quote the text. */
const position = /at position \d+/;

/**
 * Parses JSON. Throws a SyntaxError, `not JSON at position 7`, that contains nothing of the text:
 * the error of JSON.parse quotes it, and a password in it would appear in every log of the error.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const [where] = position.exec((error as Error).message) ?? [];
    throw new SyntaxError(where === undefined ? 'not JSON' : `not JSON ${where}`);
  }
}
