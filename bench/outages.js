/**
 * What clients notice when servers of an ensemble fail: how long no write is answered after the
 * leader is killed, after its machine falls silent, and while all servers are restarted one after
 * the other. Java's ensemble and ours take turns round by round.
 */
import { setTimeout as delay } from 'node:timers/promises';

import { connect } from '@tskeeper/client';

import { makeZnode, Writers } from './writers.js';

/** Answered writes before the outage, and after it: the writers are working again. */
const writesBefore = 60;
const writesAfter = 60;
/** How long to watch afterwards: a second election would happen within this time. */
const aftermathMs = 300;
const outageTimeoutMs = 60_000;

export function percentile(numbers, percent) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1)];
}

/** `name` is a prefix of each key: `p50Ms`, or `leaderP50Ms`. */
function summary(gaps, name = '') {
  const key = (text) => (name === '' ? text : `${name}${text[0].toUpperCase()}${text.slice(1)}`);
  return {
    [key('p50Ms')]: percentile(gaps, 50),
    [key('p90Ms')]: percentile(gaps, 90),
    [key('p99Ms')]: percentile(gaps, 99),
    [key('maxMs')]: Math.max(...gaps),
  };
}

/** Causes the outage while all writers write; returns the longest time without a reply. */
async function longestGapDuring(writers, causeOutage) {
  await writers.answers(writesBefore, performance.now(), outageTimeoutMs);
  const struckMs = performance.now();
  await causeOutage();
  await delay(20);
  await writers.answers(writesAfter, performance.now(), outageTimeoutMs);
  await delay(aftermathMs);
  return writers.longestGap(struckMs);
}

/**
 * Starts an ensemble of each kind, and runs the rounds in turns. Returns the results of `round`, by
 * kind.
 */
async function measureInRotation({ kinds, rounds, start, say }, round) {
  const all = [];
  try {
    for (const kind of kinds) {
      const ensemble = await start(kind);
      const writers = new Writers(ensemble.clientPorts);
      all.push({ kind, ensemble, writers, results: [] });
      await makeZnode(ensemble.clientPorts[0]);
      await ensemble.untilConverged();
    }
    for (let number = 0; number < rounds; number++) {
      for (let turn = 0; turn < all.length; turn++) {
        const { kind, ensemble, writers, results } = all[(turn + number) % all.length];
        writers.start();
        const result = await round(ensemble, writers);
        results.push(result);
        say(`round ${number + 1}, ${kind}: ${JSON.stringify(result)}`);
        await writers.stop();
        await ensemble.untilServing();
        await ensemble.untilConverged();
      }
    }
  } finally {
    // After a failure too: a writer would keep this process alive forever.
    for (const { ensemble, writers } of all) {
      await writers.stop().catch(() => {});
      await ensemble[Symbol.asyncDispose]();
    }
  }
  return Object.fromEntries(all.map(({ kind, results }) => [kind, results]));
}

function byKind(results, summarise) {
  return Object.fromEntries(Object.entries(results).map(([kind, each]) => [kind, { ...summarise(each), rounds: each.length }]));
}

async function failover(context) {
  const results = await measureInRotation(context, async (ensemble, writers) => {
    const { sid } = await ensemble.leader();
    const gap = await longestGapDuring(writers, () => void ensemble.kill(sid));
    await ensemble.launch([sid]);
    return Math.round(gap * 10) / 10;
  });
  return byKind(results, (gaps) => summary(gaps));
}

/** An operator gives the lead to a follower, as before the leader's restart. */
async function handover(context) {
  const results = await measureInRotation(context, async (ensemble, writers) => {
    const leader = await ensemble.leader();
    const client = await connect(`127.0.0.1:${leader.port}`);
    const gap = await longestGapDuring(writers, () => client.transferLeader());
    await client.close();
    const next = await ensemble.leader();
    if (next === leader) throw new Error('the lead was not transferred');
    return Math.round(gap * 10) / 10;
  });
  return byKind(results, (gaps) => summary(gaps));
}

/** Asks one server for something. */
async function ask({ connectString }, request) {
  const client = await connect(connectString);
  try {
    return await request(client);
  } finally {
    await client.close();
  }
}

function serverLine({ sid, ports: { quorum, election, client } }) {
  return `server.${sid}=127.0.0.1:${quorum}:${election}:participant;127.0.0.1:${client}`;
}

const membersOf = (config) =>
  new Set(
    [
      ...Buffer.from(config.data)
        .toString()
        .matchAll(/^server\.(\d+)=/gm),
    ].map(([, sid]) => Number(sid)),
  );

/**
 * Changes the membership through a server. A server of ZooKeeper may close the connection instead of
 * answering when its leader goes; then the configuration shows whether the change was made.
 */
async function reconfigure(server, change, isMade) {
  try {
    await ask(server, (client) => client.reconfig(change));
  } catch (error) {
    if (error.code !== 'ConnectionLoss') throw error;
    const members = membersOf(await ask(server, (client) => client.getConfig({ retry: true })));
    if (!isMade(members)) await reconfigure(server, change, isMade);
  }
}

/** Three members of five servers become five, and then three without the leader and one follower. */
async function membership(context) {
  const results = await measureInRotation(context, async (ensemble, writers) => {
    const leader = await ensemble.leader();
    const members = membersOf(await ask(leader, (client) => client.getConfig({ retry: true })));
    const isMember = ({ sid }) => members.has(sid);
    const joining = ensemble.peers.filter((peer) => !isMember(peer));
    const stays = ensemble.peers.find((peer) => isMember(peer) && peer !== leader);
    const leaving = [leader, ensemble.peers.find((peer) => isMember(peer) && peer !== leader && peer !== stays)].map(({ sid }) => sid);
    const grow = await longestGapDuring(writers, () =>
      reconfigure(stays, { joiningServers: joining.map(serverLine).join(',') }, (now) => joining.every(({ sid }) => now.has(sid))),
    );
    const shrink = await longestGapDuring(writers, () =>
      reconfigure(stays, { leavingServers: leaving.join(',') }, (now) => !leaving.some((sid) => now.has(sid))),
    );
    return { grow: Math.round(grow * 10) / 10, shrink: Math.round(shrink * 10) / 10 };
  });
  const gaps = (each, name) =>
    summary(
      each.map((round) => round[name]),
      name,
    );
  return byKind(results, (each) => ({ ...gaps(each, 'grow'), ...gaps(each, 'shrink') }));
}

/**
 * SIGSTOP: the kernel still accepts bytes, but no process answers, as if the machine had lost its
 * power.
 */
async function silentHost(context) {
  const results = await measureInRotation(context, async (ensemble, writers) => {
    const { process: leader } = await ensemble.leader();
    const gap = await longestGapDuring(writers, () => leader.pause());
    leader.resume();
    return Math.round(gap);
  });
  return byKind(results, (gaps) => summary(gaps));
}

/** SIGTERM and a restart of each server, the leader last. */
async function rollingRestart(context) {
  const results = await measureInRotation(context, async (ensemble, writers) => {
    const leader = await ensemble.leader();
    const followers = ensemble.peers.filter((peer) => peer !== leader);
    const gaps = {};
    for (const [role, peers] of Object.entries({ follower: followers, leader: [leader] })) {
      gaps[role] = 0;
      for (const { sid } of peers) {
        const gap = await longestGapDuring(writers, async () => {
          await ensemble.stop(sid);
          await ensemble.start([sid]);
          await ensemble.untilServing();
        });
        gaps[role] = Math.max(gaps[role], Math.round(gap * 10) / 10);
      }
    }
    return gaps;
  });
  return byKind(results, (each) => ({
    ...summary(
      each.map(({ follower }) => follower),
      'follower',
    ),
    ...summary(
      each.map(({ leader }) => leader),
      'leader',
    ),
  }));
}

/** Each measures all kinds of servers at once. */
export const outages = { failover, handover, membership, 'silent-host': silentHost, 'rolling-restart': rollingRestart };
