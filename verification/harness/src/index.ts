export { FrameCutter, frameOf } from './wire/frames.ts';
export { OperationClient } from './wire/operation-client.ts';
export { decodeConnectResponse, decodeMessage, encodeConnect, encodeRequest, opCodeOf } from './wire/operation-codec.ts';
export { type Answer, lostWakeupPorts, RawClient } from './wire/raw-client.ts';
export { type MultiResult, readEvent, readReply, type ReplyValue, type Stat } from './wire/replies.ts';
export {
  type AclEntry,
  creatorAcl,
  type Fields,
  type Handshake,
  handshakeBody,
  noPasswd,
  openAcl,
  opName,
  readAcl,
  record,
  requestBody,
  type WirePath,
} from './wire/requests.ts';
export { sessionPasswd } from './wire/session-passwd.ts';
export { type Endpoint, endpointOf, type Message, WireCnxn } from './wire/wire-cnxn.ts';
export { buildDiskFaults, type DiskFault, FaultyDisk } from './processes/disk-faults.ts';
export {
  type EnsembleOptions,
  type EnsemblePeer,
  type EnsemblePorts,
  type PeerSpec,
  peersOf,
  ProcessEnsemble,
  reservePorts,
  roleTimeoutMs,
} from './processes/ensemble.ts';
export { fourLetterWord } from './processes/four-letter-word.ts';
export { freePort, reservePort } from './processes/ports.ts';
export { type LinkDirection, type PeerPorts, type Proxy, ProxyNetwork, redirectDialBack } from './processes/proxy.ts';
export {
  launchServer,
  type ServerExit,
  type ServerKind,
  type ServerMode,
  type ServerOptions,
  ServerProcess,
  type ServerSettings,
  type Settings,
  startServer,
} from './processes/server-process.ts';
export { eventually, until, within } from './processes/until.ts';
