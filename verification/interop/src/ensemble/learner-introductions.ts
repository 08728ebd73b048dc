/**
 * What a leader, and a follower that accepts observers, answer to a learner that introduces itself:
 * in each form of LearnerInfo, with earlier and later versions of the configuration. Ours must
 * answer as ZooKeeper's.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

import { epochOf, PacketDecoder, PacketType, packetTypeName, parseQuorumConfig, Writer } from '@tskeeper/protocol';
import { type ProcessEnsemble, reservePort, type ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { configText } from './config-agreement.ts';
import { createEnsemble } from './ensemble.ts';
import { compareTranscripts, type EnsembleJustification, type Transcript, TranscriptWriter } from './transcripts.ts';

const followerSid = 1;
const leaderSid = 2;
/** Of a server that the configuration does not have. */
const strangerSid = 9;
const answerMs = 20_000;
const protocolVersion = 0x10000;
/** What follows in LEADERINFO is of ours alone. */
const leaderInfoBytes = 4;
const packetBytesMax = 1_000_000;

/** The bytes of LearnerInfo in the forms of all versions, and some more. */
function introductions(configVersion: number): readonly (readonly [string, Buffer | null])[] {
  const whole = (version: number): Buffer => {
    const writer = new Writer(64);
    writer.int64(strangerSid);
    writer.int32(protocolVersion);
    writer.int64(version);
    return Buffer.from(writer.written());
  };
  const usual = whole(configVersion);
  return [
    ['the version of the ensemble', usual],
    ['an earlier version', whole(0)],
    ['a later version', whole(configVersion + 1)],
    ['a later version and more bytes', Buffer.concat([whole(configVersion + 1), Buffer.alloc(12, 1)])],
    ['more bytes', Buffer.concat([usual, Buffer.alloc(12, 1)])],
    ['no version of the configuration', usual.subarray(0, 12)],
    ['part of a version of the configuration', usual.subarray(0, 16)],
    ['a sid alone', usual.subarray(0, 8)],
    ['no data', null],
  ];
}

/** The first packet of the answer. */
async function answerTo(host: string, port: number, type: number, data: Buffer | null): Promise<string> {
  const socket = connect({ host, port });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  let hasAnswer = false;
  const answer = new Promise<string>((resolve) => {
    const decoder = new PacketDecoder(packetBytesMax);
    socket.setTimeout(answerMs, () => resolve('silence'));
    socket.on('close', () => resolve('closed'));
    socket.on('data', (chunk) => {
      // A snapshot may follow, which is not a packet.
      if (hasAnswer) return;
      decoder.feed(chunk, 0, chunk.length, {
        packet: (packet) => {
          const { offset, limit, bytes } = packet.data;
          const text =
            packet.type === PacketType.LEADERINFO ? bytes.toString('hex', offset, Math.min(limit, offset + leaderInfoBytes)) : '';
          resolve(`${packetTypeName(packet.type)} of epoch ${epochOf(packet.zxid)} ${text}`);
          hasAnswer = true;
          return false;
        },
        raw: () => 0,
      });
    });
  });
  const writer = new Writer(64);
  writer.int32(type);
  writer.int64(0);
  writer.buffer(data);
  writer.int32(-1);
  socket.write(writer.written());
  const text = await answer;
  socket.destroy();
  return text;
}

async function collect(ensemble: ProcessEnsemble, observerMasterPort: number): Promise<Transcript> {
  const to = new TranscriptWriter();
  await ensemble.start([followerSid, leaderSid]);
  const leader = await ensemble.leader();
  if (leader.sid !== leaderSid) throw new Error(`server ${leader.sid} leads instead of server ${leaderSid}`);
  const { version } = parseQuorumConfig(await configText(leader.port));
  const [leaderHost, followerHost] = [leaderSid, followerSid].map((sid) => ensemble.serverLines()[`server.${sid}`]!.split(':')[0]!);
  for (const [form, data] of introductions(version)) {
    for (const [type, role] of [
      [PacketType.OBSERVERINFO, 'observer'],
      [PacketType.FOLLOWERINFO, 'follower'],
    ] as const) {
      const answer = await answerTo(leaderHost!, leader.ports.quorum, type, data);
      to.note(`leader, ${role} with ${form}`, answer);
    }
    const answer = await answerTo(followerHost!, observerMasterPort, PacketType.OBSERVERINFO, data);
    to.note(`follower, observer with ${form}`, answer);
  }
  return to.transcript;
}

async function transcriptOf(kinds: readonly ServerKind[]): Promise<Transcript> {
  const observerMasterPort = await reservePort();
  const ensemble = await createEnsemble(
    kinds.map((kind, index) => ({ sid: index + 1, kind, role: 'participant' as const })),
    { config: { observerMasterPort, reconfigEnabled: true }, firstMembers: [followerSid, leaderSid], hasOwnHosts: true },
  );
  try {
    return await collect(ensemble, observerMasterPort);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${await ensemble.evidence()}`, { cause: error });
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

const isBefore34 = /with (?:a sid alone|no data)$/;

export const introductionDifferences: readonly EnsembleJustification[] = [
  {
    id: 'no-history-for-learners-before-3.4',
    explains: (step, expected, found) => isBefore34.test(step) && expected!.startsWith('SNAP') && found!.startsWith('LEADERINFO'),
  },
];

export async function runLearnerIntroductions(report: Report): Promise<void> {
  const kinds: readonly ServerKind[] = ['java-3.9.5', 'java-3.8.0', 'ours'];
  await compareTranscripts(
    {
      name: 'introductions of learners',
      castings: kinds.map((kind) => [kind, kind]),
      transcriptOf,
      justified: introductionDifferences,
    },
    report,
  );
}
