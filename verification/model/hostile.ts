/**
 * Many connections send invalid frames beside one honest connection, which must not be affected:
 * its replies stay those of the model. The core must not throw, and must release its memory.
 *
 * The honest client has its own subtree. Writes of others affect it in one way only: they use
 * zxids. The log says how many, so the model can follow.
 */
import { difference, show } from './compare.ts';
import { coreSettings, InProcessCore, type MakeCore } from './in-process.ts';
import { hostileHandshake, mutatedFrame } from './malformed-frames.ts';
import type { AclEntry, ConnectRequest, Message, Operation } from '@tskeeper/simulator';
import { digestId, type ModelOutput, ReferenceModel } from '@tskeeper/simulator';
import { type Hints, Prng } from './operations.ts';
import { encodeConnect, encodeRequest } from '@tskeeper/harness';

export interface HostileOptions {
  readonly makeCore: MakeCore;
  readonly seed: number;
  readonly frames: number;
  /** Changes what the honest connection receives, for the canary. */
  readonly tamper?: (message: Message) => Message;
}

export interface HostileReport {
  readonly frames: number;
  readonly hostileCnxns: number;
  readonly honestReplies: number;
  /** Heap and buffers after the run minus those before it. */
  readonly grownBytes: number;
  readonly violation: string | undefined;
}

const attackers = 6;
const honestIdentity = 'honest:work';
const honestAcl: readonly AclEntry[] = [{ perms: 31, scheme: 'digest', id: digestId(honestIdentity) }];

function memoryInUse(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Operations of the honest client: creates, changes, lists and deletes below /honest. */
export function honestOperation(random: Prng): Operation {
  const path = `/honest/${random.pick(['a', 'b', 'c'])}`;
  return random.weighted<() => Operation>([
    [3, () => ({ kind: 'create2', path, data: 'one', acl: honestAcl, flags: 0 })],
    [3, () => ({ kind: 'setData', path, data: `v${random.below(1000)}`, version: -1 })],
    [2, () => ({ kind: 'delete', path, version: -1 })],
    [3, () => ({ kind: 'getData', path, watch: true })],
    [1, () => ({ kind: 'getChildren2', path: '/honest', watch: true })],
    [1, () => ({ kind: 'getACL', path: '/honest/keep' })],
    [1, () => ({ kind: 'exists', path, watch: true })],
    [
      2,
      () => ({
        kind: 'multi',
        steps: [
          { kind: 'check', path: '/honest/keep', version: 0 },
          { kind: 'create', path: '/honest/s-', data: null, acl: honestAcl, flags: 2 },
        ],
      }),
    ],
  ])();
}

export function runHostile({ makeCore, seed, frames, tamper }: HostileOptions): HostileReport {
  const random = new Prng(seed);
  const hints: Hints = { paths: [], zxid: 0, leaves: [] };
  const model = new ReferenceModel(coreSettings);
  const server = new InProcessCore(makeCore, coreSettings, new Prng(2));
  const hostiles: number[] = [];
  let hostileCnxns = 0;
  let honestReplies = 0;
  let lastFrame: Buffer = Buffer.alloc(0);
  let sent = 0;

  const honest = server.connect();
  model.connect(honest, '127.0.0.1');
  const request: ConnectRequest = {
    protocolVersion: 0,
    lastZxidSeen: 0,
    timeOut: 40_000,
    sessionId: 0n,
    passwd: '\0'.repeat(16),
    readOnly: false,
  };
  let xid = 0;

  /** Every txn in the log used a zxid, whether a hostile client or the server itself caused it. */
  const absorb = (): void => {
    for (let append = server.appends[0]; append !== undefined; append = server.appends[0]) {
      model.skipZxid();
      server.acknowledge(append.zxid);
    }
  };
  const work = (operation: Operation): string | undefined => {
    xid++;
    const admitted = model.admit(honest, xid, operation, server.wallMs);
    server.send(honest, encodeRequest(xid, operation), { xid, kind: operation.kind });
    const own = server.appends[0];
    if (own !== undefined) server.acknowledge(own.zxid);
    const expected: ModelOutput[] = model.perform(admitted);
    const heard = tamper === undefined ? server.takeReceived(honest) : server.takeReceived(honest).map(tamper);
    honestReplies++;
    return difference(
      expected.filter(({ cnxn }) => cnxn === honest),
      heard,
    );
  };

  const run = (): string | undefined => {
    server.send(honest, encodeConnect(request));
    server.acknowledge(1);
    const [connected] = server.takeReceived(honest);
    if (connected?.kind !== 'connected') return `the honest handshake was answered by ${show(connected)}`;
    model.handshake(honest, request, connected.sessionId);
    for (const operation of [
      { kind: 'auth', scheme: 'digest', auth: honestIdentity },
      { kind: 'create', path: '/honest', data: '', acl: honestAcl, flags: 0 },
      { kind: 'create', path: '/honest/keep', data: '', acl: honestAcl, flags: 0 },
    ] as const) {
      const wrong = work(operation);
      if (wrong !== undefined) return wrong;
    }
    for (sent = 0; sent < frames; sent++) {
      server.advance(random.below(2));
      server.settle();
      absorb();
      if (random.chance(4)) {
        const wrong = work(honestOperation(random));
        if (wrong !== undefined) return wrong;
      }
      hostileFrame(connected.sessionId);
      absorb();
    }
    return undefined;
  };

  const hostileFrame = (honestSession: bigint): void => {
    const at = random.below(attackers);
    let cnxn = hostiles[at];
    let frame: Buffer;
    if (cnxn === undefined || !server.isOpen(cnxn) || random.chance(1)) {
      if (cnxn !== undefined) server.disconnect(cnxn);
      cnxn = hostiles[at] = server.connect();
      hostileCnxns++;
      frame = random.chance(90) ? hostileHandshake(random) : mutatedFrame(random, hints);
      // A client that names a session takes over its connection, with or without the password: that
      // is ZooKeeper's rule, and not tested here.
      const name = Buffer.alloc(8);
      name.writeBigInt64BE(honestSession);
      if (frame.includes(name)) return;
    } else {
      frame = mutatedFrame(random, hints);
    }
    lastFrame = frame;
    server.sendRaw(cnxn, frame);
  };

  const before = memoryInUse();
  let violation: string | undefined;
  try {
    violation = run();
  } catch (error) {
    violation = String(error instanceof Error ? error.stack : error);
  }
  if (violation !== undefined) violation = `seed ${seed}, frame ${sent} ${lastFrame.toString('hex')}\n${violation}`;
  return { frames: sent, hostileCnxns, honestReplies, grownBytes: memoryInUse() - before, violation };
}
