/**
 * Texts as JSON. What JSON.parse throws quotes the text, which may hold a password and would stand in every log of the error; so where the text stops being JSON is
 * looked for here once more, and the error has that position alone.
 */

/** Throws a SyntaxError, `not JSON at position 7`: of the first value, sign or string that cannot stand there, or of the end of a text that ends too early. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(`not JSON at position ${faultIn(text)}`);
  }
}

const space = /[\t\n\r ]*/y;
// oxlint-disable-next-line no-control-regex -- they are what a string of JSON cannot have
const string = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const plain = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)/y;

/** Of a text that is not JSON. It keeps what is open in an array, since a text may be nested more deeply than calls can be. */
function faultIn(text: string): number {
  const open: ('[' | '{')[] = [];
  let at = 0;
  const take = (form: RegExp): boolean => {
    form.lastIndex = at;
    const [found] = form.exec(text) ?? [];
    at += found?.length ?? 0;
    return found !== undefined;
  };
  const takeSign = (sign: string): boolean => {
    if (text[at] !== sign) return false;
    at++;
    return true;
  };
  /** A name with its colon, in an object; nothing in an array. */
  const takeName = (): boolean => {
    if (open.at(-1) !== '{') return true;
    if (!take(string)) return false;
    take(space);
    return takeSign(':');
  };
  let mayClose = false;
  for (;;) {
    take(space);
    const isClosed = mayClose && takeSign(open.at(-1) === '{' ? '}' : ']');
    if (isClosed) open.pop();
    else {
      if (!takeName()) return at;
      take(space);
      const sign = text[at];
      if (sign === '[' || sign === '{') {
        open.push(sign);
        at++;
        mayClose = true;
        continue;
      }
      if (!take(string) && !take(plain)) return at;
    }
    // After a value: the end of what is open, as often as it comes, or a comma.
    for (take(space); open.length > 0 && takeSign(open.at(-1) === '{' ? '}' : ']'); take(space)) open.pop();
    if (open.length === 0 || !takeSign(',')) return at;
    mayClose = false;
  }
}
