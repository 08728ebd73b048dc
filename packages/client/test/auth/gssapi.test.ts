/**
 * The exchange of RFC 4752 with a simulated package `kerberos`; its order needs no key distribution
 * centre.
 */
import { describe, expect, it } from 'vitest';
import { Gssapi, type GssapiOptions, type KerberosPackage } from '../../src/node/gssapi.ts';

const base64 = (bytes: string | readonly number[]) => Buffer.from(bytes as string).toString('base64');
const text = (token: Uint8Array | undefined) => (token === undefined ? undefined : Buffer.from(token).toString());

/** Authenticates the server after two steps, and wraps with brackets. */
function played({ layers = 7, says = [] as string[], fails = '' } = {}): KerberosPackage & { readonly says: string[] } {
  let steps = 0;
  const note = async (line: string, answer: string | null): Promise<string | null> => {
    says.push(line);
    if (fails !== '' && line.startsWith(fails)) throw new Error('No Kerberos credentials available');
    return Promise.resolve(answer);
  };
  return {
    says,
    GSS_MECH_OID_KRB5: 9,
    initializeClient: async (service, options) => {
      await note(`client ${service} ${JSON.stringify(options)}`, null);
      return {
        get contextComplete() {
          return steps >= 2;
        },
        step: (challenge) => {
          steps++;
          return note(`step ${Buffer.from(challenge, 'base64').toString()}`, steps === 1 ? base64('AP-REQ') : null);
        },
        unwrap: (challenge) => note(`unwrap ${Buffer.from(challenge, 'base64').toString()}`, base64([layers, 1, 0, 0])),
        wrap: (message) => note(`wrap ${Buffer.from(message, 'base64').toString('hex')}`, base64('[choice]')),
      };
    },
  };
}

const server = { host: 'zk1.example.com', port: 2181 };
const exchange = (kerberos: KerberosPackage, options: Partial<GssapiOptions> = {}) =>
  new Gssapi({ mechanism: 'GSSAPI', ...options }, kerberos).startExchange(server);

describe('A89, B42: GSSAPI', () => {
  it('proves the identity, then declines the protection layers, then waits for the result', async () => {
    const kerberos = played();
    const sasl = exchange(kerberos);
    expect(text(await sasl.firstToken())).toBe('AP-REQ');
    expect(text(await sasl.nextToken(Buffer.from('AP-REP')))).toBe('');
    expect(text(await sasl.nextToken(Buffer.from('offer')))).toBe('[choice]');
    expect(await sasl.nextToken(null)).toBe(undefined);
    expect(kerberos.says).toEqual([
      'client zookeeper@zk1.example.com {"mechOID":9}',
      'step ',
      'step AP-REP',
      'unwrap offer',
      // No layer, message length 0, no other identity.
      'wrap 01000000',
    ]);
  });

  it('requests the ticket of the configured principal, service and host', async () => {
    const kerberos = played();
    await exchange(kerberos, { principal: 'app@EXAMPLE.COM', serviceName: 'zk', serviceHost: 'ensemble' }).firstToken();
    expect(kerberos.says[0]).toBe('client zk@ensemble {"mechOID":9,"principal":"app@EXAMPLE.COM"}');
  });

  it.each(['client', 'step'])('adds a remedy to an error of Kerberos (%s)', async (fails) => {
    await expect(exchange(played({ fails })).firstToken()).rejects.toThrow(
      "No Kerberos credentials available; klist shows the tickets, kinit gets one, and the server's principal is zookeeper/<its host name>",
    );
  });

  it('rejects a server without Kerberos, and one that requires a protection layer', async () => {
    const without = exchange(played());
    await without.firstToken();
    await expect(without.nextToken(null)).rejects.toThrow('the server is not configured for Kerberos');
    const insisting = exchange(played({ layers: 6 }));
    await insisting.firstToken();
    await insisting.nextToken(Buffer.from('AP-REP'));
    await expect(insisting.nextToken(Buffer.from('offer'))).rejects.toThrow('the server requires a protection layer');
  });
});
