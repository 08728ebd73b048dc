/** Ensembles of real processes keep every acknowledged write under all faults. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { check, findingText } from '@tskeeper/simulator';
import { traceLines } from '@tskeeper/simulator/internal';
import { describe, expect, it } from 'vitest';
import { buildDiskFaults } from '@tskeeper/harness';
import { type ChaosRunReport, runChaos } from './chaos-run.ts';
import { type FaultName, faults } from './faults.ts';
import { checkAppendLog } from './append-log.ts';
import { KillSchedule } from './fault-context.ts';

/**
 * Episodes run until there have been this many SIGKILLs, and this many acknowledged lines of the
 * ledger.
 */
const kills = Number(process.env['TSKEEPER_CHAOS_KILLS'] ?? 8);
const writes = Number(process.env['TSKEEPER_CHAOS_WRITES'] ?? 2000);
const seed = Number(process.env['TSKEEPER_SEED'] ?? 1);
/** At least two: the second one has the faults that the first one left out. */
const runsMin = 2;
/** A fault may by chance have no effect: this many more episodes are run for the missing ones. */
const extraRunsMax = 4;
/** Number of faults in an episode, each once. */
const faultsPerRun = 10;
const names = Object.keys(faults) as FaultName[];
/** Longer evidence is in the file that the message names. */
const evidenceMax = 12;

const kinds = ['kill of leader', 'kill of all', 'kill of any'] as const;

/** Events that must have happened. */
const marks = [
  ...names.map((name) => `fault ${name}`),
  'the leader was killed',
  'a digest was the same on two servers',
  'a call to the disk felt full',
  'a call to the disk felt syncFails',
  'a call to the disk felt writeFails',
  'a call to the disk felt slowSyncs',
];

/** One episode has half of the faults, and the next one the other half; both have SIGKILL. */
function faultsOf(run: number): FaultName[] {
  const half = names.filter((name, index) => name !== 'kill' && (index + (run >> 1)) % 2 === run % 2);
  return ['kill', 'kill', 'kill', ...half];
}

class Tally {
  readonly marks = new Map<string, number>();
  runs = 0;
  sigkills = 0;
  acknowledged = 0;
  readBack = 0;
  txns = 0;
  seconds = 0;
  unexpectedExits = 0;

  add({ marks: struck, sigkills, acknowledged, readBack, txns, seconds }: ChaosRunReport): void {
    this.runs++;
    for (const [mark, count] of struck) this.marks.set(mark, this.count(mark) + count);
    this.sigkills += sigkills;
    this.acknowledged += acknowledged;
    this.readBack += readBack;
    this.txns += txns;
    for (const each of seconds) this.seconds += each;
  }

  count(mark: string): number {
    return this.marks.get(mark) ?? 0;
  }

  get kills(): number {
    return kinds.reduce((sum, kind) => sum + this.count(kind), 0);
  }

  get faultsInjected(): number {
    return names.reduce((sum, name) => sum + this.count(`fault ${name}`), 0);
  }

  text(): string {
    const shares = kinds.map((kind) => `${this.count(kind)} ${kind.slice('kill '.length)}`).join(', ');
    return [
      `${this.runs} episodes in ${Math.round(this.seconds)} s: ${this.faultsInjected} faults struck; ${this.kills} kills (${shares}), ${this.sigkills} processes killed in all`,
      `${this.txns} txns; ${this.acknowledged} acknowledged lines, read back ${this.readBack} times one by one`,
      [...this.marks]
        .filter(([mark]) => !mark.startsWith('kill of'))
        .map(([mark, count]) => `${mark}: ${count}`)
        .join('; '),
    ].join('\n');
  }
}

describe('an ensemble of real processes', () => {
  it(`keeps every acknowledged write once, and every living session, during ${kills} kills and all other faults`, async () => {
    const diskFaults = await buildDiskFaults();
    const schedule = new KillSchedule(seed);
    const tally = new Tally();
    let last: ChaosRunReport | undefined;
    const missing = () => marks.filter((mark) => tally.count(mark) === 0);
    const isDone = () => tally.runs >= runsMin && tally.kills >= kills && tally.acknowledged >= writes;
    for (let more = extraRunsMax; !isDone() || (missing().length > 0 && more > 0);) {
      if (isDone()) more--;
      const number = tally.runs;
      const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-chaos-'));
      // Every third episode has five servers, of which one is an observer at times.
      const servers = number % 3 === 1 ? 5 : 3;
      const observers = servers === 5 && number % 2 === 0 ? 1 : 0;
      const options = {
        seed: seed * 1000 + number,
        folder,
        servers,
        observers,
        faultCount: faultsPerRun,
        faults: faultsOf(number),
        kills: schedule,
        diskFaults,
      };
      const report = await runChaos(options);
      tally.add(report);
      last = report;
      if (report.findings.length > 0) {
        const story = path.join(folder, 'story.txt');
        await writeFile(story, `${[...report.findings.map(findingText), ...traceLines(report.recording)].join('\n')}\n`);
        const evidence = report.findings.slice(0, evidenceMax).map((finding) => findingText(finding).slice(0, 600));
        throw new Error(
          `episode ${number} (${servers} servers): ${report.findings.length} findings\n${evidence.join('\n')}\nall that happened: ${story}`,
        );
      }
      console.log(
        `episode ${number}: ${servers} servers, ${report.txns} txns, ${report.acknowledged} lines, ${report.sigkills} killed; ${report.seconds.map(Math.round).join(' + ')} s`,
      );
      await rm(folder, { recursive: true, force: true });
    }
    console.log(tally.text());
    expect(missing()).toEqual([]);
    expect(undetectedTampering(last!)).toEqual([]);
  });

  it('is reported as faulty when a line is lost, repeated or written by no client', () => {
    const acknowledged = new Map([['/ledger/n-1', 'a']]);
    const sent = new Set(['a', 'b']);
    expect(checkAppendLog(acknowledged, sent, new Map([['/ledger/n-1', 'a']]))).toEqual([]);
    expect(checkAppendLog(acknowledged, sent, new Map())).toHaveLength(1);
    expect(checkAppendLog(acknowledged, sent, new Map([['/ledger/n-1', 'b']]))).toHaveLength(1);
    expect(
      checkAppendLog(
        acknowledged,
        sent,
        new Map([
          ['/ledger/n-1', 'a'],
          ['/ledger/n-2', 'a'],
        ]),
      ),
    ).toHaveLength(1);
    expect(
      checkAppendLog(
        acknowledged,
        sent,
        new Map([
          ['/ledger/n-1', 'a'],
          ['/ledger/n-2', 'c'],
        ]),
      ),
    ).toHaveLength(1);
  });
});

/** The canary: changes of a recording that must be detected. Returns those that were not. */
function undetectedTampering({ recording }: ChaosRunReport): string[] {
  const missed: string[] = [];
  const at = recording.log.findIndex(({ logged }) => logged.txn.kind === 'create' && logged.txn.path.startsWith('/ledger/'));
  const [lost] = recording.log.splice(at, 1);
  if (check(recording).length === 0) missed.push('a txn that is lost');
  recording.log.splice(at, 0, lost!);
  const cnxn = recording.cnxns.find(({ items }) => items.some((item) => item.kind === 'event'))!;
  const event = cnxn.items.findIndex((item) => item.kind === 'event');
  cnxn.items.splice(event, 0, cnxn.items[event]!);
  if (check(recording).length === 0) missed.push('an event that is delivered twice');
  cnxn.items.splice(event, 1);
  if (check(recording).length > 0) missed.push('nothing, and it was found wrong');
  return missed;
}
