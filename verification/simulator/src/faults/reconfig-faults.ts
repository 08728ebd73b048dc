/**
 * What goes wrong around a change of the membership. These are not among the faults that a seed
 * chooses from, but strike only where the membership changes.
 */
import { formatQuorumConfig, type QuorumServer, type Sid, writeNotification, Writer } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import { initialMessage } from '../peers/hostile-packets.ts';
import type { Run } from '../run/run.ts';
import { electionPort, quorumPort } from '../world/peer-ports.ts';
import type { Fault } from './fault.ts';

/** Its sid is none of a run's. */
const strangerSid: Sid = 77;
/** As high as a version can be. */
const highVersion = Number.MAX_SAFE_INTEGER;

export const oldConfigFiles: Fault = {
  id: 'F24',
  description: 'a server restarts with the configuration that its operator wrote at first, while its data is as it was',
  ensembleOnly: true,
  inject(run, random) {
    const server = run.anyServer();
    if (server.process === undefined) return;
    server.kill();
    server.loseConfigFiles();
    run.hitMark('a server restarted with old configuration files');
    run.restartAfter(server, random.below(600));
  },
};

export const announcedConfig: Fault = {
  id: 'F24, F30',
  description: 'a peer outside the ensemble announces configurations of high versions to servers, as one that looks, leads or follows',
  ensembleOnly: true,
  inject(run, random) {
    const peer = run.strangers.newHostilePeer();
    const config = strangeConfig(run, random, peer.address);
    for (const server of run.world.servers) {
      const { address } = server;
      if (address === undefined || random.below(4) === 0) continue;
      peer.dial(
        { address, port: electionPort },
        {
          opened: (cnxn) => {
            cnxn.send(
              initialMessage({ sid: strangerSid, protocolVersion: -65536, addresses: [{ host: peer.address, port: electionPort }] }),
            );
            // A server notes configurations only while it looks for a leader.
            for (let count = 0; count < 12; count++) cnxn.after(random.below(3000), () => cnxn.send(announcement(random, config)));
            run.hitMark('a stranger announced a configuration');
          },
        },
      );
    }
  },
};

function announcement(random: SeededRandom, config: string): Buffer {
  const writer = new Writer(256);
  const at = writer.beginFrame();
  const state = (['looking', 'leading', 'following', 'observing'] as const)[random.below(4)]!;
  const vote = {
    leader: strangerSid,
    zxid: highVersion,
    peerEpoch: 1 + random.below(1000),
    electionEpoch: 1 + random.below(5),
    version: 2,
  };
  writeNotification(writer, { state, ...vote, config, pendingConfig: random.below(2) === 0 ? config : undefined });
  writer.endFrame(at);
  return Buffer.from(writer.written());
}

/** Of the stranger alone, with some of the servers, or with all of them and the stranger. */
function strangeConfig(run: Run, random: SeededRandom, address: string): string {
  const stranger: QuorumServer = { sid: strangerSid, addresses: [{ host: address, quorumPort, electionPort }], role: 'participant' };
  const others = run.world.servers
    .filter(() => random.below(3) === 0)
    .map(({ sid, name }): QuorumServer => ({
      sid,
      addresses: [{ host: name, quorumPort, electionPort }],
      role: random.below(2) === 0 ? 'observer' : 'participant',
    }));
  const servers = [stranger, ...(random.below(2) === 0 ? [] : others)];
  const version = random.below(2) === 0 ? highVersion : 2 ** 40 + random.below(1000);
  return formatQuorumConfig({
    version,
    servers: new Map(servers.map((server) => [server.sid, server])),
    groups: new Map(),
    weights: new Map(),
  });
}
