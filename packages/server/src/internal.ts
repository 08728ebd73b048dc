export {} from './check-node-version.ts';
export { FsDisk, openForReading } from './fs-disk.ts';
export { formatEndpoint, NetNetwork, type NetNetworkOptions } from './net-network.ts';
export { type ServerEnvironment, startServerWith, type StartRuntime } from './server.ts';
export { snappy } from './snappy.ts';
export { SystemClock } from './system-clock.ts';
export { SystemRandom } from './system-random.ts';
