/** Extracts from a page its pieces of code, its commands, and their output. */

/** Each piece of code of a page, with its language. */
export function codeBlocksOf(page) {
  return [...page.matchAll(/^```([\w-]*)[^\n]*\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({ language, code }));
}

/** The section from a heading to the next one of the same level. */
export function sectionOf(page, heading) {
  const [, section] = page.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`the page has no section "${heading}"`);
  return section.split('\n## ')[0];
}

/** The first piece of code in a language. */
export function firstExample(page, language) {
  const piece = codeBlocksOf(page).find((each) => each.language === language);
  if (piece === undefined) throw new Error(`the page shows no \`\`\`${language}`);
  return piece.code;
}

/**
 * From a piece in the language `console`: each command after `$ `, and its output. Drops comments
 * at the end of a command.
 */
export function commandsOf(code) {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [line, ...printed] = text.split('\n');
      return { command: line.replace(/ {2,}#.*$/, ''), printed: printed.join('\n') };
    });
}

/**
 * A pattern for output on a page, in which `...` matches any text and, on its own line, any lines.
 */
export function outputPattern(printed) {
  const escaped = printed.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const pattern = escaped
    .replaceAll(/^\\\.\\\.\\\.\n/gm, '(?:.*\\n)*?')
    .replaceAll(/^\\\.\\\.\\\.$/gm, '[^]*')
    .replaceAll('\\.\\.\\.', '.*');
  return new RegExp(`^\\s*${pattern}\\s*$`);
}

/** Replaces the server's address on the page by that of the running server. */
export function withServer(text, port) {
  return text.replaceAll(/127\.0\.0\.1([: ])2181/g, `127.0.0.1$1${port}`);
}

/** Replaces the folder on the page by that of the project. */
export function withProject(text, folder) {
  return text.replaceAll('../my-app', folder);
}
