/**
 * `tskeeper txnlog verify`: checks that logs hold every acknowledged txn.
 *
 * Each log is read and classified as a starting server does (runtime/storage/log-condition.ts),
 * txns must follow each other from log to log without a gap, and if there is a state to start from,
 * the txns are replayed and the tree must have the digests in the txns.
 */
import { counterOf, epochOf, formatZxid, type TxnLogEntry, type Zxid } from '@tskeeper/protocol';
import {
  afterZxid,
  damageOf,
  describeLogEnd,
  isTruncated,
  isUnreadable,
  logConditionOf,
  type LogCondition,
  lostLogs,
  markMismatch,
  type OrphanMark,
} from '@tskeeper/runtime/internal';
import type { LogEnd } from '@tskeeper/runtime';
import { exitCodes } from '../exit-codes.ts';
import type { FoundFile } from './find-files.ts';
import { endText, type LogFile, readLogFile } from './log-files.ts';
import type { Output } from './output.ts';
import { loadSnapshotFile, Replay } from './snapshot-files.ts';
import { count } from './views.ts';

export interface TxnlogVerifyOptions {
  /** Snapshots from which the replay may start, oldest first; undefined: do not compare digests. */
  readonly snapshots: readonly FoundFile[] | undefined;
  /** Whether the first log is the oldest of its folder. */
  readonly firstIsOldest: boolean;
  /** Whether the last log is the newest of its folder. */
  readonly lastIsNewest: boolean;
  /** Marks in the folder of the last log whose logs are missing. */
  readonly orphanMarks: readonly OrphanMark[];
  /** The last txn before the newest snapshot; 0 without a snapshot. */
  readonly snapshotZxid: Zxid;
  readonly txnBytesMax: number;
}

export type VerifyResult = 'sound' | 'torn tail' | 'damaged';

interface LogReport {
  readonly file: string;
  readonly txns: number;
  readonly firstZxid: string | null;
  readonly lastZxid: string | null;
  readonly endOffset: number;
  readonly end: string;
  readonly verdict: LogCondition;
  /** Sentences; each one means that the logs are damaged. */
  readonly damage: readonly string[];
  /** Sentences that do not mean damage. */
  readonly notes: readonly string[];
}

interface DigestReport {
  /**
   * The snapshot from which the replay started; `the empty tree` for logs that begin with the first
   * txn of all; null without a start.
   */
  readonly from: string | null;
  readonly compared: number;
  /** The first txn whose digest the tree did not have. */
  readonly firstMismatch: string | null;
}

export async function verifyTxnlogs(logs: readonly FoundFile[], options: TxnlogVerifyOptions, output: Output): Promise<number> {
  const verification = new Verification(options);
  for (const [index, log] of logs.entries()) await verification.verifyLog(log, index === logs.length - 1);
  const result = verification.result;
  if (output.format === 'json') {
    output.json({
      verdict: result,
      logs: verification.reports,
      digests: verification.digests,
      remedies: result === 'damaged' ? remedies : null,
    });
  } else {
    for (const report of verification.reports) {
      const range = report.firstZxid === null ? '' : `, ${report.firstZxid} to ${report.lastZxid}`;
      output.line(`${report.file}: ${count(report.txns, 'txn')}${range}; ends at offset ${report.endOffset}: ${report.end}`);
      for (const sentence of report.damage) output.line(`  DAMAGE: ${sentence}`);
      for (const sentence of report.notes) output.line(`  note: ${sentence}`);
    }
    output.line(digestLine(verification.digests));
    output.line(result);
    if (result === 'damaged') {
      output.line(`  a server of an ensemble with another voter: ${remedies.ensemble}`);
      output.line(`  a server that stands alone, or is the only voter of its ensemble: ${remedies.standalone}`);
    }
  }
  await output.flush();
  return result === 'sound' ? exitCodes.done : result === 'torn tail' ? exitCodes.tornTail : exitCodes.failed;
}

/**
 * Logs do not say what kind of server wrote them. Moving data aside would lose data that no other
 * server must have.
 */
const remedies = {
  ensemble:
    'stop it, move its version-2 folders (in dataDir, and in dataLogDir if that is set) aside, keep myid, and start it again: it fetches everything from its leader, provided that a quorum of the other servers runs with its data intact. Do not cut its logs: the txns that it acknowledged may be committed.',
  standalone:
    'do not move its data aside, because no other server is guaranteed to have it; restore the file from a backup. If you can lose the txns after the damage, start the server: its error message says where to cut the file.',
} as const;

/** A data folder with a snapshot and no log has nothing that could be damaged. */
export async function verifyUnlogged(snapshot: FoundFile, output: Output): Promise<number> {
  if (output.format === 'json') {
    output.json({ verdict: 'sound' satisfies VerifyResult, logs: [], digests: null });
  } else {
    output.line(`no log: a server that has logged nothing since ${snapshot.name} has none`);
    output.line(digestLine(null));
    output.line('sound' satisfies VerifyResult);
  }
  await output.flush();
  return exitCodes.done;
}

function digestLine(digests: DigestReport | null): string {
  if (digests === null) return 'digests: not compared';
  if (digests.from === null) return 'digests: not compared, because no snapshot leads to these logs';
  if (digests.firstMismatch !== null)
    return `digests: DAMAGE: replayed from ${digests.from}, the tree does not have the digest of ${digests.firstMismatch}`;
  return `digests: replayed from ${digests.from}, ${digests.compared} compared, all agree`;
}

class Verification {
  readonly reports: LogReport[] = [];
  readonly #options: TxnlogVerifyOptions;
  #lastZxid: Zxid | undefined;
  #lastFile = '';
  #replay: Replay | undefined;
  #replayFrom: string | null = null;
  #compared = 0;
  #firstMismatch: Zxid | undefined;
  #wasTruncatedElsewhere = false;

  constructor(options: TxnlogVerifyOptions) {
    this.#options = options;
  }

  get digests(): DigestReport | null {
    if (this.#options.snapshots === undefined) return null;
    const firstMismatch = this.#firstMismatch === undefined ? null : formatZxid(this.#firstMismatch);
    return { from: this.#replayFrom, compared: this.#compared, firstMismatch };
  }

  get result(): VerifyResult {
    if (this.#firstMismatch !== undefined || this.reports.some(({ damage }) => damage.length > 0)) return 'damaged';
    const last = this.reports.at(-1)?.verdict;
    return last === undefined || last === 'whole' ? 'sound' : 'torn tail';
  }

  async verifyLog(log: FoundFile, isLast: boolean): Promise<void> {
    const damage: string[] = [];
    const notes: string[] = [];
    const first = await this.#firstZxidOf(log);
    if (this.reports.length === 0 && first !== undefined) await this.#beginReplay(first);
    if (first !== undefined && log.zxid >= 0 && first !== log.zxid) {
      notes.push(`its first txn is ${formatZxid(first)}, not the one in its name`);
    }
    const read = await readLogFile(log, this.#options.txnBytesMax, {
      txn: (txn, offset) => {
        this.#checkZxidOrder(txn.header.zxid, offset, log, damage, notes);
        this.#apply(txn);
      },
      unreadable: (zxid, offset, reason) => {
        this.#checkZxidOrder(zxid, offset, log, damage, notes);
        this.#replay = undefined;
        damage.push(`cannot read the txn ${formatZxid(zxid)} at offset ${offset} (${reason}), although its checksum is right`);
      },
    });
    const { end } = read;
    const verdict = this.#verdictOf(read, isLast, notes);
    if (isLast) this.#findLostLogs(end, damage);
    if (verdict === 'lost' || verdict === 'damaged') {
      this.#replay = undefined;
      const markText =
        verdict === 'lost'
          ? `, although txns up to ${formatZxid(read.mark?.lastZxid ?? 0)} at offset ${read.mark?.offset} were safe on disk`
          : '';
      const found = damageOf(end, verdict === 'lost' ? read.mark : undefined);
      damage.push(`at offset ${found.offset}, ${afterZxid(found)}: ${found.reason}${markText}${await this.#txnsAfterDamage(log)}`);
    } else if (verdict !== 'whole') {
      notes.push(`${tailTexts[verdict]} at offset ${end.offset}, ${afterZxid(end)}: ${describeLogEnd(end)}`);
    }
    this.reports.push({
      file: log.name,
      txns: end.count,
      firstZxid: first === undefined ? null : formatZxid(first),
      lastZxid: end.lastZxid === undefined ? null : formatZxid(end.lastZxid),
      endOffset: end.offset,
      end: endText(end),
      verdict,
      damage,
      notes,
    });
  }

  /** As in recovery: a mark that does not match its log is ignored. */
  #verdictOf({ end, allZero, mark, markMatches }: LogFile, isLast: boolean, notes: string[]): LogCondition {
    const misfit = mark === undefined ? undefined : markMismatch(mark, end, markMatches);
    if (misfit !== undefined) notes.push(`it ${misfit}; the mark is ignored`);
    if (misfit !== undefined && isTruncated(mark!, end)) this.#wasTruncatedElsewhere = true;
    return logConditionOf(end, misfit === undefined ? mark : undefined, isLast && this.#options.lastIsNewest, allZero);
  }

  /** As in recovery: the mark of a missing log may show that later txns existed. */
  #findLostLogs(end: LogEnd, damage: string[]): void {
    const { orphanMarks, snapshotZxid, lastIsNewest } = this.#options;
    if (!lastIsNewest || this.#wasTruncatedElsewhere) return;
    const lost = lostLogs(orphanMarks, Math.max(end.lastZxid ?? 0, this.#lastZxid ?? 0, snapshotZxid));
    if (lost === undefined) return;
    damage.push(
      `txns are missing after it: ${lost.logs} ${lost.are} gone, and ${lost.marks} ${lost.say} that txns up to ${formatZxid(lost.lastZxid)} were safe on disk`,
    );
  }

  /** What follows the first damage. A tail that a crash has torn is followed by nothing. */
  async #txnsAfterDamage(log: FoundFile): Promise<string> {
    let seen = 0;
    let afterDamage = 0;
    let last: Zxid | undefined;
    await readLogFile(log, this.#options.txnBytesMax, {
      txn: ({ header }) => {
        if (seen > 0) afterDamage++;
        last = header.zxid;
      },
      unreadable: () => undefined,
      damaged: () => {
        seen++;
      },
    });
    if (afterDamage === 0 || last === undefined) return '';
    // Later logs continue after these txns, so they have no gap of their own.
    this.#lastZxid = Math.max(this.#lastZxid ?? 0, last);
    return `; ${count(afterDamage, 'whole txn')} up to ${formatZxid(last)} after it`;
  }

  /** zxids grow by one, and an epoch begins at 1. */
  #checkZxidOrder(zxid: Zxid, offset: number, log: FoundFile, damage: string[], notes: string[]): void {
    const last = this.#lastZxid;
    const lastFile = this.#lastFile;
    this.#lastZxid = last === undefined ? zxid : Math.max(last, zxid);
    this.#lastFile = log.name;
    if (last === undefined || zxid === last + 1 || (epochOf(zxid) > epochOf(last) && counterOf(zxid) === 1)) return;
    if (zxid <= last) {
      notes.push(`${formatZxid(zxid)} at offset ${offset} follows ${formatZxid(last)}`);
      return;
    }
    this.#replay = undefined;
    const place = lastFile === log.name ? '' : `, the last of ${lastFile}`;
    damage.push(`txns are missing: ${formatZxid(zxid)} at offset ${offset} follows ${formatZxid(last)}${place}`);
  }

  /**
   * Starts from a snapshot after which the logs continue without a gap; a new server's logs
   * continue after an empty tree.
   */
  async #beginReplay(first: Zxid): Promise<void> {
    const { snapshots } = this.#options;
    if (snapshots === undefined) return;
    for (const snapshot of this.#basesOf(first, snapshots)) {
      try {
        const loaded = await loadSnapshotFile(snapshot);
        this.#replay = new Replay({ loaded, zxid: snapshot.zxid });
        this.#replayFrom = snapshot.name;
        return;
      } catch (error) {
        if (!isUnreadable(error)) throw error;
      }
    }
    if (first !== 1) return;
    this.#replay = new Replay();
    this.#replayFrom = 'the empty tree';
  }

  /**
   * Oldest snapshots first, since the replay then covers the most txns. The first txn of an epoch
   * follows the last txn of the epoch before, in a fresh ensemble the empty snapshot of zxid 0. If
   * there is no older log, that is the newest snapshot before it.
   */
  #basesOf(first: Zxid, snapshots: readonly FoundFile[]): FoundFile[] {
    const following = snapshots.filter(({ zxid }) => zxid >= first - 1);
    if (counterOf(first) !== 1 || !this.#options.firstIsOldest) return following;
    const before = snapshots.findLast(({ zxid }) => zxid >= 0 && epochOf(zxid) < epochOf(first));
    return before === undefined ? following : [before, ...following];
  }

  #apply(txn: TxnLogEntry): void {
    const replay = this.#replay;
    if (replay === undefined || txn.header.zxid <= replay.lastZxid) return;
    const agrees = replay.apply(txn);
    if (agrees === undefined) return;
    this.#compared++;
    if (agrees) return;
    // After a mismatch no later digest can agree.
    this.#firstMismatch ??= txn.header.zxid;
    this.#replay = undefined;
  }

  async #firstZxidOf(log: FoundFile): Promise<Zxid | undefined> {
    let first: Zxid | undefined;
    const stop = new Error('the first is enough');
    const found = (zxid: Zxid): never => {
      first = zxid;
      throw stop;
    };
    try {
      await readLogFile(log, this.#options.txnBytesMax, { txn: ({ header }) => found(header.zxid), unreadable: (zxid) => found(zxid) });
    } catch (error) {
      if (error !== stop) throw error;
    }
    return first;
  }
}

const tailTexts = {
  torn: 'a torn tail, which the next start cuts off; nothing in it was acknowledged,',
  unwritten: 'an incomplete entry, which by the rules of ZooKeeper was never written,',
  nothing: 'an empty log, whose server stopped while creating it and whose next start removes it,',
} as const;
