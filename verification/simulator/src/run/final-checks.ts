/**
 * The end of every run. It reads the whole tree; retires all clients, after which no server may
 * hold anything of them; restarts the servers, first as they are and then without their newest
 * snapshots, and reads the tree each time; and starts from a selection of all snapshots ever
 * written.
 */
import type { Inspector } from '@tskeeper/core';
import { counterOf, type Millis } from '@tskeeper/protocol';
import { markName, VirtualDisk, type NumberedFile, numberedFiles, readLog, SeededRandom } from '@tskeeper/runtime';
import { decodeMark, markBytes } from '@tskeeper/runtime/internal';
import { RawClient } from '../clients/raw-client.ts';
import type { ServerHost } from '../world/server-host.ts';
import { snappy } from '../world/snappy.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';
import { snapshotStates } from './snapshot-states.ts';
import { isIdle, type Run } from './run.ts';
import { wrongEvictions } from './held-bytes-evictions.ts';

const snapshotsChecked = 4;
const answerMaxMs = 10_000;
/** How often a connection may be lost without a fault. */
const lostCnxnsMax = 10;
/** Ten times the limit for silence: by then there is a leader that every server follows. */
const allServingMaxMs = 10_000;
/** Longer than anything that was proposed takes. */
const quiescentMs = 350;
const slowMs = 1000;
/** Longer than two marks take, each with its delay and a slow disk. */
const marksMs = 1200;
/** How often something may happen within that time before the marks are not checked. */
const markTriesMax = 5;

export class FinalChecks {
  readonly #run: Run;
  readonly #world: VirtualWorld;
  readonly #random: SeededRandom;
  #audits = 0;

  constructor(run: Run, random: SeededRandom) {
    this.#run = run;
    this.#world = run.world;
    this.#random = random;
  }

  /**
   * `isQuiescent`: everything has become quiet. If not, that is the finding, and only the log is
   * left to check.
   */
  async run(isQuiescent: boolean): Promise<void> {
    const world = this.#world;
    if (isQuiescent) {
      for (const server of world.servers) {
        // The last txns before the silence meet slow disks: a mark may take longer to write than
        // the next one may wait.
        for (const each of world.servers) this.#run.disks.slowUntil(each, this.#run.nowMs + slowMs);
        await this.#audit(server);
      }
      // With slow disks there may be gaps without events before the end.
      await world.run(marksMs);
      await this.#quiesce();
      this.#recordStates();
      await this.#checkSyncedMarks();
      for (const actor of this.#run.actors) actor.abandon();
      await world.run(this.#sessionMaxMs());
      await this.#everySessionEnds();
      await this.#audit(this.#anyServer());
      // An auditor whose epoch ended before it received its session has a session that it does not
      // know of.
      await this.#everySessionEnds();
      this.#recordLeftovers();
      await this.#restart();
      await this.#audit(this.#anyServer());
      await this.#restart((server) => this.#loseSnapshots(server));
      await this.#audit(this.#anyServer());
      await this.#endAll();
    }
    this.#checkHeldBytesEvictions();
    await world.readLogs();
    for (const server of world.servers) {
      world.recording.snapshots.push(...(await snapshotStates(world, server, snappy, this.#random, snapshotsChecked)));
    }
  }

  /** A session without a client ends within this time. */
  #sessionMaxMs(): Millis {
    const { maxSessionTimeoutMs, tickTimeMs } = this.#world.server.core;
    return maxSessionTimeoutMs + 4 * tickTimeMs;
  }

  /** Waits for several epochs: each end of an epoch grants all sessions a full timeout again. */
  async #everySessionEnds(): Promise<void> {
    const { servers } = this.#world;
    const areGone = () => servers.every(({ process }) => process?.runtime !== undefined && sessionsAt(process.runtime.inspect) === 0);
    await this.#world.runUntil(areGone, 4 * this.#sessionMaxMs());
  }

  #anyServer(): ServerHost {
    return this.#run.anyServer();
  }

  /**
   * Reads the whole tree; the replies are compared with the model like those of every other read.
   */
  async #audit(server: ServerHost): Promise<void> {
    const world = this.#world;
    const run = this.#run;
    const name = `auditor ${++this.#audits}`;
    const auditor = new RawClient(world, new SeededRandom(this.#random.uint32()), {
      name,
      address: `10.8.0.${this.#audits}`,
      timeoutMs: 4000,
      credentials: 'alice:secret',
      server,
    });
    const isAnswered = () => world.runUntil(() => isIdle(auditor), answerMaxMs);
    if (!(await isAnswered())) {
      run.reportViolation(`${name} cannot connect`);
      return;
    }
    const waiting = ['/'];
    let lost = 0;
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      auditor.send('getData', { path, watch: false });
      auditor.send('getACL', { path });
      const listing = auditor.send('getChildren2', { path, watch: false });
      const isDone = await isAnswered();
      if (listing?.reply !== undefined) {
        const { children } = (listing.reply.body ?? { children: [] }) as { readonly children: readonly string[] };
        for (const child of children) waiting.push(path === '/' ? `/${child}` : `${path}/${child}`);
      } else if (isDone && ++lost <= lostCnxnsMax) {
        // An epoch has ended, and its servers have closed all connections.
        waiting.unshift(path);
      } else {
        run.reportViolation(`${name} got no answer about ${path}`);
        break;
      }
    }
    // An epoch may end just then.
    for (let tries = 0; tries < lostCnxnsMax && auditor.session !== 0n; tries++) {
      auditor.send('closeSession', undefined);
      await world.runUntil(() => auditor.session === 0n || auditor.cnxn === undefined, answerMaxMs);
      if (auditor.session !== 0n) await isAnswered();
    }
    auditor.abandon();
    await world.run(50);
  }

  /** Records what servers still hold after every session has ended. */
  #recordLeftovers(): void {
    for (const { name, process } of this.#world.servers) {
      const inspect = process?.runtime?.inspect;
      if (inspect === undefined) continue;
      this.#world.recording.leftovers.push({
        server: name,
        watches: inspect.watchCount(),
        sessions: sessionsAt(inspect),
        cnxns: inspect.cnxnCount(),
        ephemerals: inspect.ephemeralCount(),
        outstanding: inspect.outstandingRequests(),
      });
    }
  }

  async #restart(meanwhile: (server: ServerHost) => void = () => undefined): Promise<void> {
    const { servers } = this.#world;
    for (const server of servers) await server.stop();
    for (const server of servers) meanwhile(server);
    for (const server of servers) await server.start();
    if (await this.#world.runUntil(() => this.#run.allServing, allServingMaxMs)) return;
    this.#run.reportViolation(`no leader ${allServingMaxMs} ms after all servers were restarted`);
  }

  /** Waits until everything in progress has ended. */
  async #quiesce(): Promise<void> {
    const world = this.#world;
    const { peerEvents } = world.recording;
    // A learner that its leader has dropped, for a slow disk, is silent for a while before it returns.
    const untilMs = world.clock.elapsedMs + allServingMaxMs;
    for (let seen = -1; seen !== peerEvents.length || (!this.#run.allServing && world.clock.elapsedMs < untilMs);) {
      seen = peerEvents.length;
      await world.run(quiescentMs);
    }
  }

  /**
   * While servers are quiet, every mark must reach the end of its log; otherwise damage there would
   * pass for a torn tail.
   */
  async #checkSyncedMarks(): Promise<void> {
    // Sessions expire and znodes are swept in this time too.
    const lastZxids = (): string => this.#world.servers.map(({ process }) => process?.runtime?.inspect.lastZxid()).join();
    for (let tries = 0, before = ''; before !== lastZxids(); tries++) {
      if (tries === markTriesMax) return;
      before = lastZxids();
      await this.#world.run(marksMs);
    }
    for (const server of this.#world.servers) {
      const { disk, logFolder } = server;
      const names = disk.files().flatMap((path) => (path.startsWith(`${logFolder}/`) ? [path.slice(logFolder.length + 1)] : []));
      const logs = numberedFiles(names, 'log');
      for (const log of logs) if (names.includes(markName(log.zxid))) await this.#checkSyncedMark(server, log, log === logs.at(-1));
      // An operator may restore a lost log while a start removes its mark.
      const unmarked = this.#run.marks.has('fault lostLog') ? [] : server.unmarkedLogs;
      for (const path of unmarked) this.#run.reportViolation(`${server.name} removed the mark of ${path} but kept the log`);
    }
  }

  /** The mark of an older log must lie within its log: a start reads the marks of all logs. */
  async #checkSyncedMark({ disk, logFolder, name, logEvents, process }: ServerHost, log: NumberedFile, isNewest: boolean): Promise<void> {
    const markPath = `${logFolder}/${markName(log.zxid)}`;
    // After a disk error the log has no mark any more, and the server has logged that.
    if (logEvents.some((each) => each.event === 'txnlog.mark-failed' && each.path === markPath)) return;
    const bytes = disk.contents(markPath);
    const mark = decodeMark(bytes);
    if (mark === undefined) return;
    const copy = new VirtualDisk();
    copy.putFile('/log', disk.contents(`${logFolder}/${log.name}`));
    const end = await readLog(await copy.open('/log', 'existing'), Infinity, () => undefined);
    // A txn that is in the log and not yet applied: the silence is over.
    if (end.lastZxid !== undefined && end.lastZxid > (process?.runtime?.inspect.lastZxid() ?? 0)) return;
    if (isNewest && mark.offset !== end.offset)
      this.#run.reportViolation(
        `${name} has been quiet for ${marksMs} ms, but the mark of ${log.name} is at ${mark.offset} of ${end.offset} bytes`,
      );
    if (mark.offset === end.offset && end.lastZxid !== undefined && mark.lastZxid !== end.lastZxid)
      this.#run.reportViolation(
        `${name} has a mark at the end of ${log.name} with zxid ${mark.lastZxid}, but the last txn is ${end.lastZxid}`,
      );
    // A crash during a write must leave one of the two slots intact.
    const half = markBytes / 2;
    if (isNewest && mark.sequence > 2 && [bytes.subarray(0, half), bytes.subarray(half)].some((slot) => decodeMark(slot) === undefined))
      this.#run.reportViolation(`${name} has written the mark of ${log.name} ${mark.sequence} times, always to one slot`);
  }

  /** Checks that servers closed only connections that held most. */
  #checkHeldBytesEvictions(): void {
    const { recording, servers } = this.#world;
    const cnxnsOf = new Map<string, number>();
    for (const { address } of recording.cnxns) cnxnsOf.set(address, (cnxnsOf.get(address) ?? 0) + 1);
    for (const { logLines } of servers) for (const wrong of wrongEvictions(logLines, cnxnsOf)) this.#run.reportViolation(wrong);
  }

  /** Records the state of every server of an ensemble; all must be equal now. */
  #recordStates(): void {
    if (!this.#run.isEnsemble) return;
    this.#world.recording.quiescentStates.push(
      this.#world.servers.map(({ name, process }) => {
        const inspect = process!.runtime!.inspect;
        return {
          server: name,
          lastZxid: inspect.lastZxid(),
          znodes: inspect.nodeCount(),
          bytes: inspect.approximateDataBytes(),
          ephemerals: inspect.ephemeralCount(),
          sessions: inspect.sessionCount(),
          configText: this.#world.server.isReconfigured ? inspect.ensemble()?.configText : undefined,
          role: inspect.role(),
          digests: new Map(Array.from(inspect.digests(), ({ zxid, digest }) => [zxid, digest])),
        };
      }),
    );
  }

  /**
   * Waits until servers have finished their own work, so that all have the same state when they
   * stop.
   */
  async #endAll(): Promise<void> {
    const world = this.#world;
    await this.#quiesce();
    this.#recordStates();
    if (!this.#run.isEnsemble) for (const server of world.servers) await server.stop();
    else for (const server of world.servers) server.kill();
  }

  /** Keeps one of the snapshots, so that a start has to use an older one and more of the log. */
  #loseSnapshots(server: ServerHost): void {
    const { disk, snapshotFolder } = server;
    const inFolder = disk.files().filter((path) => path.startsWith(`${snapshotFolder}/`));
    const snapshots = numberedFiles(
      inFolder.map((path) => path.slice(snapshotFolder.length + 1)),
      'snapshot',
    );
    if (snapshots.length === 0) return;
    // A snapshot named after the beginning of an epoch without a txn stays: without it a start
    // cannot determine that nothing is missing before the next log.
    const needed = snapshots.findLastIndex(({ zxid }) => zxid > 0 && counterOf(zxid) === 0);
    const kept = Math.max(needed, this.#random.below(snapshots.length));
    for (const { name } of snapshots.slice(kept + 1)) {
      server.removedFiles.set(`${snapshotFolder}/${name}`, disk.contents(`${snapshotFolder}/${name}`));
      disk.eraseFile(`${snapshotFolder}/${name}`);
    }
  }
}

function sessionsAt(inspect: Inspector): number {
  return inspect.sessionCount() + inspect.localSessionCount();
}
