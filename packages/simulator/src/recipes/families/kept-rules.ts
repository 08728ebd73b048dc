/**
 * What must be true of znodes that are kept across sessions (kept):
 *
 * - what a keeper is told to be in its znode is, and the znode is of a session of its own;
 * - when all was well each keeper has one, of its present session, with its latest data.
 */
import type { Millis, SessionId } from '@tskeeper/protocol';
import type { History, ZnodeLife } from '../history.ts';

/** The keeper was told that its znode is there, and says that. */
export interface ToldOfKept {
  readonly process: string;
  /** All that the process has had by then, and later. */
  readonly sessions: ReadonlySet<SessionId>;
  readonly path: string;
  readonly text: string;
  readonly seenZxid: bigint;
}

/** What a keeper believes when nothing has gone wrong for a while. */
export interface KeptInTheEnd {
  readonly process: string;
  readonly sessions: ReadonlySet<SessionId>;
  readonly path: string;
  readonly session: SessionId;
  /** What it was given last, and what it perhaps was since. */
  readonly may: ReadonlySet<string>;
  readonly atMs: Millis;
}

export interface KeptRules {
  readonly parent: string;
  /** Then whoever has the name has the znode. */
  readonly outlivesSessions: boolean;
}

export function judgeToldOfKept(told: readonly ToldOfKept[], { outlivesSessions }: KeptRules, history: History): string[] {
  return told.flatMap(({ process, sessions, path, text, seenZxid }) => {
    const writes = history.writes.filter((each) => each.path === path && wordOf(each.data) === text && each.zxid <= seenZxid);
    if (writes.length === 0) return [`kept: ${process} was told at ${seenZxid} that ${path} says ${text}, which it never did by then`];
    const lives = history.lives.filter((each) => each.path === path);
    const written = writes.map(({ zxid }) => lives.find((life) => life.czxid <= zxid && life.goneZxid > zxid));
    // One of another session, which was made in its place just then, may have been written to ahead of its own.
    if (outlivesSessions || written.some((life) => life !== undefined && sessions.has(life.session))) return [];
    return [`kept: ${process} was told at ${seenZxid} that ${path} is there, which is of session ${written[0]?.session}`];
  });
}

export function judgeKeptInTheEnd(last: readonly KeptInTheEnd[], { parent, outlivesSessions }: KeptRules, history: History): string[] {
  return last.flatMap(({ process, sessions, path, session, may, atMs }) => {
    const says = (at: string) => wordOf(history.writes.findLast((write) => write.path === at && write.atMs < atMs)!.data);
    // A log says when in whole milliseconds.
    const there = history.below(parent).filter(({ madeMs, goneMs }) => madeMs < atMs && goneMs >= Math.floor(atMs));
    // What an earlier keeper of this process kept goes in the background, where it was closed without a connection.
    const isOwn = (life: ZnodeLife) => sessions.has(life.session) && (life.path === path || may.has(says(life.path)));
    const own = there.filter((life) => (outlivesSessions ? life.path === path : isOwn(life)));
    if (own.length !== 1 || own[0]!.path !== path || (!outlivesSessions && own[0]!.session !== session))
      return [`kept: ${process} keeps ${path} in session ${session}, and there is ${own.map((each) => each.path).join(', ') || 'none'}`];
    return may.has(says(path)) ? [] : [`kept: ${path} of ${process} says ${says(path)}, and is to say ${[...may].join(' or ')}`];
  });
}

/** What a znode says, whatever stands around it. */
export function wordOf(data: string): string {
  return /text-\d+/.exec(data)?.[0] ?? 'nothing';
}
