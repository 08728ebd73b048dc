/** How to build the URI of an instance: `{scheme}://{address}:{port}/api`. (Curator's UriSpec.) */
import { checkArgumentCount, checkValue, type ValueType, valueTypes } from '@tskeeper/client/internal';
import { type ServiceInstance, serviceTypeNames } from './service-instance.ts';

const instanceType: ValueType = {
  expected: 'a ServiceInstance, as a registry gives it',
  accepts: (given) => {
    if (!valueTypes.object.accepts(given)) return false;
    const { uriSpec, serviceType } = given as Partial<ServiceInstance>;
    return (uriSpec === null || typeof uriSpec === 'string') && Object.hasOwn(serviceTypeNames, String(serviceType));
  },
};
const variablesType: ValueType = { ...valueTypes.object, expected: 'an object, as in { path: "/api" }' };

/** As Curator writes it. */
export interface UriPart {
  readonly value: string;
  readonly variable: boolean;
}

/** Throws a TypeError for unbalanced braces. */
export function parseUriSpec(spec: string): readonly UriPart[] {
  const parts = spec.split(/(\{[^{}]*\})/).filter((text) => text !== '');
  return parts.map((text) => {
    if (text.startsWith('{') && text.endsWith('}')) return { value: text.slice(1, -1).trim(), variable: true };
    if (/[{}]/.test(text))
      throw new TypeError(`the braces of the uriSpec "${spec}" are not balanced; write {[} and {]} for literal braces`);
    return { value: text, variable: false };
  });
}

export function formatUriSpec(parts: readonly UriPart[]): string {
  return parts
    .map(({ value, variable }) => (variable ? `{${value}}` : value.replaceAll(/[{}]/g, (brace) => (brace === '{' ? '{[}' : '{]}'))))
    .join('');
}

/**
 * The URI of an instance by its `uriSpec`; undefined if it has none. Throws a TypeError. Variables:
 * `scheme` (https with an `sslPort`, else http), `name`, `id`, `address`, `port`, `ssl-port`,
 * `registration-time-utc`, `service-type`, `[` and `]` for braces, and those of `variables`, which
 * take precedence. An unknown one becomes empty.
 */
export function buildUri(instance: ServiceInstance, variables: Readonly<Record<string, string | number>> = {}): string | undefined {
  checkArgumentCount(arguments.length, 2, 'buildUri(instance, variables)');
  checkValue(instance, instanceType, 'buildUri: the instance');
  checkValue(variables, variablesType, 'buildUri: variables');
  const { uriSpec, name, id, address, port, sslPort, registrationTimeMs, serviceType } = instance;
  if (uriSpec === null) return undefined;
  const known: Readonly<Record<string, string | number | null>> = {
    '[': '{',
    ']': '}',
    scheme: sslPort === null ? 'http' : 'https',
    name,
    id,
    address,
    port,
    'ssl-port': sslPort,
    'registration-time-utc': registrationTimeMs,
    'service-type': serviceTypeNames[serviceType].toLowerCase(),
    ...variables,
  };
  return parseUriSpec(uriSpec)
    .map(({ value, variable }) => (variable ? String(known[value] ?? '') : value))
    .join('');
}
