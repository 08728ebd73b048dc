/** The loss of every quorum, for longer than servers wait before they serve in read-only mode. */
import {
  AddWatchMode,
  ErrorCode,
  type Millis,
  openAcl,
  type SessionId,
  sessionHigh,
  sessionLow,
  sessionPassword,
} from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { ClientRequest } from '../clients/actor.ts';
import { RawClient } from '../clients/raw-client.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import type { Run } from '../run/run.ts';
import type { Fault } from './fault.ts';

const outstandingMax = 6;
/** New clients come when servers may have begun to serve them, and stay until they have moved on. */
const visitorsFromMs = 1900;
const visitorsAfterMs = 1600;

export const quorumLost: Fault = {
  id: 'F18, F20',
  description: 'so many servers are down for seconds, or cut off from each other, that no quorum is left; new clients accept any server',
  ensembleOnly: true,
  inject(run, random) {
    const { servers, recording } = run.world;
    const ms = 2300 + random.below(2500);
    for (let count = 1 + random.below(3); count > 0; count--) {
      run.schedule(visitorsFromMs + random.below(600), 'visitor', undefined, () => {
        if (run.isHealed) return;
        const visitor = run.strangers.addReadOnlyVisitor();
        const [ended] = random.below(2) === 0 ? endedSessions(run) : [];
        if (ended !== undefined) {
          const password = sessionPassword(sessionHigh(ended), sessionLow(ended));
          visitor.resumeFrom({ session: ended, password, lastZxidSeen: 0, nextXid: 1 });
        }
        visit(run, random, visitor, run.nowMs + ms - visitorsFromMs + visitorsAfterMs);
      });
    }
    if (random.below(3) === 0) {
      run.cutLinks(servers, servers, ms);
      return;
    }
    const left = [...servers];
    const hasQuorum = () =>
      isQuorum(
        recording.ensemble,
        left.map(({ name }) => name),
      );
    while (left.length > 1 && hasQuorum()) {
      const [server] = left.splice(random.below(left.length), 1);
      server!.kill();
      run.restartAfter(server!, ms + random.below(200));
    }
  },
};

/** Sessions of the ensemble that have surely ended, the latest first: their clients know it. */
function endedSessions({ actors, world }: Run): SessionId[] {
  const closed = world.recording.cnxns.filter(({ requests }) =>
    requests.some(({ name, reply }) => name === 'closeSession' && reply?.err === ErrorCode.Ok),
  );
  const lost = actors.flatMap((actor) => (actor instanceof RawClient ? actor.lostSessions : []));
  return [...lost, ...closed.map(({ session = 0n }) => session)].filter((session) => session !== 0n).toReversed();
}

/** Reads, sets watches, tries to write, reconnects and closes its session, in any order. */
function visit(run: Run, random: SeededRandom, visitor: RawClient, untilMs: Millis): void {
  run.schedule(5 + random.below(60), 'visitor', undefined, () => {
    if (run.isHealed || run.nowMs > untilMs) {
      visitor.send('closeSession', undefined);
      run.schedule(50, 'visitor leaves', undefined, () => visitor.abandon());
      return;
    }
    if (visitor.ready && visitor.outstandingCount < outstandingMax) {
      if (random.below(12) === 0) visitor.reconnectToSameServer();
      else if (random.below(40) === 0) visitor.send('closeSession', undefined);
      else for (let count = 1 + random.below(4); count > 0; count--) visitor.submit(drawRequest(run, random));
    }
    visit(run, random, visitor, untilMs);
  });
}

function drawRequest(run: Run, random: SeededRandom): ClientRequest {
  const path = ['/', '/a', '/b', '/a/x', '/q'][random.below(5)]!;
  const data = Buffer.from(`visitor ${run.nowMs} ${random.below(1e6)}`);
  switch (random.below(8)) {
    case 0:
      return { name: 'setData', record: { path: '/', data, version: -1 } };
    case 1:
      return { name: 'create2', record: { path: `/v-${run.nowMs}`, data, acl: openAcl, flags: random.below(2) } };
    case 2:
      return { name: 'multi', record: { ops: [{ kind: 'setData', path: '/', data, version: -1 }] } };
    case 3:
      return { name: 'sync', record: { path } };
    case 4:
      return {
        name: 'addWatch',
        record: { path, mode: random.below(2) === 0 ? AddWatchMode.persistent : AddWatchMode.persistentRecursive },
      };
    case 5:
      return { name: 'getChildren2', record: { path, watch: true } };
    case 6:
      return { name: 'exists', record: { path, watch: random.below(2) === 0 } };
    default:
      return { name: 'getData', record: { path, watch: random.below(2) === 0 } };
  }
}
