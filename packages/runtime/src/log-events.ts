/**
 * Every line that a server can log: the name of its event, its level and its fields. Collectors
 * filter by these names, so they are part of the public interface: a released name is never given
 * to another event. `docs/reference/logging.md` lists the same table for operators, and a test
 * compares the two.
 */
import type { Millis } from '@tskeeper/protocol';

/** The content of each field. A name has the same meaning in all events. */
interface FieldTypes {
  /**
   * Host and port of the other side of a connection or of an address to bind, or the host alone
   * where the port is not known.
   */
  readonly address: string;
  /** Addresses that this server listens on. */
  readonly addresses: readonly string[];
  /** The addresses at which this server accepts votes. */
  readonly electionAddresses: readonly string[];
  /** Session id in hexadecimal, as ZooKeeper prints it: `0x100000ceb4c0000`. */
  readonly session: string;
  /** Session time-out. */
  readonly timeoutMs: Millis;
  /** Zxid in hexadecimal: `0x200000001`. */
  readonly zxid: string;
  /** Number of another server of the ensemble. */
  readonly peer: number;
  /** Number of the leader. */
  readonly leader: number;
  readonly role: string;
  readonly epoch: number;
  /** A znode, a file or a folder. */
  readonly path: string;
  readonly paths: readonly string[];
  /** The reason: a short text, or the code or message of an error. */
  readonly reason: string;
  /** Authentication scheme: `digest`, `sasl`. */
  readonly scheme: string;
  readonly durationMs: Millis;
  readonly bytes: number;
  readonly limitBytes: number;
  readonly count: number;
  readonly limit: number;
  /** What is counted, or which memory it is. */
  readonly what: string;
  readonly allowed: boolean;
  /** The event whose lines were left out. */
  readonly of: string;
  readonly version: string;
  readonly zookeeperVersion: string;
  readonly nodeVersion: string;
  readonly dataDir: string;
  readonly dataLogDir: string;
  readonly clientAddress: string;
  readonly voters: number;
  readonly observers: number;
  readonly configFile: string;
  /** Settings that differ from their defaults, by their names; secrets are masked. */
  readonly settings: Readonly<Record<string, string>>;
  readonly exitCode: number;
}

type FieldName = keyof FieldTypes;
type Level = 'debug' | 'info' | 'warn' | 'error';
/** The level of `log.left-out` is that of the lines that were left out. */
type AnyLevel = 'as its event';

/**
 * Event -> level and fields, in the order of docs/reference/logging.md. A field that is not known
 * is left out of a line.
 */
export const logEvents = {
  // The process.
  'server.starting': {
    level: 'info',
    fields: [
      'version',
      'zookeeperVersion',
      'nodeVersion',
      'role',
      'dataDir',
      'dataLogDir',
      'clientAddress',
      'electionAddresses',
      'configFile',
      'settings',
    ],
  },
  'server.no-log': { level: 'info', fields: [] },
  'server.exposed': { level: 'warn', fields: ['addresses'] },
  'config.warning': { level: 'warn', fields: ['reason'] },
  'config.no-effect': { level: 'info', fields: ['reason'] },
  'server.serving': {
    level: 'info',
    fields: ['address', 'electionAddresses', 'voters', 'observers', 'zxid', 'count', 'durationMs'],
  },
  'server.unsafe': { level: 'warn', fields: ['reason'] },
  'timer.refused': { level: 'warn', fields: ['reason'] },
  'server.refused': { level: 'error', fields: ['reason', 'exitCode'] },
  'server.failed': { level: 'error', fields: ['reason', 'exitCode'] },
  'server.stopping': { level: 'info', fields: ['reason'] },
  'server.hangup-ignored': { level: 'info', fields: [] },
  'server.stopped': { level: 'info', fields: [] },

  // Sessions.
  'session.opened': { level: 'info', fields: ['session', 'timeoutMs', 'address'] },
  'session.resumed': { level: 'info', fields: ['session', 'timeoutMs', 'address'] },
  'session.refused': { level: 'info', fields: ['session', 'address'] },
  'session.moved': { level: 'info', fields: ['session', 'address'] },
  'session.closed': { level: 'info', fields: ['session', 'address'] },
  'session.expired': { level: 'info', fields: ['session', 'timeoutMs', 'address'] },
  'session.upgraded': { level: 'info', fields: ['session', 'timeoutMs'] },
  'session.ephemeral-refused': { level: 'warn', fields: ['session'] },
  'session.disconnected': { level: 'debug', fields: ['session', 'address', 'reason'] },
  'session.ended-elsewhere': { level: 'debug', fields: ['session', 'reason'] },
  'log.left-out': { level: 'as its event', fields: ['of', 'count'] },

  // Client connections.
  'cnxn.lost': { level: 'warn', fields: ['address', 'reason'] },
  'cnxn.half-open': { level: 'warn', fields: ['address', 'durationMs'] },
  'cnxn.idle': { level: 'warn', fields: ['address', 'durationMs'] },
  'cnxn.slow': { level: 'warn', fields: ['address', 'bytes', 'durationMs'] },
  'cnxn.malformed': { level: 'warn', fields: ['address', 'reason'] },
  'cnxn.shed': { level: 'warn', fields: ['address', 'bytes', 'limitBytes'] },
  'cnxn.shed-began': { level: 'info', fields: ['count'] },
  'cnxn.large-request': { level: 'warn', fields: ['address', 'bytes', 'limitBytes'] },
  'cnxn.address-limit': { level: 'warn', fields: ['address', 'limit'] },
  'cnxn.limit': { level: 'warn', fields: ['address', 'limit'] },
  'cnxn.memory': { level: 'warn', fields: ['address', 'reason'] },
  'auth.provider-failed': { level: 'warn', fields: ['scheme', 'reason'] },
  'auth.refused': { level: 'warn', fields: ['address', 'scheme', 'reason'] },
  'cnxn.throttled': { level: 'warn', fields: ['address'] },
  'cnxn.accept-failed': { level: 'warn', fields: ['address', 'reason'] },
  'files.limit-low': { level: 'warn', fields: ['limit', 'count'] },
  'cnxn.limit-lowered': { level: 'warn', fields: ['limit', 'count'] },

  // The ensemble.
  'role.looking': { level: 'info', fields: ['reason'] },
  'leader.elected': { level: 'info', fields: ['leader', 'durationMs'] },
  'leader.transfer-began': { level: 'info', fields: ['leader', 'reason'] },
  'leader.transferred': { level: 'info', fields: ['leader', 'durationMs'] },
  'leader.transfer-failed': { level: 'warn', fields: ['leader', 'reason', 'durationMs'] },
  'role.serving': { level: 'info', fields: ['role', 'leader', 'epoch', 'zxid'] },
  'role.read-only': { level: 'warn', fields: ['durationMs'] },
  'role.read-only-ended': { level: 'info', fields: [] },
  'epoch.abandoned': { level: 'warn', fields: ['path', 'epoch', 'zxid'] },
  'oracle.answered': { level: 'info', fields: ['allowed'] },
  'oracle.unreadable': { level: 'warn', fields: ['path', 'reason'] },
  'peer.unreachable': { level: 'warn', fields: ['peer', 'reason'] },
  'leader.unreachable': { level: 'warn', fields: ['peer', 'reason'] },
  'leader.refused': { level: 'debug', fields: ['peer', 'reason'] },
  'peer.closed': { level: 'warn', fields: ['address', 'reason'] },
  'peer.slow': { level: 'warn', fields: ['address', 'bytes'] },
  'peer.malformed': { level: 'warn', fields: ['address', 'peer', 'reason'] },
  'peer.notification-dropped': { level: 'warn', fields: ['address', 'peer', 'reason'] },
  'peer.wrong-sid': { level: 'warn', fields: ['address', 'peer'] },
  'peer.unknown': { level: 'warn', fields: ['peer'] },
  'peer.no-address': { level: 'warn', fields: ['peer', 'address'] },
  'peer.strangers': { level: 'warn', fields: ['address', 'count'] },
  'peer.half-open': { level: 'warn', fields: ['address', 'durationMs'] },
  'peer.flood': { level: 'warn', fields: ['address'] },
  'port.waits-for-name': { level: 'warn', fields: ['address', 'reason'] },
  'port.bind-failed': { level: 'warn', fields: ['address', 'reason'] },
  'port.unavailable': { level: 'error', fields: ['reason'] },
  'client-port.moved': { level: 'info', fields: ['address'] },
  'config.not-written': { level: 'error', fields: ['path', 'reason'] },

  // Data.
  'recovery.warning': { level: 'warn', fields: ['reason'] },
  'recovery.ttl-owners': { level: 'warn', fields: ['count'] },
  'recovery.acls-missing': { level: 'warn', fields: ['count'] },
  'snapshot.written': { level: 'info', fields: ['zxid', 'bytes', 'durationMs'] },
  'snapshot.installed': { level: 'info', fields: ['zxid', 'bytes'] },
  'snapshot.install-finished': { level: 'warn', fields: ['path'] },
  'snapshot.install-dropped': { level: 'warn', fields: ['path'] },
  'snapshot.failed': { level: 'error', fields: ['path', 'reason'] },
  'snapshot.spoiled': { level: 'warn', fields: ['path'] },
  'snapshot.damaged': { level: 'warn', fields: ['path'] },
  'txnlog.slow-sync': { level: 'warn', fields: ['path', 'durationMs'] },
  'txnlog.mark-failed': { level: 'warn', fields: ['path', 'reason'] },
  'txnlog.not-truncated': { level: 'warn', fields: ['reason'] },
  'purge.done': { level: 'info', fields: ['paths'] },
  'purge.failed': { level: 'warn', fields: ['reason'] },
  'disk.no-folder-sync': { level: 'warn', fields: ['dataDir', 'dataLogDir'] },
  'digest.mismatch': { level: 'warn', fields: ['zxid'] },
  'quota.exceeded': { level: 'warn', fields: ['path', 'what', 'count', 'limit'] },
  'container.deleted': { level: 'debug', fields: ['path'] },

  // Memory.
  'memory.ample': { level: 'info', fields: ['what', 'bytes', 'limitBytes'] },
  'memory.tight': { level: 'warn', fields: ['what', 'bytes', 'limitBytes'] },
  'memory.full': { level: 'warn', fields: ['what', 'bytes', 'limitBytes'] },
  'memory.watches-full': { level: 'warn', fields: ['what', 'bytes', 'limitBytes'] },
  'memory.unknown': { level: 'warn', fields: ['reason'] },
  'memory.watches-free': { level: 'info', fields: ['bytes'] },
} as const satisfies Readonly<Record<string, { readonly level: Level | AnyLevel; readonly fields: readonly FieldName[] }>>;

/** Name of an event: `session.opened`. */
export type LogEvent = keyof typeof logEvents;

/**
 * The data of a line in addition to its sentence: the name of its event, and the fields of that
 * event.
 */
export type LogFields<Among extends LogEvent = LogEvent> = {
  readonly [Event in Among]: {
    readonly event: Event;
    /** Number of this server, in every line of a server of an ensemble. */
    readonly sid?: number | undefined;
  } & {
    readonly [Field in (typeof logEvents)[Event]['fields'][number]]?: FieldTypes[Field] | undefined;
  };
}[Among];

/** The events of one level. */
type EventsOf<Wanted extends Level> = {
  [Event in LogEvent]: (typeof logEvents)[Event]['level'] extends Wanted | AnyLevel ? Event : never;
}[LogEvent];

/** Fields of a line of one level. */
export type FieldsAt<Wanted extends Level> = LogFields<EventsOf<Wanted>>;
