/**
 * The measurements of a client, and the demands on ours. `load` keeps a number of requests in
 * flight; `watch` sets watches and lets one txn fire all of them; `connect` opens and closes
 * sessions one after the other. A demand applies to one of the servers.
 */
export const znodes = 1000;
export const bytes = 100;

/**
 * Half of the other's cost. Apache's server answers requests one by one, which wakes its client for
 * each of them: waking, reading and writing then cost more than the client's own work, and cost
 * every client the same. So with that server the demand is a goal, and is also met close to Node's
 * minimum.
 */
const half = (against) =>
  Object.entries({ ours: 'tripwire', java: 'goal' }).map(([server, level]) => ({
    measure: 'cpuUsPerOp',
    against,
    atMost: 0.5,
    level,
    server,
    ...(level === 'goal' ? { or: { measure: 'cpuUsPerOp', against: 'bare', atMost: 1.4 } } : {}),
  }));

/** The only load of the bare socket. */
export const bareOp = 'getData';

export const rows = [
  { name: 'getData-1', title: 'getData, 1 in flight', kind: 'load', load: { op: 'getData', inFlight: 1 }, demands: [] },
  {
    name: 'getData-16',
    title: 'getData, 16 in flight',
    kind: 'load',
    load: { op: 'getData', inFlight: 16 },
    demands: [...half('node-zookeeper-client'), ...half('kazoo')],
  },
  { name: 'getData-128', title: 'getData, 128 in flight', kind: 'load', load: { op: 'getData', inFlight: 128 }, demands: [] },
  { name: 'setData-16', title: 'setData, 16 in flight', kind: 'load', load: { op: 'setData', inFlight: 16 }, demands: [] },
  {
    name: 'createAndDelete-16',
    title: 'create an ephemeral and delete it, 16 in flight',
    kind: 'load',
    load: { op: 'createAndDelete', inFlight: 16 },
    demands: [],
  },
  { name: 'watch', title: 'events of 5,000 watches fired by one txn', kind: 'watch', count: 5000, demands: [] },
  { name: 'connect', title: 'connect and close', kind: 'connect', times: 10, demands: [] },
];

/** Requests that one operation of a load consists of. */
export const requestsOf = { getData: 1, setData: 1, createAndDelete: 2 };
