/** One instance of a service: its address and other fields. */
import { type ValueType, valueTypes, objectOf, oneOf, optionTypes, orOneOf } from '@tskeeper/client/internal';

/**
 * How long the znode of an instance lives.
 * - `dynamic`: as long as the session that has registered it.
 * - `static`, `permanent`: until it is unregistered.
 * - `dynamicSequential`: as `dynamic`, with a number after its name. It can be read, as Curator may
 *   write it, but not registered here.
 */
export type ServiceType = 'dynamic' | 'static' | 'permanent' | 'dynamicSequential';

/** Curator's words. */
export const serviceTypeNames: Readonly<Record<ServiceType, string>> = {
  dynamic: 'DYNAMIC',
  static: 'STATIC',
  permanent: 'PERMANENT',
  dynamicSequential: 'DYNAMIC_SEQUENTIAL',
};

/**
 * One instance, as one reply of a server had it. It never changes; when its data do, a new value
 * replaces it. (Curator's ServiceInstance.)
 */
export interface ServiceInstance<Payload = unknown> {
  /** Of the service. */
  readonly name: string;
  /** Of the instance, unique within the service. */
  readonly id: string;
  /** A host name or an address. */
  readonly address: string | null;
  /** For connections without TLS; null if there is none. */
  readonly port: number | null;
  /** For connections with TLS; null if there is none. */
  readonly sslPort: number | null;
  /** Data of the program; null if there are none. */
  readonly payload: Payload;
  /**
   * When it was registered according to its data, in ms since 1970; if these do not contain it,
   * when its znode was created, by the clock of the leader.
   */
  readonly registrationTimeMs: number;
  /** How long its znode lives. */
  readonly serviceType: ServiceType;
  /** How to build its URI, `{scheme}://{address}:{port}`; null if there is none. See `buildUri`. */
  readonly uriSpec: string | null;
  /** False: registered, but not to be used. */
  readonly enabled: boolean;
}

/** An instance to be registered. */
export type ServiceSettings<Payload> = InstanceSettings &
  (null extends Payload ? PayloadSettings<Payload> : Required<PayloadSettings<Payload>>);

/** The fields of an instance, except its payload. */
export interface InstanceSettings {
  /** Of the service. */
  readonly name: string;
  /**
   * Of the instance, unique within the service. Default: `address:port`, or the address alone; so
   * an instance that restarts replaces itself.
   */
  readonly id?: string | undefined;
  /** A host name or an address for its clients. */
  readonly address: string;
  /** Default: none. */
  readonly port?: number | undefined;
  /** For connections with TLS. Default: none. */
  readonly sslPort?: number | undefined;
  /** Default: `dynamic`. */
  readonly serviceType?: Exclude<ServiceType, 'dynamicSequential'> | undefined;
  /** `{scheme}://{address}:{port}`; see `buildUri`. Default: none. */
  readonly uriSpec?: string | undefined;
  /** Whether it may be used. Default: true. */
  readonly enabled?: boolean | undefined;
  /** In ms since 1970. Default: none is written, and readers show when the znode was created. */
  readonly registrationTimeMs?: number | undefined;
}

/** The payload of an instance. */
export interface PayloadSettings<Payload> {
  /** Any JSON value. Default: null. */
  readonly payload?: Payload;
}

/**
 * The fields that can be changed of a registered instance. Fields that are left out, or undefined,
 * stay.
 */
export type InstanceChange<Payload> = Partial<
  Pick<ServiceInstance<Payload>, 'address' | 'port' | 'sslPort' | 'payload' | 'uriSpec' | 'enabled'>
>;

const port: ValueType = {
  expected: 'a whole number from 0 to 65535',
  isNumber: true,
  accepts: (given) => Number.isInteger(given) && (given as number) >= 0 && (given as number) <= 65_535,
};
const payload: ValueType = { expected: 'what JSON can hold', accepts: () => true };

/** An instance to be registered. */
export const serviceSettingsType: ValueType = objectOf(
  optionTypes({
    name: valueTypes.string,
    address: valueTypes.string,
    port,
    sslPort: port,
    id: valueTypes.string,
    serviceType: oneOf('dynamic', 'static', 'permanent'),
    uriSpec: valueTypes.string,
    enabled: valueTypes.boolean,
    registrationTimeMs: { expected: 'a number of milliseconds since 1970', accepts: (given) => typeof given === 'number' },
    payload,
  }),
  ['name', 'address'],
);

/** A change of an instance. */
export const instanceChangeType: ValueType = objectOf(
  optionTypes({
    enabled: valueTypes.boolean,
    address: orOneOf(valueTypes.string, null),
    port: orOneOf(port, null),
    sslPort: orOneOf(port, null),
    uriSpec: orOneOf(valueTypes.string, null),
    payload,
  }),
);
