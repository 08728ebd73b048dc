/** Clients of a follower write more than its link to the leader can carry. */
import { OpCode, operations, writeConnectRequest, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { clientPort, EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';
import { addressOf, type RawEnd } from './ports/peer-rig.ts';

const writers = 90;
const dataBytes = 1_000_000;

function frameOf(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

const handshake = frameOf((writer) =>
  writeConnectRequest(writer, {
    protocolVersion: 0,
    lastZxidSeen: 0,
    timeOut: 20_000,
    sessionId: 0n,
    passwd: Buffer.alloc(16),
    readOnly: false,
  }),
);

const write = frameOf((writer) => {
  writer.int32(1);
  writer.int32(OpCode.setData);
  operations.setData.request.write(writer, { path: '/', data: Buffer.alloc(dataBytes), version: -1 });
});

/** The error code in the second frame that a client has received, once it is there. */
function answerOf({ received }: RawEnd): number | undefined {
  const first = received.length < 4 ? undefined : 4 + received.readInt32BE(0);
  return first === undefined || received.length < first + 20 ? undefined : received.readInt32BE(first + 16);
}

describe('a follower whose clients write 90 times 1 MB over a link of 11 MB/s', () => {
  it('stays with its leader, and every write is answered', async () => {
    const rig = await EnsembleRuntimeRig.start({ runtime: { maxClientCnxns: 0 } });
    const { leader } = rig;
    const follower = rig.learners[0]!;
    const ends = Array.from({ length: writers }, () => rig.dial(follower, clientPort));
    for (const end of ends) end.send(handshake);
    await rig.until(() => ends.every(({ received }) => received.length >= 41), 5000);

    for (const [from, to] of [
      [follower, leader],
      [leader, follower],
    ] as const) {
      rig.rig.wire.forEachPipe(addressOf(from.sid), addressOf(to.sid), (pipe) => {
        Object.assign(pipe.conditions, { windowBytes: 110_000, pieceBytes: 110_000, pieceIntervalMs: 10 });
        pipe.conditionsChanged();
      });
    }
    for (const end of ends) end.send(write);
    await rig.until(() => ends.every((end) => answerOf(end) !== undefined || end.closed !== undefined), 30_000);

    expect(ends.map(answerOf)).toEqual(Array.from({ length: writers }, () => 0));
    expect(rig.nodes.flatMap(({ lines }) => lines.filter((line) => line.includes('cut off') || line.includes('was closed')))).toEqual([]);
    expect(follower.role).toBe('follower');
  });
});
