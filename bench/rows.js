/**
 * The measurements and their demands. A row of kind `load` is one run of the generator with each
 * server in each round; the other kinds are in scenarios.js and outages.js. Rows with
 * `ensemble` are measured on that many servers; a word of the command line (`npm run bench --
 * ensemble failover`) selects the rows of that group.
 *
 * A demand compares a measure of ours with that of another server in the same round, or with a
 * fixed limit. A `tripwire` must hold at every commit; a `goal` is a target, and is also met close
 * enough to the ceiling: 0.92 of its throughput, 1.15 times its CPU per operation.
 * docs/internals/performance.md has the origin of the numbers.
 */
const preloaded = 10_000;
const ceilingThroughputShare = 0.92;
const ceilingCpuShare = 1.15;

const atLeast = (measure, against, ratio, level) => ({ measure, against, atLeast: ratio, level });
const atMost = (measure, against, ratio, level) => ({ measure, against, atMost: ratio, level });
const limit = (measure, atMostValue, level) => ({ measure, atMost: atMostValue, level });

/** A goal of throughput over Java, or close to the ceiling. */
const throughputGoal = (ratio) => ({
  ...atLeast('throughput', 'java', ratio, 'goal'),
  or: atLeast('throughput', 'ceiling', ceilingThroughputShare),
});
const cpuGoal = (ratio) => ({ ...atMost('cpuUsPerOp', 'java', ratio, 'goal'), or: atMost('cpuUsPerOp', 'ceiling', ceilingCpuShare) });

function load(name, title, options, demands) {
  return { name, title, kind: 'load', servers: ['java', 'ours', 'ceiling'], znodes: preloaded, load: options, demands };
}

/** Mostly reads from 1,000 sessions: the main purpose of a ZooKeeper server. */
function mixedLoad(name, readPercent) {
  return load(
    name,
    `${readPercent} % getData, ${100 - readPercent} % setData, 1,000 sessions`,
    { op: 'mixed', readPercent, connections: 1000 },
    [throughputGoal(1.1), atMost('p99Us', 'java', 1, 'goal')],
  );
}

/** Over three servers, with connections to all of them. */
function ensembleLoad(name, title, options, demands) {
  return {
    name: `ensemble-${name}`,
    title: `3 servers: ${title}`,
    group: 'ensemble',
    kind: 'load',
    ensemble: 3,
    servers: ['java', 'ours'],
    znodes: preloaded,
    load: options,
    demands,
  };
}

/** On three servers, Java's and ours in turns within one run. */
function outage(kind, title, rounds, demands) {
  return { name: kind, title: `3 servers: ${title}`, group: 'failover', kind, ensemble: 3, servers: ['java', 'ours'], rounds, demands };
}

export const rows = [
  load('getData-50', 'getData, 50 connections', { op: 'getData', connections: 50 }, [
    atLeast('throughput', 'java', 1, 'tripwire'),
    atMost('cpuUsPerOp', 'ceiling', 1.4, 'tripwire'),
    throughputGoal(1.3),
    atMost('cpuUsPerOp', 'ceiling', ceilingCpuShare, 'goal'),
  ]),
  load('getData-50x16', 'getData, 50 connections x 16 in flight', { op: 'getData', connections: 50, inFlight: 16 }, [
    atLeast('throughput', 'java', 3, 'tripwire'),
    throughputGoal(6),
  ]),
  load('getData-1000', 'getData, 1,000 connections', { op: 'getData', connections: 1000 }, [throughputGoal(1.1), cpuGoal(0.75)]),
  load('setData-1', 'setData, 1 connection', { op: 'setData', connections: 1 }, [atMost('p50Us', 'java', 1, 'goal')]),
  load('setData-50', 'setData, 50 connections', { op: 'setData', connections: 50 }, [
    atLeast('throughput', 'java', 0.9, 'tripwire'),
    throughputGoal(1.1),
    cpuGoal(0.7),
  ]),
  load('setData-50x16', 'setData, 50 connections x 16 in flight', { op: 'setData', connections: 50, inFlight: 16 }, [throughputGoal(4)]),
  load('create-50', 'create, 50 connections', { op: 'create', connections: 50 }, [throughputGoal(1.1)]),
  mixedLoad('mixed-1000', 90),
  mixedLoad('mixed-95-1000', 95),
  mixedLoad('mixed-99-1000', 99),
  {
    name: 'million-znodes',
    title: '1,000,000 znodes of 100 bytes',
    kind: 'million-znodes',
    servers: ['java', 'ours'],
    znodes: 1_000_000,
    sessions: 10_000,
    // Java's heap must be large enough; with the 1 GB of the other rows it ends near 600,000.
    heap: '3g',
    demands: [
      limit('rssMb', 700, 'tripwire'),
      limit('stallMs', 100, 'tripwire'),
      limit('rssMb', 450, 'goal'),
      limit('stallMs', 50, 'goal'),
    ],
  },
  {
    name: 'restart',
    title: 'start with 619,000 znodes, and empty',
    kind: 'restart',
    servers: ['java', 'ours'],
    znodes: 619_000,
    demands: [limit('fullSeconds', 1.5, 'goal'), limit('emptySeconds', 0.25, 'goal')],
  },
  {
    name: 'million-watches',
    title: '1,000,000 watches fired (1,000 connections x 1,000 znodes)',
    kind: 'million-watches',
    servers: ['java', 'ours'],
    connections: 1000,
    znodes: 1000,
    // A heartbeat is late when a client begins to doubt its server: after a third of the shortest
    // session timeout.
    demands: [limit('fireSeconds', 5, 'goal'), limit('heartbeatMs', 1333, 'goal')],
  },
  {
    name: 'idle-memory',
    title: 'an idle server, ten seconds after its start',
    group: 'idle',
    kind: 'idle-memory',
    servers: ['java', 'ours'],
    demands: [limit('rssMb', 100, 'tripwire'), atMost('rssMb', 'java', 1, 'goal')],
  },
  {
    name: 'test-ensemble',
    title: 'three servers of a TestEnsemble, until all accept clients',
    group: 'test-ensemble',
    kind: 'test-ensemble',
    servers: ['ours'],
    demands: [limit('startMs', 500, 'tripwire')],
  },
  ensembleLoad('getData-50x16', 'getData, 50 connections x 16 in flight', { op: 'getData', connections: 50, inFlight: 16 }, [
    atLeast('throughput', 'java', 5, 'goal'),
  ]),
  ensembleLoad('setData-50', 'setData, 50 connections', { op: 'setData', connections: 50 }, [
    atLeast('throughput', 'java', 1, 'tripwire'),
    atLeast('throughput', 'java', 2, 'goal'),
  ]),
  ensembleLoad('setData-50x16', 'setData, 50 connections x 16 in flight', { op: 'setData', connections: 50, inFlight: 16 }, [
    atLeast('throughput', 'java', 4, 'goal'),
  ]),
  ensembleLoad('mixed-1000', '90 % getData, 10 % setData, 1,000 sessions', { op: 'mixed', readPercent: 90, connections: 1000 }, [
    atLeast('throughput', 'java', 2, 'goal'),
    atMost('p99Us', 'java', 0.5, 'goal'),
  ]),
  outage('failover', 'no write answered after SIGKILL of the leader, default settings', 60, [
    limit('p50Ms', 200, 'tripwire'),
    limit('p99Ms', 400, 'tripwire'),
    atMost('p50Ms', 'java', 0.5, 'tripwire'),
    atMost('p99Ms', 'java', 0.5, 'tripwire'),
  ]),
  {
    ...outage('handover', 'no write answered while the leader gives the lead to a follower', 60, [limit('p50Ms', 100, 'tripwire')]),
    servers: ['ours'],
    // The client that asks for it is not authenticated.
    config: { skipACL: 'yes' },
  },
  {
    ...outage('membership', 'no write answered while a reconfiguration adds two servers, and one removes the leader and a follower', 20, [
      limit('growMaxMs', 300, 'tripwire'),
      limit('shrinkMaxMs', 300, 'tripwire'),
    ]),
    ensemble: 5,
    members: 3,
    config: { reconfigEnabled: 'true', skipACL: 'yes' },
  },
  // Followers drop the leader only after syncLimit x tickTime, in both.
  outage('silent-host', 'no write answered after the leader has fallen silent', 5, [atMost('p50Ms', 'java', 1.05, 'goal')]),
  outage('rolling-restart', 'no write answered while each server is stopped cleanly and started again', 5, [
    limit('followerP50Ms', 50, 'goal'),
    atMost('leaderP50Ms', 'java', 0.5, 'goal'),
  ]),
];
