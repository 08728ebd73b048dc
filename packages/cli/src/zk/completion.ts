/** TAB completion: commands at the beginning of a line, then options after a hyphen, and paths. */
import type { Client, Clock } from '@tskeeper/client';
import { findZkCommand, zkCommands } from '../commands/zk/table.ts';
import { shellCommands } from './shell-commands.ts';
import { hasControlCharacters } from '../terminal-escapes.ts';
import { childPath } from './subtree.ts';

/**
 * The word being typed and its completions. Without a connection no paths are offered, and
 * completion does not wait for one. Rejects if a server refuses to list them, or does not answer
 * within two seconds on the clock.
 */
export async function complete(line: string, client: Client | undefined, clock: Clock): Promise<[candidates: string[], word: string]> {
  const word = /\S*$/.exec(line)![0];
  const before = line.slice(0, line.length - word.length).trimStart();
  if (before === '') return [commandsFrom(word), word];
  if (word.startsWith('-')) return [optionsFrom(before.split(/\s/)[0]!, word), word];
  const words = wordsFor(before, word);
  if (words.length > 0) return [words, word];
  if (word.startsWith('/') && client !== undefined) return [await pathsFrom(word, client, clock), word];
  return [[], word];
}

function commandsFrom(word: string): string[] {
  const names = [...zkCommands, ...shellCommands].map(({ name }) => name).filter((name) => name.startsWith(word));
  return completeWord(names.toSorted());
}

function optionsFrom(command: string, word: string): string[] {
  const options = findZkCommand(command)?.options ?? [];
  return completeWord(options.map(({ name }) => `-${name}`).filter((option) => option.startsWith(word)));
}

/** Completions of the first argument for commands that accept a fixed set of words. */
function wordsFor(before: string, word: string): string[] {
  const [name = '', ...others] = before.trim().split(/\s+/);
  if (others.length > 0) return [];
  return completeWord((findZkCommand(name)?.completions ?? []).filter((candidate) => candidate.startsWith(word)));
}

/** After a complete word another one follows, so append a blank. */
function completeWord(candidates: string[]): string[] {
  return candidates.length === 1 ? [`${candidates[0]} `] : candidates;
}

/** How long completion waits for the server. */
const listTimeoutMs = 2000;

async function pathsFrom(word: string, client: Client, clock: Clock): Promise<string[]> {
  const slash = word.lastIndexOf('/');
  const parent = slash === 0 ? '/' : word.slice(0, slash);
  const prefix = word.slice(slash + 1);
  const children = await childrenOf(parent, client, clock);
  return (
    children
      // Completions are shown unescaped.
      .filter((name) => name.startsWith(prefix) && !hasControlCharacters(name))
      .map((name) => childPath(parent, name))
      .toSorted()
  );
}

async function childrenOf(path: string, client: Client, clock: Clock): Promise<readonly string[]> {
  const limit = new AbortController();
  const timer = clock.after(listTimeoutMs, () => limit.abort(new Error(`timed out after ${listTimeoutMs} ms listing ${path}`)));
  try {
    return (await client.getChildren(path, { signal: limit.signal })).children;
  } finally {
    clock.cancel(timer);
  }
}
