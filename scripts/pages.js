/** What a page shows: its pieces of code, the commands it types, and what they print. */

/** Each piece of code of a page, with its language. */
export function piecesOf(page) {
  return [...page.matchAll(/^```([\w-]*)[^\n]*\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({ language, code }));
}

/** From a heading to the next of the same level. */
export function sectionOf(page, heading) {
  const [, section] = page.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`the page has no section "${heading}"`);
  return section.split('\n## ')[0];
}

/** The first piece of code in a language. */
export function firstExample(page, language) {
  const piece = piecesOf(page).find((each) => each.language === language);
  if (piece === undefined) throw new Error(`the page shows no \`\`\`${language}`);
  return piece.code;
}

/** Of a piece in the language `console`: each line after `$ `, and what it prints. Comments at the end of a command are for the reader. */
export function commandsOf(code) {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [line, ...printed] = text.split('\n');
      return { command: line.replace(/ {2,}#.*$/, ''), printed: printed.join('\n') };
    });
}

/** Matches what a page says is printed, in which `...` is any text, and on a line by itself any lines. */
export function worded(printed) {
  const escaped = printed.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const pattern = escaped
    .replaceAll(/^\\\.\\\.\\\.\n/gm, '(?:.*\\n)*?')
    .replaceAll(/^\\\.\\\.\\\.$/gm, '[^]*')
    .replaceAll('\\.\\.\\.', '.*');
  return new RegExp(`^\\s*${pattern}\\s*$`);
}

/** With the address of the server that is there, for the one that the page has. */
export function withServer(text, port) {
  return text.replaceAll(/127\.0\.0\.1([: ])2181/g, `127.0.0.1$1${port}`);
}

/** With the folder of the project that is there. */
export function withProject(text, folder) {
  return text.replaceAll('../my-app', folder);
}
