/** Strangers on the quorum port, which trusts its peers without authentication. */
import { setTimeout as delay } from 'node:timers/promises';
import { OpCode, Writer } from '@tskeeper/protocol';
import { eventually } from '../../chaos/real-clock.ts';
import { atMost, type Figure } from '../report.ts';
import { type Attack, createChildren, type Site } from './attack.ts';
import { QuorumStranger } from './quorum-stranger.ts';
import { again, strangers } from './stranger.ts';

const epochBits = 32n;

async function epochOf({ leader }: Site): Promise<{ epoch: number; zxid: number }> {
  const status = await leader.status();
  if (status === undefined) throw new Error('the leader does not say its zxid');
  return { epoch: Number(status.zxid >> epochBits), zxid: Number(status.zxid) };
}

const claimEveryMs = 100;
const claimsKept = 20;

async function claimIdentity(site: Site, signal: AbortSignal): Promise<void> {
  const { epoch } = await epochOf(site);
  const open: QuorumStranger[] = [];
  while (!signal.aborted) {
    const { leader, target } = site;
    const options = { port: leader.ports.quorum, sid: target.sid, as: 'follower', epoch } as const;
    const stranger = await QuorumStranger.introduce(options).catch(() => undefined);
    if (stranger !== undefined) open.push(stranger);
    if (open.length > claimsKept) open.shift()!.destroy();
    await delay(claimEveryMs);
  }
  for (const stranger of open) stranger.destroy();
}

const observers = 40;
const firstObserverSid = 100;
/** Bytes of the writes in the meantime. */
const writeBytes = 100_000;
const writeEveryMs = 20;

async function observersThatDoNotRead(site: Site, signal: AbortSignal): Promise<void> {
  const { leader, target } = site;
  const one = (index: number): Promise<void> =>
    again(signal, async () => {
      const { epoch, zxid } = await epochOf(site);
      const options = { port: leader.ports.quorum, sid: firstObserverSid + index, as: 'observer', epoch, lastZxid: zxid } as const;
      const stranger = await QuorumStranger.introduce(options);
      await eventually(() => stranger.hasJoined || stranger.isClosed || signal.aborted, 5000);
      stranger.socket.pause();
      // It does not notice that it was cut off: it connects again after a while.
      for (let waitedMs = 0; waitedMs < 8000 && !stranger.isClosed && !signal.aborted; waitedMs += 100) await delay(100);
      stranger.destroy();
      await delay(100);
    });
  const writing = strangers(1, target.ports.client, signal, async (stranger) => {
    await stranger.send({ kind: 'setData', path: '/written', data: 'x'.repeat(writeBytes), version: -1 });
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

async function slowSnapshots(site: Site, signal: AbortSignal): Promise<Figure[]> {
  const { cluster, leader } = site;
  const empty = cluster.members.find((member) => member !== leader && member !== site.target)!;
  await cluster.kill(empty);
  await cluster.forget(empty);
  const { epoch } = await epochOf(site);
  const one = (index: number, isSilent: boolean): Promise<void> =>
    again(signal, async () => {
      const options = { port: leader.ports.quorum, sid: firstObserverSid + index, as: 'observer', epoch } as const;
      const stranger = await QuorumStranger.introduce(options);
      await eventually(() => stranger.takesSnapshot || stranger.isClosed || signal.aborted, 5000);
      stranger.socket.on('data', () => void stranger.socket.pause());
      while (!stranger.isClosed && !signal.aborted) {
        if (!isSilent) stranger.socket.resume();
        await delay(slowReadEveryMs);
      }
      stranger.destroy();
      await delay(200);
    });
  const strangersAtWork = Promise.all([one(0, false), ...[1, 2, 3, 4].map((index) => one(index, true))]);
  await delay(1500);
  const launchedMs = performance.now();
  await cluster.launch(empty);
  const serves = await eventually(async () => (await empty.status()) !== undefined, joinMaxMs);
  const figure = atMost('empty follower serves after', serves ? (performance.now() - launchedMs) / 1000 : Infinity, joinLimitS, 's');
  await strangersAtWork;
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
const strangeOpCodes = [OpCode.createSession, OpCode.check, OpCode.deleteContainer, OpCode.ping, OpCode.getData, 0, 23, 77, 1000, -1, -7];
const requestEveryMs = 30;

async function strangeRequests(site: Site, signal: AbortSignal): Promise<Figure[]> {
  let joined = 0;
  let closed = 0;
  await again(signal, async () => {
    const { epoch, zxid } = await epochOf(site);
    const { quorum } = site.leader.ports;
    const stranger = await QuorumStranger.introduce({ port: quorum, sid: firstObserverSid, as: 'observer', epoch, lastZxid: zxid });
    await eventually(() => stranger.hasJoined || stranger.isClosed || signal.aborted, 5000);
    if (stranger.hasJoined) joined++;
    for (let cxid = 1; !stranger.isClosed && !signal.aborted; cxid++) {
      const payload = payloads[Math.floor(cxid / strangeOpCodes.length) % payloads.length]!;
      stranger.request(strangeOpCodes[cxid % strangeOpCodes.length]!, payload, cxid);
      await delay(requestEveryMs);
    }
    if (!signal.aborted) closed++;
    stranger.destroy();
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
    run: observersThatDoNotRead,
  },
  {
    name: 'slow-snapshots',
    servers: 3,
    limit: `an empty follower serves within ${joinLimitS} s of its start`,
    options: { config: { snapshotSizeFactor: -1 } },
    prepare: ({ leader }) => createChildren(leader.ports.client, '/tree', treeChildren, 'x'.repeat(treeChildBytes), 5),
    run: slowSnapshots,
  },
  { name: 'strange-requests', servers: 3, isCheap: true, limit: 'no stream closed', run: strangeRequests },
];
