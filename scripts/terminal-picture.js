#!/usr/bin/env node
/**
 * `node scripts/terminal-picture.js`: creates docs/images/terminal.svg, the picture in README.md,
 * from the output of these commands. Needs bash, a build, and port 2181. Run it again when the
 * output of these commands has changed; test/terminal-picture.test.ts and `npm run newcomer` detect
 * that.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './public-packages.js';

export const picture = join(root, 'docs/images/terminal.svg');

/** The file that the picture shows first. */
export const program = `import { connect } from '@tskeeper/client';
import { TestEnsemble } from '@tskeeper/testing';

console.time('three servers serve');
const ensemble = await TestEnsemble.start({ servers: 3 });
console.timeEnd('three servers serve');
const zk = await connect(ensemble.connectString);
await zk.create('/hello', 'world');

console.time('leader killed, another leads');
await ensemble.leader.kill();
await ensemble.elected();
console.timeEnd('leader killed, another leads');
const { data } = await zk.getData('/hello', { retry: true });
console.log('/hello is still:', Buffer.from(data).toString());
await zk.close();
await ensemble.close();
`;

/** The commands, and what runs unseen before the next one. */
export const typed = [
  { line: 'cat failover.mjs' },
  { line: 'node failover.mjs' },
  { line: 'tskeeper serve --log-format text > server.log &', unseen: 'until grep -q "serving" server.log; do :; done' },
  { line: `tskeeper create /app '{"colour": "blue"}'` },
  { line: 'tskeeper get /app' },
  { line: 'echo srvr | nc 127.0.0.1 2181 | tail -2' },
  { line: `ps -o rss= -p $! | awk '{ print $1 / 1024 " MB" }'` },
  { line: 'kill $!; wait; tail -2 server.log' },
];

/** Programs that may be missing on a machine. */
const unseen = `
tskeeper() { node '${join(root, 'packages/cli/bin/tskeeper.js')}' "$@"; }
nc() { node -e 'const s = require("node:net").connect(+process.argv[2], process.argv[1]); process.stdin.pipe(s, { end: false }); s.pipe(process.stdout)' "$@"; }
`;

/** @returns {{ command?: string, text?: string }[]} */
function record() {
  const folder = mkdtempSync(join(tmpdir(), 'tskeeper-picture-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'failover.mjs'), program);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const lines = typed.map(({ line, unseen: then = '' }) => `printf '\\001%s\\n' ${quoted(line)}\n${background(line)}\n${then}`);
    const { status, stdout, stderr } = spawnSync('bash', ['-c', `${unseen}\n${lines.join('\n')}`], {
      cwd: folder,
      encoding: 'utf8',
      timeout: 60_000,
    });
    if (status !== 0 || stdout.includes('NaN')) throw new Error(`a command failed with ${status}:\n${stdout}\n${stderr}`);
    return stdout
      .trimEnd()
      .split('\n')
      .map((text) => (text.startsWith('\u0001') ? { command: text.slice(1) } : { text }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** In a function, bash would start a shell process instead of the server. */
const background = (line) => (line.endsWith('&') ? line.replace('tskeeper', `node '${join(root, 'packages/cli/bin/tskeeper.js')}'`) : line);

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function svgOf(lines) {
  const [size, lineHeight, margin, bar] = [14, 20, 22, 40];
  const columns = Math.max(...lines.map(({ command, text }) => (command === undefined ? text.length : command.length + 2)));
  const width = Math.ceil(columns * size * 0.602) + 2 * margin;
  let y = bar;
  const rows = lines.map(({ command, text }, at) => {
    y += lineHeight + (command === undefined || at === 0 ? 0 : 8);
    const spans =
      command === undefined
        ? `<tspan>${escaped(text)}</tspan>`
        : `<tspan class="prompt">$</tspan><tspan class="command"> ${escaped(command)}</tspan>`;
    return `<text x="${margin}" y="${y - 6}" xml:space="preserve">${spans}</text>`;
  });
  const height = y + margin;
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, at) => `<circle cx="${margin + 2 + at * 20}" cy="20" r="6" fill="${colour}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>tskeeper in a terminal</title>
<style>
text { font: ${size}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; fill: #b8c0cc; }
.prompt { fill: #5fd38d; }
.command { fill: #ffffff; font-weight: 600; }
</style>
<rect width="${width}" height="${height}" rx="10" fill="#16191f"/>
${dots.join('\n')}
${rows.join('\n')}
</svg>
`;
}

/** What a picture shows: each command, and what it prints. */
export function shownIn(svg) {
  const shown = [];
  for (const [, row] of svg.matchAll(/<text [^>]*>(.*)<\/text>/g)) {
    const text = row
      .replaceAll(/<[^>]*>/g, '')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
    if (row.includes('class="command"')) shown.push({ command: text.slice('$ '.length), printed: '' });
    else shown.at(-1).printed += `${text}\n`;
  }
  return shown;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(join(picture, '..'), { recursive: true });
  writeFileSync(picture, svgOf(record()));
  console.log(picture);
}
