/**
 * Instances as JSON, in the format of Curator's x-discovery, so that programs with either package
 * find each other.
 *
 *     {"name":"api","id":"10.0.0.1:8080","address":"10.0.0.1","port":8080,"sslPort":null,
 *      "payload":null,"registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":{"parts":[
 *      {"value":"scheme","variable":true},{"value":"://","variable":false}]}}
 *
 * `enabled` is written only when it is false: Curator omits it by default, since its releases
 * before CURATOR-275 do not read unknown fields. Unknown fields are kept when an instance is
 * changed.
 */
import type { Stat } from '@tskeeper/client';
import { parseJson } from '@tskeeper/client/internal';
import { type Validator, validate } from '../codecs/standard-schema.ts';
import { type ServiceInstance, type ServiceType, serviceTypeNames } from './service-instance.ts';
import { parseUriSpec, type UriPart, formatUriSpec } from './uri-spec.ts';

/** All fields of an instance, as written. */
export type RawInstance = Readonly<Record<string, unknown>>;

const utf8 = new TextDecoder('utf-8', { fatal: true });
const serviceTypeByName = new Map(Object.entries(serviceTypeNames).map(([type, word]) => [word, type as ServiceType]));

/** Throws if the data are not an instance. */
export function parseRawInstance(data: Uint8Array | null): RawInstance {
  const raw = parseJson(utf8.decode(data ?? undefined));
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw new TypeError('an instance must be a JSON object');
  return raw as RawInstance;
}

/** Throws if a field is invalid. */
export function parseInstance<Payload>(
  raw: RawInstance,
  stat: Stat,
  payloadValidator: Validator<Payload> | undefined,
): ServiceInstance<Payload> {
  const { payload = null } = raw;
  const word = raw['serviceType'] ?? 'DYNAMIC';
  const serviceType = serviceTypeByName.get(word as string);
  if (serviceType === undefined) throw new TypeError(`unknown serviceType ${JSON.stringify(word)}`);
  const registered = field(raw, 'registrationTimeUTC', 'number') ?? 0;
  return {
    name: field(raw, 'name', 'string') ?? throwMissing('name'),
    id: field(raw, 'id', 'string') ?? throwMissing('id'),
    address: field(raw, 'address', 'string'),
    port: field(raw, 'port', 'number'),
    sslPort: field(raw, 'sslPort', 'number'),
    payload: payloadValidator === undefined ? (payload as Payload) : validate(payloadValidator, payload),
    registrationTimeMs: registered === 0 ? stat.ctime : registered,
    serviceType,
    uriSpec: parseStoredUriSpec(raw['uriSpec']),
    enabled: field(raw, 'enabled', 'boolean') ?? true,
  };
}

/** The known fields of an instance, over all fields that were read. */
export function mergeRawInstance(raw: RawInstance, changes: Partial<ServiceInstance>): RawInstance {
  const { name, id, address, port, sslPort, payload, registrationTimeMs, serviceType, uriSpec, enabled } = changes;
  const fields: Record<string, unknown> = {
    name,
    id,
    address,
    port,
    sslPort,
    payload,
    registrationTimeUTC: registrationTimeMs,
    serviceType: serviceType && serviceTypeNames[serviceType],
    uriSpec: uriSpec && { parts: parseUriSpec(uriSpec) },
    enabled: enabled === true && raw['enabled'] === undefined ? undefined : enabled,
  };
  if (uriSpec === null) fields['uriSpec'] = null;
  return { ...raw, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) };
}

function field(raw: RawInstance, name: string, type: 'string'): string | null;
function field(raw: RawInstance, name: string, type: 'number'): number | null;
function field(raw: RawInstance, name: string, type: 'boolean'): boolean | null;
function field(raw: RawInstance, name: string, type: 'string' | 'number' | 'boolean'): unknown {
  const value = raw[name] ?? null;
  if (value !== null && typeof value !== type) throw new TypeError(`${name} must be a ${type}, not ${JSON.stringify(value)}`);
  return value;
}

function throwMissing(name: string): never {
  throw new TypeError(`the field ${name} is missing`);
}

function parseStoredUriSpec(spec: unknown): string | null {
  if (spec === undefined || spec === null) return null;
  const { parts } = spec as { parts?: readonly Partial<UriPart>[] };
  if (!Array.isArray(parts)) throw new TypeError('the uriSpec must have an array of parts');
  return formatUriSpec(parts.map(({ value, variable }) => ({ value: String(value), variable: variable === true })));
}
