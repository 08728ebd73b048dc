import type { Millis } from '@tskeeper/protocol';

/**
 * Facts for four letter words that neither the core nor the ports know. The caller that starts the
 * server provides them.
 */
export interface ServerFacts {
  /** The rest of the line `Zookeeper version: `; tools read the release number at its beginning. */
  readonly version: string;
  readonly conf: ServerConf;
  /** Active settings that give up a guarantee, such as `forceSync=no`. */
  readonly unsafe: readonly string[];
  /** When the server began to serve, on the monotonic clock. */
  readonly startedMs: Millis;
  /** Size of the folder of snapshots, as last measured. */
  dataDirBytes(): number;
  /** Size of the folder of logs, as last measured. */
  logDirBytes(): number;
  /** Open files of this process; undefined where the system does not report it. */
  openFileDescriptors(): number | undefined;
  maxFileDescriptors(): number | undefined;
  /** Chance that the connection throttle refuses a new session, and tokens missing in it. */
  connectionDropChance(): number;
  /** envi: names and values in the order of printing. */
  environment(): Iterable<readonly [name: string, value: string]>;
}

/** The lines of conf. Folders include `version-2`. */
export interface ServerConf {
  /** -1: none. */
  readonly clientPort: number;
  /** -1: none. */
  readonly secureClientPort: number;
  readonly dataDir: string;
  readonly dataLogDir: string;
  readonly tickTimeMs: Millis;
  readonly maxClientCnxns: number;
  readonly minSessionTimeoutMs: Millis;
  readonly maxSessionTimeoutMs: Millis;
  /** -1: the system's default. */
  readonly clientPortListenBacklog: number;
  /** 0 on a standalone server. */
  readonly serverId: number;
  /** Of a server in an ensemble. */
  readonly ensemble: EnsembleConf | undefined;
}

export interface EnsembleConf {
  readonly initLimitTicks: number;
  readonly syncLimitTicks: number;
  readonly electionPorts: readonly number[];
  readonly quorumPorts: readonly number[];
  readonly role: 'participant' | 'observer';
}
