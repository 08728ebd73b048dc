/**
 * Four letter words: a server describes itself in plain text to a client that sends four bytes
 * instead of a handshake.
 */
import { ErrorCode, type Millis } from '@tskeeper/protocol';
import { functionSignatures } from './function-signatures.ts';
import { type Clock, timerMsMax } from './clock.ts';
import { formatServer, parseServerList } from './connect-string.ts';
import { KeeperError, RequestFailure } from './keeper-error.ts';
import { NodeTransport } from './node/node-transport.ts';
import { systemClock } from './node/system-clock.ts';
import type { TlsOptions } from './node/tls-context.ts';
import { TlsTransport } from './node/tls-transport.ts';
import type { ServerAddress, Transport, TransportCnxn } from './transport.ts';

/** The options of `fourLetterWord`. */
export interface FourLetterWordOptions {
  /** Limit from the look-up of the name to the end of the answer. Default: 5 000. */
  readonly timeoutMs?: Millis | undefined;
  /** Cancels the call, which rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** As in `ConnectOptions`, for a secureClientPort. Default: false. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** Default: TCP, or TLS if `tls` is set. */
  readonly transport?: Transport | undefined;
  /** Default: the clock of the machine. */
  readonly clock?: Clock | undefined;
}

const timeoutMsDefault = 5000;
/** `dump` of a hundred thousand sessions has a few megabytes. */
const answerBytesMax = 64 * 1024 * 1024;
const refusedByWhitelist = 'is not executed because it is not in the whitelist';

/**
 * Sends a word such as `srvr`, `ruok` or `mntr` to one server, `host:port`, on a connection of its
 * own and without a session; resolves with the text. Tries the addresses of a name in turn. Rejects
 * with a KeeperError: ConnectionLoss if the server cannot be reached or breaks the connection,
 * RequestTimeout, Unimplemented if its `4lw.commands.whitelist` does not contain the word (by
 * default it contains only `srvr`), BadArguments if `word` is not four letters or `server` names
 * several servers; with a ConnectStringError if `server` is not a server; or with the signal's
 * reason. Source: ZooKeeper's administrator's guide, "The Four Letter Words".
 */
export async function fourLetterWord(server: string, word: string, options: FourLetterWordOptions = {}): Promise<string> {
  functionSignatures.fourLetterWord.check(arguments.length, options, server, word);
  try {
    return await sendWord(server, word, options);
  } catch (error) {
    throw error instanceof RequestFailure ? new KeeperError('fourLetterWord', undefined, error) : error;
  }
}

async function sendWord(server: string, word: string, options: FourLetterWordOptions): Promise<string> {
  const { timeoutMs = timeoutMsDefault, signal, clock = systemClock } = options;
  if (!/^[a-z]{4}$/.test(word))
    throw badArguments(`a four letter word must be four lower-case letters, such as srvr, not ${JSON.stringify(word)}`);
  const [address, ...others] = parseServerList(server);
  if (others.length > 0) throw badArguments(`fourLetterWord takes one server, not ${JSON.stringify(server)}`);
  const transport = transportForWord(options);
  if (transport instanceof TlsTransport) await transport.check();
  signal?.throwIfAborted();
  const request = new FourLetterRequest(address!, word, transport);
  const answer = request.send();
  const timer =
    timeoutMs > timerMsMax
      ? undefined
      : clock.after(timeoutMs, () =>
          request.abort(new RequestFailure(ErrorCode.RequestTimeout, 'unknown', `no answer from ${server} within ${timeoutMs} ms`)),
        );
  const onAbort = () => request.abort(signal!.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const text = await answer;
    if (!text.startsWith(word) || !text.includes(refusedByWhitelist)) return text;
    throw new RequestFailure(ErrorCode.Unimplemented, 'refused', `the 4lw.commands.whitelist of ${server} does not have ${word}`);
  } finally {
    if (timer !== undefined) clock.cancel(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

class FourLetterRequest {
  readonly #server: ServerAddress;
  readonly #word: string;
  readonly #transport: Transport;
  #cnxn: TransportCnxn | undefined;
  #isAborted = false;
  #settle!: { resolve(text: string): void; reject(reason: unknown): void };

  constructor(server: ServerAddress, word: string, transport: Transport) {
    this.#server = server;
    this.#word = word;
    this.#transport = transport;
  }

  send(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      void this.#tryAddresses().catch(reject);
    });
  }

  abort(reason: unknown): void {
    this.#isAborted = true;
    this.#cnxn?.destroy();
    this.#settle.reject(reason);
  }

  /** Tries the addresses of the server until one of them answers. */
  async #tryAddresses(): Promise<void> {
    const { host } = this.#server;
    let trouble = 'its name has no address';
    let addresses: readonly string[] = [host];
    try {
      if (this.#transport.resolve !== undefined) addresses = await this.#transport.resolve(host);
    } catch (error) {
      addresses = [];
      trouble = `address lookup failed: ${error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error)}`;
    }
    for (const address of addresses) {
      if (this.#isAborted) return;
      const { text, error } = await this.#sendTo(address);
      if (text !== undefined) {
        this.#settle.resolve(text);
        return;
      }
      trouble = error;
    }
    throw new RequestFailure(ErrorCode.ConnectionLoss, 'unknown', `${formatServer(this.#server)}: ${trouble}`);
  }

  /** The text is complete when the server closes the connection without an error. */
  #sendTo(address: string): Promise<{ readonly text: string; readonly error?: never } | { readonly text?: never; readonly error: string }> {
    return new Promise((resolve) => {
      const { host, port } = this.#server;
      const pieces: Buffer[] = [];
      let isOpen = false;
      let length = 0;
      this.#cnxn = this.#transport.connect(
        { host: address, port, name: host },
        {
          connected: () => {
            isOpen = true;
            this.#cnxn!.send(Buffer.from(this.#word));
          },
          received: (bytes) => {
            length += bytes.length;
            if (length <= answerBytesMax) {
              pieces.push(Buffer.from(bytes));
            } else {
              this.#cnxn!.destroy();
              resolve({ error: `its answer is longer than ${answerBytesMax / 1024 / 1024} MiB` });
            }
          },
          closed: (error) =>
            resolve(
              isOpen && error === undefined ? { text: Buffer.concat(pieces).toString() } : { error: error ?? 'the connection was closed' },
            ),
        },
      );
    });
  }
}

function transportForWord({ transport, tls = false }: FourLetterWordOptions): Transport {
  if (tls === false) return transport ?? new NodeTransport();
  if (transport !== undefined) throw badArguments('tls and transport exclude each other: a custom transport sets up its own TLS');
  return new TlsTransport(tls === true ? {} : tls);
}

function badArguments(reason: string): RequestFailure {
  return new RequestFailure(ErrorCode.BadArguments, 'notSent', reason);
}
