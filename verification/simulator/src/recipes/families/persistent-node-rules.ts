/**
 * Rules for znodes that are kept across sessions (kept):
 *
 * - the text that a keeper observes in its znode was written, and the znode belongs to one of its
 *   sessions;
 * - after all faults each keeper has one znode, of its current session, with its latest data.
 */
import type { Millis, SessionId } from '@tskeeper/protocol';
import type { ZnodeHistory, ZnodeLife } from '../znode-history.ts';

/** A keeper has observed its znode with this text. */
export interface ReportedNode {
  readonly process: string;
  /** All sessions of the process, also later ones. */
  readonly sessions: ReadonlySet<SessionId>;
  readonly path: string;
  readonly text: string;
  readonly seenZxid: bigint;
}

/** What a keeper believes after a while without faults. */
export interface FinalNode {
  readonly process: string;
  readonly sessions: ReadonlySet<SessionId>;
  readonly path: string;
  readonly session: SessionId;
  /** The last text it was given, and those it may have been given since. */
  readonly allowedTexts: ReadonlySet<string>;
  readonly atMs: Millis;
}

export interface PersistentNodeRules {
  readonly parent: string;
  /** If true, the znode with the name is the keeper's. */
  readonly outlivesSessions: boolean;
}

export function checkReportedNodes(
  received: readonly ReportedNode[],
  { outlivesSessions }: PersistentNodeRules,
  history: ZnodeHistory,
): string[] {
  return received.flatMap(({ process, sessions, path, text, seenZxid }) => {
    const writes = history.writes.filter((each) => each.path === path && textIn(each.data) === text && each.zxid <= seenZxid);
    if (writes.length === 0) return [`kept: ${process} observed at ${seenZxid} that ${path} has ${text}, which was never written by then`];
    const lives = history.lives.filter((each) => each.path === path);
    const written = writes.map(({ zxid }) => lives.find((life) => life.czxid <= zxid && life.deletedZxid > zxid));
    // A znode of another session, created in its place just then, may have been written before its
    // own.
    if (outlivesSessions || written.some((life) => life !== undefined && sessions.has(life.session))) return [];
    return [`kept: ${process} observed at ${seenZxid} that ${path} exists, but it belongs to session ${written[0]?.session}`];
  });
}

export function checkFinalNodes(
  last: readonly FinalNode[],
  { parent, outlivesSessions }: PersistentNodeRules,
  history: ZnodeHistory,
): string[] {
  return last.flatMap(({ process, sessions, path, session, allowedTexts, atMs }) => {
    const says = (at: string) => textIn(history.writes.findLast((write) => write.path === at && write.atMs < atMs)!.data);
    // The log has whole milliseconds.
    const there = history.childrenOf(parent).filter(({ createdMs, deletedMs }) => createdMs < atMs && deletedMs >= Math.floor(atMs));
    // A znode that an earlier keeper of this process kept is deleted in the background if it was
    // closed without a connection.
    const isOwn = (life: ZnodeLife) => sessions.has(life.session) && (life.path === path || allowedTexts.has(says(life.path)));
    const own = there.filter((life) => (outlivesSessions ? life.path === path : isOwn(life)));
    if (own.length !== 1 || own[0]!.path !== path || (!outlivesSessions && own[0]!.session !== session))
      return [`kept: ${process} keeps ${path} in session ${session}, but there is ${own.map((each) => each.path).join(', ') || 'none'}`];
    return allowedTexts.has(says(path))
      ? []
      : [`kept: ${path} of ${process} has ${says(path)}, expected ${[...allowedTexts].join(' or ')}`];
  });
}

/** The text in the data of a znode, without what surrounds it. */
export function textIn(data: string): string {
  return /text-\d+/.exec(data)?.[0] ?? 'nothing';
}
