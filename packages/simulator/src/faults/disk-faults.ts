/** What happens to a disk. A server that meets an error must end, and say nothing more; the disk is well when it starts again. */
import type { Fault } from './fault.ts';

export const diskError: Fault = {
  id: 'F9, F10',
  what: 'one call fails with EIO or ENOSPC, at once or at the next sync, with part of the bytes written',
  strike(stage, random) {
    const server = stage.anyServer();
    const { disk } = server;
    if (disk.fault !== undefined) return;
    const from = disk.calls + random.below(30);
    const onlyLog = random.below(2) === 0;
    const code = random.below(2) === 0 ? 'EIO' : 'ENOSPC';
    const late = random.below(2) === 0;
    const share = random.below(3);
    let struck = false;
    stage.failDisk(server, (call) => {
      if (struck || call.index < from) return undefined;
      if (onlyLog && !/\/(new\.)?log\.[0-9a-f]+$/.test(call.path)) return undefined;
      struck = true;
      stage.note(`${code} of ${call.operation}`);
      return { code, late, written: share === 0 ? 0 : random.below(600) };
    });
  },
};

export const diskFull: Fault = {
  id: 'F9',
  what: 'the disk is full for a while: whatever would make a file larger fails, and so does a start',
  strike(stage, random) {
    const server = stage.anyServer();
    if (server.disk.fault !== undefined) return;
    stage.fillDisk(server, random.below(700));
  },
};

export const slowDisk: Fault = {
  id: 'F11',
  what: 'the disk takes up to 0.3 s for each call',
  strike(stage, random) {
    stage.slowDiskUntil(stage.anyServer(), stage.nowMs + random.below(800));
  },
};

export const wipe: Fault = {
  id: 'F12',
  what: 'a server loses its disk and comes back with an empty one; never so many at a time that no quorum of the others is left',
  ofEnsembles: true,
  strike(stage, random) {
    const server = stage.anyServer();
    if (!stage.mayWipe(server)) return;
    stage.wipe(server);
    stage.superviseAfter(server, random.below(300));
  },
};
