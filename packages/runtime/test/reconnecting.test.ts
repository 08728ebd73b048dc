/**
 * Very many clients reconnect at once to the followers of an ensemble, each of which asks the
 * leader whether the session lives.
 */
import { FrameDecoder, type Reader, readConnectResponse, type SessionId, writeConnectRequest, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { clientPort, type EnsembleRuntimeNode, EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';
import type { RawEnd } from './ports/peer-rig.ts';

const count = breadth(2000, 6000);
const timeoutMs = 20_000;

interface Session {
  readonly id: SessionId;
  readonly password: Buffer;
}

const noSession: Session = { id: 0n, password: Buffer.alloc(16) };

function handshake({ id, password }: Session): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  writeConnectRequest(writer, {
    protocolVersion: 0,
    lastZxidSeen: 0,
    timeOut: timeoutMs,
    sessionId: id,
    passwd: password,
    readOnly: false,
  });
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

/** The server's reply to the handshake; a time-out of 0 is a refusal. */
function answerOf({ received }: RawEnd): { readonly timeOut: number; readonly session: Session } {
  let answer: ReturnType<typeof answerOf> | undefined;
  const take = (reader: Reader) => {
    const { timeOut, sessionId, passwd } = readConnectResponse(reader);
    answer ??= { timeOut, session: { id: sessionId, password: Buffer.from(passwd ?? []) } };
    return true;
  };
  new FrameDecoder(1024).feed(received, 0, received.length, take);
  if (answer === undefined) throw new Error('the handshake was not answered');
  return answer;
}

describe('an ensemble whose clients have all lost their connections', () => {
  it('C2-13: resumes thousands of sessions at once at other servers, although the leader is asked about each, and keeps its followers', async () => {
    const rig = await EnsembleRuntimeRig.start({ runtime: { maxClientCnxns: 0 } });
    const { leader, learners } = rig;
    const zxid = () => leader.runtime!.inspect.lastZxid();
    const isAnswered = (end: RawEnd) => end.pieces.length > 0 || end.closed !== undefined;
    /** The clients alternate between the two followers. */
    const shake = async (sessions: readonly Session[], serverOf: (at: number) => EnsembleRuntimeNode): Promise<RawEnd[]> => {
      const ends = sessions.map((session, at) => {
        const end = rig.dial(serverOf(at), clientPort);
        end.send(handshake(session));
        return end;
      });
      await rig.until(() => ends.every(isAnswered), timeoutMs / 2);
      return ends;
    };
    const asked = async () => Number(/^zk_revalidate_count\t(\d+)$/m.exec(await rig.word(leader, 'mntr'))![1]);

    const first = await shake(
      Array.from({ length: count }, () => noSession),
      (at) => learners[at % 2]!,
    );
    const sessions = first.map((end) => answerOf(end).session);
    for (const end of first) end.reset();
    await rig.until(() => learners.every(({ runtime }) => runtime!.inspect.cnxnCount() === 0), 1000);
    const [zxidBefore, askedBefore] = [zxid(), await asked()];
    const beganMs = rig.rig.clock.now().elapsedMs;

    const again = await shake(sessions, (at) => learners[(at + 1) % 2]!);

    const tookMs = rig.rig.clock.now().elapsedMs - beganMs;
    const wrong = again.filter((end, at) => {
      const { timeOut, session } = answerOf(end);
      return timeOut !== timeoutMs || session.id !== sessions[at]!.id;
    });
    expect(wrong).toEqual([]);
    // A client gives up a server that is silent for a third of its time-out, and then all of them
    // would start again.
    expect(tookMs).toBeLessThan(timeoutMs / 3);
    // The leader was asked about each of them once, and nothing was proposed for any.
    expect((await asked()) - askedBefore).toBe(count);
    expect(zxid()).toBe(zxidBefore);
    expect(rig.nodes.map(({ runtime }) => runtime!.inspect.sessionCount())).toEqual([count, count, count]);
    expect(learners.map(({ runtime }) => runtime!.inspect.cnxnCount())).toEqual([count / 2, count / 2]);
    expect(rig.nodes.map(({ runtime }) => runtime!.inspect.outstandingRequests())).toEqual([0, 0, 0]);
    expect([rig.isWhole, rig.leader]).toEqual([true, leader]);
    expect(rig.nodes.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined]);
  });
});
