/**
 * SASL GSSAPI (RFC 4752), which is Kerberos, with the npm package `kerberos`, a wrapper of the
 * system's library.
 *
 * The package creates tickets and tokens; this file implements the order of the exchange: tokens
 * until both sides are authenticated, then one message in which the server offers protection layers
 * and the client declines them, as ZooKeeper's protocol does not support them.
 */
import type { SaslExchange, SaslMechanism } from '../auth/sasl.ts';
import type { ServerAddress } from '../transport.ts';

/** An identity to prove by Kerberos (RFC 4752), with the npm package `kerberos`. */
export interface GssapiOptions {
  readonly mechanism: 'GSSAPI';
  /**
   * The service part of the servers' principal. Default: `zookeeper`, as in
   * `zookeeper/zk1.example.com@EXAMPLE.COM`.
   */
  readonly serviceName?: string | undefined;
  /**
   * The host part of the servers' principal. Default: the server's name in the connect string;
   * krb5.conf says whether the system's Kerberos library canonicalizes it
   * (dns_canonicalize_hostname).
   */
  readonly serviceHost?: string | undefined;
  /**
   * The client's principal, for which a ticket must exist: `app@EXAMPLE.COM`. Default: the
   * principal of the ticket cache or the client keytab.
   */
  readonly principal?: string | undefined;
}

/** The part of the package that is used. */
export interface KerberosPackage {
  readonly GSS_MECH_OID_KRB5: number;
  initializeClient(service: string, options: { readonly mechOID: number; readonly principal?: string }): Promise<KerberosClient>;
}

/** Tokens are base64. A step without a token returns null. */
interface KerberosClient {
  readonly contextComplete: boolean;
  step(challenge: string): Promise<string | null>;
  unwrap(challenge: string): Promise<string | null>;
  wrap(message: string, options: object): Promise<string | null>;
}

/** The layer without protection, among those that the server offers. */
const noLayer = 1;
/**
 * The chosen layer, a maximum message length of 0, and no identity other than that of the ticket.
 */
const noProtectionChoice = Buffer.from([noLayer, 0, 0, 0]).toString('base64');

export class Gssapi implements SaslMechanism {
  readonly name = 'GSSAPI';
  readonly #options: GssapiOptions;
  readonly #kerberos: KerberosPackage;

  constructor(options: GssapiOptions, kerberos: KerberosPackage) {
    this.#options = options;
    this.#kerberos = kerberos;
  }

  startExchange(server: ServerAddress): SaslExchange {
    const { serviceName = 'zookeeper', serviceHost = server.host, principal } = this.#options;
    const service = `${serviceName}@${serviceHost}`;
    let client: KerberosClient;
    let phase: 'context' | 'layer' | 'outcome' = 'context';
    return {
      firstToken: async () => {
        client = await withKerberosHint(
          this.#kerberos.initializeClient(service, {
            mechOID: this.#kerberos.GSS_MECH_OID_KRB5,
            ...(principal === undefined ? {} : { principal }),
          }),
        );
        return tokenBytes(await withKerberosHint(client.step('')));
      },
      nextToken: async (challenge) => {
        if (phase === 'outcome') return undefined;
        if (challenge === null) throw new Error('the server is not configured for Kerberos: it answered a token without a token');
        const token = Buffer.from(challenge).toString('base64');
        if (phase === 'context') {
          const answer = await withKerberosHint(client.step(token));
          if (client.contextComplete) phase = 'layer';
          return tokenBytes(answer);
        }
        const offer = tokenBytes(await withKerberosHint(client.unwrap(token)));
        if ((offer[0]! & noLayer) === 0)
          throw new Error("the server requires a protection layer, which ZooKeeper's protocol does not support; use TLS instead");
        phase = 'outcome';
        return tokenBytes(await withKerberosHint(client.wrap(noProtectionChoice, {})));
      },
    };
  }
}

function tokenBytes(token: string | null): Buffer {
  return Buffer.from(token ?? '', 'base64');
}

/** The library's message describes its own state; the cause is nearly always one of these three. */
async function withKerberosHint<Result>(step: Promise<Result>): Promise<Result> {
  try {
    return await step;
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${words}; klist shows the tickets, kinit gets one, and the server's principal is zookeeper/<its host name>`, {
      cause,
    });
  }
}
