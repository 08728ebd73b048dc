/** What programs give to recipes, looked at when it is given: so a mistake is told where it is made, and not by a request that fails later, or by nobody. */
import type { ClientView } from '@tskeeper/client';
import { pathFault } from '@tskeeper/client/internal';
import type { SessionSource } from './sessions/session-source.ts';
import type { WaitOptions } from './waiting/wait-options.ts';

/** What a recipe works with, and the path of what it is about. Throws a TypeError. */
export function checkPlace(source: SessionSource, path: string): void {
  checkSource(source);
  checkPath(path);
}

/** Throws a TypeError for what is neither a client, nor a view of one, nor Sessions. */
export function checkSource(source: SessionSource): void {
  if (!isClient(source) && !(isObject(source) && isClient(source['client'])))
    throw new TypeError(`a recipe takes a client, a view of one, or Sessions, not ${named(source)}; ${howToConnect}`);
}

/** Throws a TypeError for what is neither a client nor a view of one. */
export function checkClient(zk: ClientView): void {
  if (isClient(zk)) return;
  const isSessions = isObject(zk) && isClient(zk['client']);
  const remedy = isSessions ? 'hand over the client of each session: sessions.each((client) => ...)' : howToConnect;
  throw new TypeError(`expected a client, or a view of one, not ${isSessions ? 'Sessions' : named(zk)}; ${remedy}`);
}

const howToConnect = 'await connect() of @tskeeper/client, or Sessions.start(), and hand over the result';

/** Throws a TypeError for what is no path. */
export function checkPath(path: string): void {
  const fault = typeof path === 'string' ? pathFault(path) : 'must be a text';
  if (fault !== undefined) throw new TypeError(`${named(path)} is no path of a znode: it ${fault}`);
}

/** What stands in the name of a znode. Throws a TypeError for what cannot; `what`: `the name of a lock`. */
export function checkName(given: unknown, what: string): void {
  if (typeof given !== 'string' || given === '' || given.includes('/'))
    throw new TypeError(`${what} is a text without "/", and not empty, so not ${named(given)}`);
}

/** Throws a TypeError for what no znode can have. */
export function checkData(given: unknown): void {
  if (given !== null && typeof given !== 'string' && !(given instanceof Uint8Array))
    throw new TypeError(`data are a Uint8Array, a string or null, not ${named(given)}`);
}

/** Throws a TypeError for what does not write and read data. */
export function checkCodec(given: unknown, example: string): void {
  if (!isObject(given) || typeof given['encode'] !== 'function' || typeof given['decode'] !== 'function')
    throw new TypeError(`data are written and read by encode and decode of an object, as ${example}, not by ${named(given)}`);
}

/** Throws a TypeError for what is no array; `what`: `items are`. */
export function checkArray(given: unknown, what: string): void {
  if (!Array.isArray(given)) throw new TypeError(`${what} an array, not ${named(given)}`);
}

/** Throws a TypeError for what is no function; `what`: `work`. */
export function checkFunction(given: unknown, what: string): void {
  if (typeof given !== 'function') throw new TypeError(`${what} is a function, not ${named(given)}`);
}

/** Throws a TypeError for what is no object; `example`: `{ timeoutMs: 5000 }`. */
export function checkOptions(given: unknown, example: string, what = 'options are'): void {
  if (!isObject(given)) throw new TypeError(`${what} an object, as ${example}, not ${named(given)}`);
}

/** How other libraries call `timeoutMs` and `signal`, and how these are misspelled. */
const likeTimeoutMs = /^(max_?)?(time_?out|wait)(_?(ms|millis|milliseconds|time))?$/i;
const likeSignal = /^(abort_?)?(signal|controller)$/i;

/**
 * Throws a TypeError or a RangeError for what does not bound a wait, one that would have no bound by a slip of the pen among them. What else is in the options is passed
 * over, as compilers do with all but literals.
 */
export function checkWaitOptions(options: WaitOptions): void {
  checkOptions(options, '{ timeoutMs: 5000 }');
  const { signal, timeoutMs } = options;
  for (const name of Object.keys(options)) {
    if (timeoutMs === undefined && name !== 'timeoutMs' && likeTimeoutMs.test(name))
      throw new TypeError(`there is no option ${named(name)}; how long to wait is timeoutMs, in milliseconds`);
    if (signal === undefined && name !== 'signal' && likeSignal.test(name))
      throw new TypeError(`there is no option ${named(name)}; what ends a wait is signal, an AbortSignal`);
  }
  if (signal !== undefined && typeof (signal as Partial<AbortSignal> | null)?.throwIfAborted !== 'function')
    throw new TypeError(`signal is an AbortSignal, not ${named(signal)}; of an AbortController hand over the signal`);
  if (timeoutMs !== undefined && (typeof timeoutMs !== 'number' || Number.isNaN(timeoutMs)))
    throw new RangeError(`timeoutMs is a number of milliseconds, not ${named(timeoutMs)}; leave it out to wait for as long as it takes`);
}

/** For an error: what it is, of what has no words of its own. */
export function named(given: unknown): string {
  if (typeof given === 'string') return JSON.stringify(given);
  if (Array.isArray(given)) return 'an array';
  if (isObject(given)) return given instanceof Promise ? 'a promise' : `an object of ${given.constructor?.name ?? 'no class'}`;
  if (typeof given === 'function') return 'a function';
  return String(given);
}

function isClient(given: unknown): given is ClientView {
  return isObject(given) && isObject(given['clock']) && typeof given['watch'] === 'function';
}

function isObject(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null;
}
