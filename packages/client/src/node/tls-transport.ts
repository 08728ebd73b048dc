/** TLS over node:tls, for a server's secureClientPort. */
import { isIP } from 'node:net';
import { X509Certificate } from 'node:crypto';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import type { ResolvedAddress, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import { checkOptions } from '../arguments.ts';
import { NodeTransport, nodeTransportOptionTypes, type NodeTransportOptions } from './node-transport.ts';
import { SocketCnxn } from './socket-cnxn.ts';
import { TlsContextLoader, type TlsOptions, tlsOptionTypes, type TlsContext } from './tls-context.ts';
import { chainErrorText, matchesName, reachesTrustAnchor, nameMismatchText, tlsErrorText } from './tls-errors.ts';

/** TLS over TCP: the transport of `connect` with the option `tls`. */
export class TlsTransport extends NodeTransport implements Transport {
  readonly #options: TlsOptions;
  readonly #contextLoader: TlsContextLoader;

  /**
   * Throws a TypeError for unknown options, and a ConnectOptionsError for options that exclude each
   * other.
   */
  constructor(options: TlsOptions = {}, socketOptions: NodeTransportOptions = {}) {
    checkOptions(options, tlsOptionTypes, 'new TlsTransport(options)');
    checkOptions(socketOptions, nodeTransportOptionTypes, 'new TlsTransport(tlsOptions, options)');
    super(socketOptions);
    this.#options = options;
    this.#contextLoader = new TlsContextLoader(options);
  }

  /**
   * Reads all files once, to report unreadable ones at once. Rejects with a ConnectOptionsError.
   */
  async check(): Promise<void> {
    await this.#contextLoader.load();
  }

  /** Connects to one address; calls `connected` after the server was verified. */
  override connect(address: ResolvedAddress, sink: TransportSink): TransportCnxn {
    const cnxn = new TlsCnxn();
    void this.#dial(address, sink, cnxn);
    return cnxn;
  }

  async #dial(address: ResolvedAddress, sink: TransportSink, cnxn: TlsCnxn): Promise<void> {
    let context: TlsContext;
    try {
      context = await this.#contextLoader.load();
    } catch (error) {
      if (!cnxn.isClosed) sink.closed((error as Error).message);
      return;
    }
    if (!cnxn.isClosed) cnxn.socket = this.#connectSecurely(address, sink, context);
  }

  #connectSecurely({ host, port, name = host }: ResolvedAddress, sink: TransportSink, context: TlsContext): SocketCnxn {
    const { serverName = name, hostnameVerification = true } = this.#options;
    const { hasCertificate } = this.#contextLoader;
    const socket = connect({
      host,
      port,
      secureContext: context.context,
      // An address is not allowed as a server name (RFC 6066).
      ...(isIP(serverName) === 0 ? { servername: serverName.replace(/\.$/, '') } : {}),
      // `peerProblem` verifies certificates before anything is sent: if Node did so itself, the
      // error could not name the rejected one.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    });
    this.prepare(socket);
    socket.setNoDelay(true);
    let isSecure = false;
    const cnxn = new SocketCnxn(socket, sink, {
      readyEvent: 'secureConnect',
      peerProblem: () => {
        isSecure = true;
        return peerProblem(socket, context, hostnameVerification ? serverName : undefined);
      },
      errorText: (error) => tlsErrorText(error, isSecure, hasCertificate),
    });
    socket.on('data', (bytes) => {
      if (!cnxn.received(bytes)) socket.pause();
    });
    return cnxn;
  }
}

/**
 * Why the server cannot be trusted; undefined if it can. Everything that is not clearly valid is
 * rejected.
 */
function peerProblem(socket: TLSSocket, { trustAnchors }: TlsContext, name: string | undefined): string | undefined {
  const chain = chainOf(socket);
  const [certificate] = chain;
  if (!socket.authorized) {
    const { authorizationError: error } = socket as { readonly authorizationError: Error | string | null };
    return chainErrorText(error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error), certificate);
  }
  if (certificate === undefined) return 'the server did not send a certificate';
  if (trustAnchors !== undefined && !reachesTrustAnchor(trustAnchors, chain))
    return chainErrorText('UNABLE_TO_GET_ISSUER_CERT', certificate);
  return name === undefined || matchesName(certificate, name) ? undefined : nameMismatchText(certificate, name);
}

/**
 * The chain from the server's own certificate upwards, as far as it is known. Called once: with
 * Node 20, reading the certificates of a socket removes them.
 */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const seen = new Set<string>();
  let link: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // A self-signed certificate is its own issuer.
  while (link?.raw !== undefined && !seen.has(link.fingerprint256)) {
    seen.add(link.fingerprint256);
    chain.push(new X509Certificate(link.raw));
    link = link.issuerCertificate;
  }
  return chain;
}

/**
 * Stands for a connection while its certificates are being read; then delegates to the one over the
 * socket.
 */
class TlsCnxn implements TransportCnxn {
  #socket: SocketCnxn | undefined;
  isClosed = false;

  set socket(socket: SocketCnxn) {
    this.#socket = socket;
  }

  send(bytes: Uint8Array): void {
    this.#socket!.send(bytes);
  }

  end(): void {
    this.isClosed = true;
    this.#socket?.end();
  }

  destroy(): void {
    this.isClosed = true;
    this.#socket?.destroy();
  }
}
