/** TLS over node:tls, for a server's secureClientPort. */
import { isIP } from 'node:net';
import { X509Certificate } from 'node:crypto';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import type { DialledAddress, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import { checkOptions } from '../arguments.ts';
import { NodeTransport, nodeTransportOptions, type NodeTransportOptions } from './node-transport.ts';
import { SocketCnxn } from './socket-cnxn.ts';
import { TlsMaterial, type TlsOptions, tlsOptionKinds, type TlsSetting } from './tls-material.ts';
import { chainFault, isFor, leadsTo, nameFault, wordsOfTls } from './tls-trouble.ts';

/** TLS over TCP: what `connect` uses for the option `tls`. */
export class TlsTransport extends NodeTransport implements Transport {
  readonly #options: TlsOptions;
  readonly #material: TlsMaterial;

  /** Throws a TypeError for unknown options, and a ConnectOptionsError for options that cannot be meant together. */
  constructor(options: TlsOptions = {}, socketOptions: NodeTransportOptions = {}) {
    checkOptions(options, tlsOptionKinds, 'new TlsTransport(options)');
    checkOptions(socketOptions, nodeTransportOptions, 'new TlsTransport(tlsOptions, options)');
    super(socketOptions);
    this.#options = options;
    this.#material = new TlsMaterial(options);
  }

  /** Reads all that is needed once, to say at once what cannot be read. Rejects with a ConnectOptionsError. */
  async check(): Promise<void> {
    await this.#material.setting();
  }

  /** Dials one address; `connected` is told when the server has been verified. */
  override connect(address: DialledAddress, sink: TransportSink): TransportCnxn {
    const cnxn = new TlsCnxn();
    void this.#dial(address, sink, cnxn);
    return cnxn;
  }

  async #dial(address: DialledAddress, sink: TransportSink, cnxn: TlsCnxn): Promise<void> {
    let setting: TlsSetting;
    try {
      setting = await this.#material.setting();
    } catch (error) {
      if (!cnxn.isOver) sink.closed((error as Error).message);
      return;
    }
    if (!cnxn.isOver) cnxn.socket = this.#secured(address, sink, setting);
  }

  #secured({ host, port, name = host }: DialledAddress, sink: TransportSink, setting: TlsSetting): SocketCnxn {
    const { serverName = name, hostnameVerification = true } = this.#options;
    const { hasCertificate } = this.#material;
    const socket = connect({
      host,
      port,
      secureContext: setting.context,
      // Addresses are no names to be asked for (RFC 6066).
      ...(isIP(serverName) === 0 ? { servername: serverName.replace(/\.$/, '') } : {}),
      // Certificates are judged by `peerFault`, before anything is sent: if Node did so itself, the one that was refused could not be named.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    });
    this.prepare(socket);
    socket.setNoDelay(true);
    let secure = false;
    const cnxn = new SocketCnxn(socket, sink, {
      readyEvent: 'secureConnect',
      fault: () => {
        secure = true;
        return peerFault(socket, setting, hostnameVerification ? serverName : undefined);
      },
      words: (error) => wordsOfTls(error, secure, hasCertificate),
    });
    socket.on('data', (bytes) => {
      if (!cnxn.received(bytes)) socket.pause();
    });
    return cnxn;
  }
}

/** Why the server is not to be trusted. Whatever is not clearly right is wrong. */
function peerFault(socket: TLSSocket, { anchors }: TlsSetting, name: string | undefined): string | undefined {
  const chain = chainOf(socket);
  const [certificate] = chain;
  if (!socket.authorized) {
    const { authorizationError: error } = socket as { readonly authorizationError: Error | string | null };
    return chainFault(error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error), certificate);
  }
  if (certificate === undefined) return 'the server has shown no certificate';
  if (anchors !== undefined && !leadsTo(anchors, chain)) return chainFault('UNABLE_TO_GET_ISSUER_CERT', certificate);
  return name === undefined || isFor(certificate, name) ? undefined : nameFault(certificate, name);
}

/** From the server's own certificate upwards, as far as it is known. Asked once: for a socket of Node 20, looking at its certificates takes them away. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const seen = new Set<string>();
  let link: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // One that has signed itself is its own issuer.
  while (link?.raw !== undefined && !seen.has(link.fingerprint256)) {
    seen.add(link.fingerprint256);
    chain.push(new X509Certificate(link.raw));
    link = link.issuerCertificate;
  }
  return chain;
}

/** A connection whose certificates are still being read, and then the one over the socket. */
class TlsCnxn implements TransportCnxn {
  #socket: SocketCnxn | undefined;
  isOver = false;

  set socket(socket: SocketCnxn) {
    this.#socket = socket;
  }

  send(bytes: Uint8Array): void {
    this.#socket!.send(bytes);
  }

  end(): void {
    this.isOver = true;
    this.#socket?.end();
  }

  destroy(): void {
    this.isOver = true;
    this.#socket?.destroy();
  }
}
