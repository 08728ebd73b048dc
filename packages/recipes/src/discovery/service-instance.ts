/** One instance of a service: where it is to be found, and what it says of itself. */
import { type Kind, kinds, nested, oneOf, optionKinds, orOneOf } from '@tskeeper/client/internal';

/**
 * How long the znode of an instance lives.
 * - `dynamic`: as long as the session of who has registered it.
 * - `static`, `permanent`: until it is unregistered.
 * - `dynamicSequential`: as `dynamic`, with a number behind its name. Such are read, as Curator may write them, and not registered here.
 */
export type ServiceType = 'dynamic' | 'static' | 'permanent' | 'dynamicSequential';

/** Curator's words. */
export const serviceTypeWord: Readonly<Record<ServiceType, string>> = {
  dynamic: 'DYNAMIC',
  static: 'STATIC',
  permanent: 'PERMANENT',
  dynamicSequential: 'DYNAMIC_SEQUENTIAL',
};

/** One instance, as one answer of a server had it. It never changes; when its data do, another takes its place. (Curator's ServiceInstance.) */
export interface ServiceInstance<Payload = unknown> {
  /** Of the service. */
  readonly name: string;
  /** Of the instance among those of the service. */
  readonly id: string;
  /** A host name or an address. */
  readonly address: string | null;
  /** For connections without TLS; null when there is none. */
  readonly port: number | null;
  /** For connections with TLS; null when there is none. */
  readonly sslPort: number | null;
  /** What else it says of itself; null when that is nothing. */
  readonly payload: Payload;
  /** When it says that it was registered, in ms since 1970; when it does not, when its znode was made, by the clock of the leader. */
  readonly registrationTimeMs: number;
  /** How long its znode lives. */
  readonly serviceType: ServiceType;
  /** How its address is put together, `{scheme}://{address}:{port}`; null when it does not say. See `uriOf`. */
  readonly uriSpec: string | null;
  /** False: not to be used, though it is there. */
  readonly enabled: boolean;
}

/** Of an instance that is to be registered. */
export type ServiceSettings<Payload> = InstanceSettings &
  (null extends Payload ? PayloadSettings<Payload> : Required<PayloadSettings<Payload>>);

/** What can be said of an instance, besides its payload. */
export interface InstanceSettings {
  /** Of the service. */
  readonly name: string;
  /** Of the instance among those of the service. Default: `address:port`, or the address alone; so an instance that begins again takes the place of itself. */
  readonly id?: string | undefined;
  /** A host name or an address, by which others find it. */
  readonly address: string;
  /** Default: none. */
  readonly port?: number | undefined;
  /** For connections with TLS. Default: none. */
  readonly sslPort?: number | undefined;
  /** Default: `dynamic`. */
  readonly serviceType?: Exclude<ServiceType, 'dynamicSequential'> | undefined;
  /** `{scheme}://{address}:{port}`; see `uriOf`. Default: none. */
  readonly uriSpec?: string | undefined;
  /** Whether it is to be used. Default: true. */
  readonly enabled?: boolean | undefined;
  /** In ms since 1970. Default: none is written, and when the znode was made is shown. */
  readonly registrationTimeMs?: number | undefined;
}

/** What an instance says of itself. */
export interface PayloadSettings<Payload> {
  /** Anything that JSON has words for. Default: null. */
  readonly payload?: Payload;
}

/** What can be changed of an instance that is registered. What is left out, or undefined, stays. */
export type InstanceChange<Payload> = Partial<
  Pick<ServiceInstance<Payload>, 'address' | 'port' | 'sslPort' | 'payload' | 'uriSpec' | 'enabled'>
>;

const port: Kind = {
  wanted: 'a whole number from 0 to 65535',
  isNumber: true,
  fits: (given) => Number.isInteger(given) && (given as number) >= 0 && (given as number) <= 65_535,
};
const payload: Kind = { wanted: 'what JSON can hold', fits: () => true };

/** What is registered. */
export const serviceKind: Kind = nested(
  optionKinds({
    name: kinds.string,
    address: kinds.string,
    port,
    sslPort: port,
    id: kinds.string,
    serviceType: oneOf('dynamic', 'static', 'permanent'),
    uriSpec: kinds.string,
    enabled: kinds.boolean,
    registrationTimeMs: { wanted: 'a number of milliseconds since 1970', fits: (given) => typeof given === 'number' },
    payload,
  }),
  ['name', 'address'],
);

/** What is changed of an instance. */
export const changeKind: Kind = nested(
  optionKinds({
    enabled: kinds.boolean,
    address: orOneOf(kinds.string, null),
    port: orOneOf(port, null),
    sslPort: orOneOf(port, null),
    uriSpec: orOneOf(kinds.string, null),
    payload,
  }),
);
