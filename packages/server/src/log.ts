import { hostname } from 'node:os';
import type { Logger, LogFields } from '@tskeeper/runtime';
import { destination, pino, type DestinationStream } from 'pino';

/** The levels of a log, from everything to nothing. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
/** One of `logLevels`: messages of this level and of the more severe ones are written. */
export type LogLevel = (typeof logLevels)[number];

/** Level, form and destination of a log. */
export interface LogOptions {
  /** Messages below this level are not written. */
  readonly level: LogLevel;
  /** `text` for people, `json` for collectors: one line per message either way. */
  readonly format: 'text' | 'json';
  /** Receives whole lines. Default: standard output. */
  readonly write?: ((line: string) => void) | undefined;
}

/**
 * The server's log. Lines are written at once and not gathered: the last ones before the process
 * ends matter most, and the server writes no line per request.
 */
export function createLogger(options: LogOptions): Logger {
  const out: DestinationStream = options.write === undefined ? standardOutput() : { write: options.write };
  const stream = options.format === 'json' ? out : { write: (line: string) => out.write(`${readable(line)}\n`) };
  const lines = pino(
    {
      level: options.level,
      base: { pid: process.pid, host: hostname() },
      // Collectors search for level names and ISO times; pino's numbers serve its own tools.
      formatters: { level: (level) => ({ level }) },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
    },
    stream,
  );
  return {
    debug: (message: string, fields?: LogFields) => lines.debug(fields, message),
    info: (message: string, fields?: LogFields) => lines.info(fields, message),
    warn: (message: string, fields?: LogFields) => lines.warn(fields, message),
    error: (message: string, fields?: LogFields) => lines.error(fields, message),
  };
}

/** Limit of the lines that wait for a full disk or a slow reader. Further lines are left out. */
const waitingBytesMax = 1024 * 1024;

function standardOutput(): DestinationStream {
  // A reader that does not read must not block the server: its lines wait for the next write.
  const out = destination({ fd: 1, sync: true, maxLength: waitingBytesMax, retryEAGAIN: () => false });
  out.on('error', () => undefined);
  return out;
}

/** A line of the log must not end the server: lines that the logger cannot write are left out. */
export function loggerThatNeverThrows(logger: Logger): Logger {
  const attempt = (write: () => void): void => {
    try {
      write();
    } catch {
      // There is no other place to report it.
    }
  };
  return {
    debug: (message, fields) => attempt(() => logger.debug(message, fields)),
    info: (message, fields) => attempt(() => logger.info(message, fields)),
    warn: (message, fields) => attempt(() => logger.warn(message, fields)),
    error: (message, fields) => attempt(() => logger.error(message, fields)),
  };
}

/**
 * `2026-01-31 12:00:00.000 warn  message`, in local time. The message contains the content of the
 * fields.
 */
function readable(line: string): string {
  const { time, level, msg } = JSON.parse(line) as { time: string; level: string; msg: string };
  const at = new Date(time);
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().replace('T', ' ').replace('Z', '');
  return `${local} ${level.padEnd(5)} ${msg}`;
}
