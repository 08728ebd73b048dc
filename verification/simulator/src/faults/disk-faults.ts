/**
 * Disk faults. A server that meets an error must end and send nothing more; the disk works again
 * when it restarts.
 */
import type { Fault } from './fault.ts';

export const diskError: Fault = {
  id: 'F9, F10',
  description: 'one disk call fails with EIO or ENOSPC, at once or at the next fsync, with part of the bytes written',
  inject(run, random) {
    const server = run.anyServer();
    const { disk } = server;
    if (disk.fault !== undefined) return;
    const from = disk.calls + random.below(30);
    const onlyLog = random.below(2) === 0;
    const code = random.below(2) === 0 ? 'EIO' : 'ENOSPC';
    const late = random.below(2) === 0;
    const share = random.below(3);
    let struck = false;
    run.disks.fail(server, (call) => {
      if (struck || call.index < from) return undefined;
      if (onlyLog && !/\/(new\.)?log\.[0-9a-f]+$/.test(call.path)) return undefined;
      struck = true;
      run.hitMark(`${code} of ${call.operation}`);
      return { code, late, written: share === 0 ? 0 : random.below(600) };
    });
  },
};

export const diskFull: Fault = {
  id: 'F9',
  description: 'the disk is full for a while: every call that would enlarge a file fails, and so does a start',
  inject(run, random) {
    const server = run.anyServer();
    if (server.disk.fault !== undefined) return;
    run.disks.fill(server, random.below(700));
  },
};

export const slowDisk: Fault = {
  id: 'F11',
  description: 'the disk takes up to 0.3 s for each call',
  inject(run, random) {
    run.disks.slowUntil(run.anyServer(), run.nowMs + random.below(800));
  },
};

export const wipe: Fault = {
  id: 'F12',
  description: 'a server loses its disk and restarts with an empty one; a quorum of the others always keeps its disks',
  ensembleOnly: true,
  inject(run, random) {
    const server = run.anyServer();
    if (!run.disks.canWipe(server)) return;
    run.disks.wipe(server);
    run.restartAfter(server, random.below(300));
  },
};
