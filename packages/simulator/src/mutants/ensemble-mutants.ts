/** Servers of an ensemble with one thing wrong beside Zab and the election: sessions that move, syncs, disks, and leaders that stay too long. */
import type { Mutant } from './mutant.ts';

const leader = 'packages/core/src/zab/leader.ts';
const learner = 'packages/core/src/zab/learner.ts';
const server = 'packages/core/src/server.ts';
const authority = 'packages/core/src/request/authority.ts';
const diskHelpers = 'packages/runtime/src/storage/disk-helpers.ts';

export const ensembleMutants: Readonly<Record<string, Mutant>> = {
  'ephemeral-after-close': {
    what: 'a write that comes through another server is carried out though its session has ended',
    from: 'ZOOKEEPER-450, ZOOKEEPER-1208',
    file: authority,
    replace: 'if (slot === -1) return ErrorCode.SessionExpired;',
    by: 'if (slot === -1) return ErrorCode.Ok;',
  },
  'session-moved-for-ever': {
    what: 'a session that has moved to another server may not write there',
    from: 'ZOOKEEPER-484, ZOOKEEPER-907, ZOOKEEPER-710',
    file: server,
    replace: 'this.#tracker.setOwner(slot, owner);',
    by: '',
  },
  'moved-session-written': {
    what: 'what comes through the server that a session has left is still carried out',
    from: 'F17, P13',
    file: 'packages/core/src/session/session-tracker.ts',
    replace: 'return known === owner || known === ownerUnknown;',
    by: 'return true;',
  },
  'ended-session-revived': {
    what: 'a leader says of any session that it lives',
    from: 'ZOOKEEPER-1496, P23',
    file: server,
    replace: 'if (slot === -1) return false;\n    const older',
    by: 'if (slot === -1) return true;\n    const older',
  },
  'touches-not-told': {
    what: 'a learner does not tell its leader which sessions it has heard of',
    from: 'P21',
    file: learner,
    replace: 'this.#server?.takeTouched((high, low, timeoutMs) => writeTouchedSession(writer, high, low, timeoutMs));',
    by: '',
  },
  'no-time-after-election': {
    what: 'a new leader gives sessions no time to find it',
    from: 'P21',
    file: authority,
    replace: 'sessions.timeoutMs(known), now.elapsedMs);',
    by: 'sessions.timeoutMs(known), now.elapsedMs - 2 * sessions.timeoutMs(known));',
  },
  'sync-without-quorum': {
    what: 'a leader answers a sync without making sure that it still leads',
    from: 'ZOOKEEPER-2136, ZOOKEEPER-3600, P9',
    file: leader,
    replace: 'this.#pingAnsweredBy(sid) >= ping',
    by: 'this.#pingAnsweredBy(sid) >= ping - 1_000_000',
  },
  'reply-to-another-request': {
    what: 'a txn of a session answers whatever that session has waited for longest',
    from: 'ZOOKEEPER-1863, ZOOKEEPER-4537',
    file: 'packages/core/src/request/forwarding.ts',
    replace: 'if (head !== undefined && head.cxid === cxid) return head;',
    by: 'if (head !== undefined && cxid > -1_000_000_000) return head;',
  },
  'joining-observer-not-informed': {
    what: 'an observer is not told of what is committed between NEWLEADER and UPTODATE',
    from: 'ZOOKEEPER-1551',
    file: leader,
    replace: 'if (!learner.hears) continue;\n      const writer',
    by: "if (!learner.hears || (learner.isObserver && learner.stage !== 'active')) continue;\n      const writer",
  },
  'leader-without-quorum-stays': {
    what: 'a leader that has lost its quorum goes on leading',
    from: 'ZOOKEEPER-1109, P35',
    file: leader,
    replace: "if (!this.#quorum.containsQuorum(present)) this.#giveUp('it has lost its quorum');",
    by: 'present.clear();',
  },
  'silent-learner-kept': {
    what: 'a leader does not notice that nothing comes from a learner any more',
    from: 'ZOOKEEPER-2201, F28',
    file: leader,
    replace: 'this.#dropSilent(now);\n',
    by: 'if (now.elapsedMs < 0) this.#dropSilent(now);\n',
  },
  'silent-leader-kept': {
    what: 'a learner does not notice that nothing comes from its leader any more',
    from: 'F28, P10',
    file: learner,
    replace: 'if (silentMs > this.#silentMaxMs)',
    by: 'if (silentMs > this.#silentMaxMs + 1_000_000)',
  },
  'counter-runs-over': {
    what: 'a leader goes on when the counter of its epoch is used up',
    from: 'ZOOKEEPER-1277, F35',
    file: leader,
    replace: "if (counterOf(zxid) >= this.#options.counterMax) this.#giveUp('the counter of this epoch is used up');",
    by: '',
  },
  'loading-is-silence': {
    what: 'a learner that is sent a large snapshot takes its leader for silent',
    from: 'ZOOKEEPER-2678, ZOOKEEPER-1465',
    file: 'packages/core/src/peer.ts',
    replace: 'this.#role.learner.heard(now);',
    by: '',
  },
  'sending-is-silence': {
    what: 'a leader hangs up on a learner that has nothing to say while it is sent a large snapshot',
    from: 'ZOOKEEPER-1465, ZOOKEEPER-1521',
    file: 'packages/core/src/zab/synchroniser.ts',
    replace: 'learner.progress();',
    by: '',
  },
  'trunc-leaves-log': {
    what: 'what a leader has told to cut off the log stays in the file',
    from: 'ZOOKEEPER-3701, ZOOKEEPER-1489',
    file: 'packages/runtime/src/storage/truncation.ts',
    replace: "await file.truncate(end.offset);\n      return 'cut';",
    by: "return 'cut';",
  },
  'trunc-leaves-snapshot': {
    what: 'a snapshot that holds what a leader has told to cut off stays',
    from: 'ZOOKEEPER-4837, ZOOKEEPER-2355',
    file: 'packages/runtime/src/storage/recovery.ts',
    replace: 'await removeSnapshots(this.#disk, snapshotFolder, ({ name }) => this.#beyond.has(name));',
    by: 'void removeSnapshots;',
  },
  'epoch-file-not-synced': {
    what: 'an epoch file gets its name before its content is durable',
    from: 'ZOOKEEPER-2307, ZOOKEEPER-1653',
    file: diskHelpers,
    replace: 'file.write(0, bytes);\n    await syncFile(file);',
    by: 'file.write(0, bytes);',
  },
  'epoch-name-not-synced': {
    what: 'the new epoch is believed to be on disk before its name is',
    from: 'ZOOKEEPER-4269, P31',
    file: diskHelpers,
    replace: 'await disk.rename(temporary, `${folder}/${name}`);\n  await disk.syncFolder(folder);',
    by: 'await disk.rename(temporary, `${folder}/${name}`);',
  },
  'half-dead-after-disk-error': {
    what: 'a server whose disk has refused an epoch lives on and does nothing',
    from: 'ZOOKEEPER-602, ZOOKEEPER-2247',
    file: 'packages/runtime/src/member.ts',
    replace: 'if (!this.#isShut) failed(error);',
    by: 'void failed;',
  },
  'wiped-server-votes': {
    what: 'a server that has lost its folder takes part in the election as one that never had anything',
    from: 'ZOOKEEPER-261, F12',
    file: 'packages/runtime/src/storage/recovery.ts',
    replace: 'lastZxid: empty && !trusted ? -1 : this.#lastZxid,',
    by: 'lastZxid: empty && !trusted ? 0 : this.#lastZxid,',
  },
};
