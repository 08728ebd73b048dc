/**
 * The election port, byte for byte: the same fake voters send the same to a server of ZooKeeper
 * 3.9.5, of 3.8.0 and to ours, in every format ever used, and all must answer alike.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';

import { type Notification, noVote, PacketDecoder, packetTypeName } from '@tskeeper/protocol';

import { type ServerKind, until } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { createEnsemble } from './ensemble.ts';
import { FakeVoter, type NotificationForm, type Introduction, textOf } from './fake-voter.ts';

/**
 * The server is the third of five voters, so that some dial it and it dials others, and one more
 * vote is not a quorum.
 */
const subjectSid = 3;
const notificationForms: readonly NotificationForm[] = ['28 bytes', '40 bytes', '44 bytes', 'with a configuration'];
const introductions: readonly Introduction[] = ['sid alone', 'one address', 'several addresses'];

function vote(leader: number, round: number, changed: Partial<Notification> = {}): Notification {
  return { state: 'looking', leader, zxid: 0, peerEpoch: 0, electionEpoch: round, version: 2, config: 'version=0', ...changed };
}

function isOf(round: number): (notification: Notification) => boolean {
  return ({ electionEpoch }) => electionEpoch === round;
}

/** The answers of a server of this kind, one line for each message. */
async function transcriptOf(kind: ServerKind): Promise<string[]> {
  const ensemble = await createEnsemble([1, 2, 3, 4, 5].map((sid) => ({ sid, kind, role: 'participant' as const })));
  const voters = new Map(ensemble.peers.map(({ sid, ports }) => [sid, new FakeVoter(sid, ports.election)]));
  const stranger = new FakeVoter(9, ensemble.peer(5).ports.election);
  const [first, second, fourth, fifth] = [1, 2, 4, 5].map((sid) => voters.get(sid)!);
  const leaderPort = createServer();
  const lines: string[] = [];
  try {
    // Server 2 listens before the server starts, and is dialled; server 1 sends it a request.
    await second!.listen();
    await ensemble.launch([subjectSid]);
    const { election } = ensemble.peer(subjectSid).ports;
    lines.push(`to a smaller server that listens: ${textOf(await second!.waitFor('a vote', () => true))}`);
    lines.push(`it has introduced itself: ${second!.introduction}`);

    // A server with a smaller sid is disconnected, and dialled.
    await first!.listen();
    await first!.dial(election, 'one address');
    lines.push(`to a smaller server that has dialled: ${textOf(await first!.waitFor('a vote', () => true))}`);
    lines.push(`it has dialled back: ${first!.introduction}`);

    let round = 10;
    for (const introduction of introductions) {
      await fifth!.dial(election, introduction);
      round += 10;
      const answer = await fifth!.sendUntilAnswered(vote(5, round), 'with a configuration', `round ${round}`, isOf(round));
      lines.push(`behind ${introduction}: ${textOf(answer)}`);
    }
    for (const form of notificationForms) {
      round += 10;
      const answer = await fifth!.sendUntilAnswered(
        vote(5, round, { zxid: 0x2_0000_0007, peerEpoch: 2 }),
        form,
        `round ${round}`,
        isOf(round),
      );
      lines.push(`a vote in ${form}: ${textOf(answer)}`);
      lines.push(`and all receive: ${textOf(await first!.waitFor(`round ${round}`, isOf(round)))}`);
    }

    // A worse vote of a later round: the server adopts the round, not the vote.
    round += 10;
    const own = await fifth!.sendUntilAnswered(vote(1, round), 'with a configuration', `round ${round}`, isOf(round));
    lines.push(`a worse vote of a later round: ${textOf(own)}`);

    // A server in no configuration, without a vote.
    await stranger.dial(election, 'one address');
    const nothing = vote(noVote, 1, { zxid: noVote, peerEpoch: noVote });
    lines.push(`to a stranger: ${textOf(await stranger.sendUntilAnswered(nothing, 'with a configuration', 'an answer', isOf(round)))}`);

    // With two more votes there is a leader to follow.
    leaderPort.listen(ensemble.peer(5).ports.quorum, '127.0.0.1');
    await once(leaderPort, 'listening');
    const introduced: string[] = [];
    leaderPort.on('connection', (socket) => {
      const cutter = new PacketDecoder(1_000_000);
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        cutter.feed(chunk, 0, chunk.length, {
          packet: ({ type, zxid, data }) => {
            // Ours sends the id of its process after it; ZooKeeper reads no further than this.
            const end = Math.min(data.limit, data.offset + learnerInfoBytes);
            introduced.push(`${packetTypeName(type)} 0x${zxid.toString(16)} ${data.bytes.toString('hex', data.offset, end)}`);
            return true;
          },
          raw: () => 0,
        });
      });
    });
    round += 10;
    await fourth!.dial(election, 'one address');
    const voice = vote(5, round, { zxid: 0x3_0000_0001, peerEpoch: 3 });
    for (const voter of [fourth!, fifth!]) await voter.sendUntilAnswered(voice, 'with a configuration', `round ${round}`, isOf(round));
    lines.push(
      `to the leader's quorum port: ${await until(
        'it goes to the leader',
        async () => introduced[0],
        20_000,
        () => ensemble.evidence(),
      )}`,
    );
    first!.received.length = 0;
    const lost = vote(1, round + 10);
    const settled = await first!.sendUntilAnswered(lost, 'with a configuration', 'who leads', ({ state }) => state === 'following');
    lines.push(`to one that looks, from one that follows: ${textOf(settled)}`);
    return lines;
  } finally {
    for (const voter of voters.values()) voter.end();
    stranger.end();
    leaderPort.close();
    await ensemble[Symbol.asyncDispose]();
  }
}

/** A server id, a version of the protocol, and a version of the configuration. */
const learnerInfoBytes = 20;

export async function runElectionPort(report: Report): Promise<void> {
  const kinds: readonly ServerKind[] = ['java-3.9.5', 'java-3.8.0', 'ours'];
  const transcripts = new Map<ServerKind, readonly string[]>();
  for (const kind of kinds) {
    try {
      transcripts.set(kind, await transcriptOf(kind));
    } catch (error) {
      report.fail(`election port of ${kind}`, error instanceof Error ? error.message : String(error));
    }
  }
  const expected = transcripts.get('java-3.9.5');
  if (expected === undefined) return;
  for (const kind of kinds.slice(1)) {
    for (const [index, line] of (transcripts.get(kind) ?? []).entries()) {
      if (line === expected[index]) report.pass(`election port of ${kind}: ${line}`);
      else report.fail(`election port of ${kind}`, `\n    java-3.9.5: ${expected[index]}\n    ${kind}: ${line}`);
    }
  }
}
