/** Strangers on the quorum port, which trusts its peers without authentication. */
import { setTimeout as delay } from 'node:timers/promises';
import { OpCode, Writer } from '@tskeeper/protocol';
import { eventually } from '@tskeeper/harness';
import { atMost, type Figure } from '../report.ts';
import { type Attack, createChildren, type AttackSetup } from './attack.ts';
import { FakeLearner } from './fake-learner.ts';
import { repeatUntilAborted, runAttackers } from './attacker.ts';

const epochBits = 32n;

async function epochOf({ leader }: AttackSetup): Promise<{ epoch: number; zxid: number }> {
  const status = await leader.status();
  if (status === undefined) throw new Error('the leader does not say its zxid');
  return { epoch: Number(BigInt(status.zxid) >> epochBits), zxid: Number(status.zxid) };
}

const claimEveryMs = 100;
const claimsKept = 20;

async function claimIdentity(site: AttackSetup, signal: AbortSignal): Promise<void> {
  const { epoch } = await epochOf(site);
  const open: FakeLearner[] = [];
  while (!signal.aborted) {
    const { leader, target } = site;
    const options = { port: leader.ports.quorum, sid: target.sid, as: 'follower', epoch } as const;
    const learner = await FakeLearner.connect(options).catch(() => undefined);
    if (learner !== undefined) open.push(learner);
    if (open.length > claimsKept) open.shift()!.destroy();
    await delay(claimEveryMs);
  }
  for (const learner of open) learner.destroy();
}

const observers = 40;
const firstObserverSid = 100;
/** Bytes of the writes in the meantime. */
const writeBytes = 100_000;
const writeEveryMs = 20;

async function unreadingObservers(site: AttackSetup, signal: AbortSignal): Promise<void> {
  const { leader, target } = site;
  const one = (index: number): Promise<void> =>
    repeatUntilAborted(signal, async () => {
      const { epoch, zxid } = await epochOf(site);
      const options = { port: leader.ports.quorum, sid: firstObserverSid + index, as: 'observer', epoch, lastZxid: zxid } as const;
      const learner = await FakeLearner.connect(options);
      await eventually(() => learner.hasJoined || learner.isClosed || signal.aborted, 5000);
      learner.socket.pause();
      // It does not notice that it was cut off: it connects again after a while.
      for (let waitedMs = 0; waitedMs < 8000 && !learner.isClosed && !signal.aborted; waitedMs += 100) await delay(100);
      learner.destroy();
      await delay(100);
    });
  const writing = runAttackers(1, target.ports.client, signal, async (learner) => {
    await learner.send({ kind: 'setData', path: '/written', data: 'x'.repeat(writeBytes), version: -1 });
    await delay(writeEveryMs);
  });
  await Promise.all([writing, ...Array.from({ length: observers }, (_, index) => one(index))]);
}

const treeChildren = 600;
const treeChildBytes = 100_000;
/** A stranger that receives a snapshot reads 64 KB, and then pauses this long. */
const slowReadEveryMs = 200;
const joinLimitS = 5;
const joinMaxMs = 60_000;

async function slowSnapshots(site: AttackSetup, signal: AbortSignal): Promise<Figure[]> {
  const { ensemble, leader } = site;
  const empty = ensemble.peers.find((member) => member !== leader && member !== site.target)!;
  await ensemble.kill(empty.sid);
  await ensemble.wipe(empty.sid);
  const { epoch } = await epochOf(site);
  const one = (index: number, isSilent: boolean): Promise<void> =>
    repeatUntilAborted(signal, async () => {
      const options = { port: leader.ports.quorum, sid: firstObserverSid + index, as: 'observer', epoch } as const;
      const learner = await FakeLearner.connect(options);
      await eventually(() => learner.receivesSnapshot || learner.isClosed || signal.aborted, 5000);
      learner.socket.on('data', () => void learner.socket.pause());
      while (!learner.isClosed && !signal.aborted) {
        if (!isSilent) learner.socket.resume();
        await delay(slowReadEveryMs);
      }
      learner.destroy();
      await delay(200);
    });
  const learnersAtWork = Promise.all([one(0, false), ...[1, 2, 3, 4].map((index) => one(index, true))]);
  await delay(1500);
  const launchedMs = performance.now();
  await ensemble.launch([empty.sid]);
  const serves = await eventually(async () => (await empty.status()) !== undefined, joinMaxMs);
  const figure = atMost('empty follower serves after', serves ? (performance.now() - launchedMs) / 1000 : Infinity, joinLimitS, 's');
  await learnersAtWork;
  return [figure];
}

/** A follower forwards what its client has sent, whatever that is. */
const payloads: readonly Uint8Array[] = [
  // A timeout, as in createSession.
  written((to) => to.int32(4000)),
  written((to) => {
    to.ustring('/');
    to.int32(-1);
  }),
  new Uint8Array(0),
  Buffer.alloc(40, 0xff),
];

function written(write: (to: Writer) => void): Uint8Array {
  const writer = new Writer(64);
  write(writer);
  return Buffer.from(writer.written());
}

/** Operations that no client of a well-behaved follower can send. */
const unexpectedOpCodes = [
  OpCode.createSession,
  OpCode.check,
  OpCode.deleteContainer,
  OpCode.ping,
  OpCode.getData,
  0,
  23,
  77,
  1000,
  -1,
  -7,
];
const requestEveryMs = 30;

async function malformedForwards(site: AttackSetup, signal: AbortSignal): Promise<Figure[]> {
  let joined = 0;
  let closed = 0;
  await repeatUntilAborted(signal, async () => {
    const { epoch, zxid } = await epochOf(site);
    const { quorum } = site.leader.ports;
    const learner = await FakeLearner.connect({ port: quorum, sid: firstObserverSid, as: 'observer', epoch, lastZxid: zxid });
    await eventually(() => learner.hasJoined || learner.isClosed || signal.aborted, 5000);
    if (learner.hasJoined) joined++;
    for (let cxid = 1; !learner.isClosed && !signal.aborted; cxid++) {
      const payload = payloads[Math.floor(cxid / unexpectedOpCodes.length) % payloads.length]!;
      learner.request(unexpectedOpCodes[cxid % unexpectedOpCodes.length]!, payload, cxid);
      await delay(requestEveryMs);
    }
    if (!signal.aborted) closed++;
    learner.destroy();
    await delay(200);
  });
  return [{ name: 'streams closed', text: `streams closed ${closed} of ${joined}`, isWithin: joined > 0 && closed === 0 }];
}

export const quorumAttacks: readonly Attack[] = [
  { name: 'identity-of-a-follower', servers: 3, run: claimIdentity },
  {
    name: 'observers-that-do-not-read',
    servers: 3,
    prepare: ({ leader }) => createChildren(leader.ports.client, '/written', 0),
    run: unreadingObservers,
  },
  {
    name: 'slow-snapshots',
    servers: 3,
    limit: `an empty follower serves within ${joinLimitS} s of its start`,
    options: { config: { snapshotSizeFactor: -1 } },
    prepare: ({ leader }) => createChildren(leader.ports.client, '/tree', treeChildren, 'x'.repeat(treeChildBytes), 5),
    run: slowSnapshots,
  },
  { name: 'strange-requests', servers: 3, isBounded: true, limit: 'no stream closed', run: malformedForwards },
];
