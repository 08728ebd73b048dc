/**
 * SASL GSSAPI (RFC 4752), that is Kerberos, through the npm package `kerberos`, which wraps the system's own library.
 *
 * The package is asked for tickets and tokens; here is only the order of the exchange: tokens until both sides know each other, then one
 * message in which the server offers layers of protection and the client declines them, since ZooKeeper's protocol has no place for them.
 */
import type { SaslExchange, SaslMechanism } from '../auth/sasl.ts';
import type { ServerAddress } from '../transport.ts';

/** An identity to prove by Kerberos (RFC 4752), with the npm package `kerberos`. */
export interface GssapiOptions {
  readonly mechanism: 'GSSAPI';
  /** The service part of the servers' principal. Default: `zookeeper`, as in `zookeeper/zk1.example.com@EXAMPLE.COM`. */
  readonly serviceName?: string | undefined;
  /**
   * The host part. Default: the server's name in the connect string; the system's Kerberos library makes that canonical, or does not, as
   * krb5.conf says (dns_canonicalize_hostname).
   */
  readonly serviceHost?: string | undefined;
  /** Who to be, out of the tickets that there are: `app@EXAMPLE.COM`. Default: whoever the ticket cache or the client keytab is of. */
  readonly principal?: string | undefined;
}

/** What is used of the package. */
export interface KerberosPackage {
  readonly GSS_MECH_OID_KRB5: number;
  initializeClient(service: string, options: { readonly mechOID: number; readonly principal?: string }): Promise<KerberosClient>;
}

/** Tokens are base64. A step that has nothing to say gives null. */
interface KerberosClient {
  readonly contextComplete: boolean;
  step(challenge: string): Promise<string | null>;
  unwrap(challenge: string): Promise<string | null>;
  wrap(message: string, options: object): Promise<string | null>;
}

/** Of the layers that the server offers: the one that protects nothing. */
const noLayer = 1;
/** The layer chosen, the longest message taken in it, which is none, and no identity other than that of the ticket. */
const choice = Buffer.from([noLayer, 0, 0, 0]).toString('base64');

export class Gssapi implements SaslMechanism {
  readonly name = 'GSSAPI';
  readonly #options: GssapiOptions;
  readonly #kerberos: KerberosPackage;

  constructor(options: GssapiOptions, kerberos: KerberosPackage) {
    this.#options = options;
    this.#kerberos = kerberos;
  }

  exchange(server: ServerAddress): SaslExchange {
    const { serviceName = 'zookeeper', serviceHost = server.host, principal } = this.#options;
    const service = `${serviceName}@${serviceHost}`;
    let client: KerberosClient;
    let phase: 'context' | 'layer' | 'verdict' = 'context';
    return {
      begin: async () => {
        client = await explained(
          this.#kerberos.initializeClient(service, {
            mechOID: this.#kerberos.GSS_MECH_OID_KRB5,
            ...(principal === undefined ? {} : { principal }),
          }),
        );
        return bytesOf(await explained(client.step('')));
      },
      respond: async (challenge) => {
        if (phase === 'verdict') return undefined;
        if (challenge === null) throw new Error('the server has not been set up for Kerberos: it answers a token with none');
        const token = Buffer.from(challenge).toString('base64');
        if (phase === 'context') {
          const answer = await explained(client.step(token));
          if (client.contextComplete) phase = 'layer';
          return bytesOf(answer);
        }
        const offer = bytesOf(await explained(client.unwrap(token)));
        if ((offer[0]! & noLayer) === 0)
          throw new Error("the server insists on protecting the connection, which ZooKeeper's protocol cannot; TLS can");
        phase = 'verdict';
        return bytesOf(await explained(client.wrap(choice, {})));
      },
    };
  }
}

function bytesOf(token: string | null): Buffer {
  return Buffer.from(token ?? '', 'base64');
}

/** The library's words are about its own state; what helps is nearly always one of the same three things. */
async function explained<Result>(step: Promise<Result>): Promise<Result> {
  try {
    return await step;
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${words}; klist shows the tickets, kinit gets one, and the server's principal is zookeeper/<its host name>`, {
      cause,
    });
  }
}
