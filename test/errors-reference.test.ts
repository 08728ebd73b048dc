/**
 * Compares docs/reference/errors.md with the error codes, and with those that the sources of the
 * server answer.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { op } from '@tskeeper/client';
import { ErrorCode } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const page = readFileSync(join(root, 'docs/reference/errors.md'), 'utf8');

function rowsOf(text: string): { code: number; name: string; when: string }[] {
  return [...text.matchAll(/^\| (-?\d+) \| `(\w+)` \| (.+) \|$/gm)].map(([, code, name, when]) => {
    return { code: Number(code), name: name!, when: when! };
  });
}

function answeredIn(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => [...text.matchAll(/\bErrorCode\.(\w+)/g)].map(([, name]) => name!)))].sort();
}

function sources(): string[] {
  return ['core', 'runtime'].flatMap((name) => {
    const folder = join(root, 'packages', name, 'src');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    return files.map((file) => readFileSync(join(folder, file), 'utf8'));
  });
}

describe('docs/reference/errors.md', () => {
  it('lists every code by number and name, and no other', () => {
    const codes = Object.entries(ErrorCode).map(([name, code]) => ({ code, name }));
    expect(rowsOf(page).map(({ code, name }) => ({ code, name }))).toEqual(codes);
    expect(rowsOf(page.replace('-101', '-109')).map(({ code, name }) => ({ code, name }))).not.toEqual(codes);
  });

  it('lists as BadArguments of the client the errors that are not a TypeError of its calls', () => {
    const [, row] = /^\| `BadArguments` \| (.+) \|$/m.exec(page)!;
    const [refused, misused] = row!.split('. The client sent nothing. ');
    expect(refused).not.toContain('mode');
    expect(misused).toMatch(/a mode that does not exist.*TypeError/);
    expect(() => op.create('/a', 'x', { mode: 'CONTAINER' as never })).toThrow(TypeError);
  });

  it('marks the codes that the server does not use as "never", and no other', () => {
    const answered = rowsOf(page).filter(({ when }) => !when.startsWith('Never'));
    expect(answered.map(({ name }) => name).sort()).toEqual(answeredIn(sources()));
    expect(answeredIn(['fail(ErrorCode.NoNode) || ErrorCode.Ok', 'ErrorCode.NoNode'])).toEqual(['NoNode', 'Ok']);
  });
});
