/**
 * How the value of one setting is read. Numbers are written as Java reads them, and every message
 * says where the value stands and what would be permitted.
 */
import { ConfigError } from './config-error.ts';
import type { ConfigKey } from './config-keys.ts';
import type { Setting } from './settings.ts';

/**
 * Keys whose value is a path, and what is at that path. A Java properties file has no quotes: they
 * would be part of the name.
 */
const pathKeys: ReadonlyMap<string, string> = new Map([
  ['dataDir', 'folder'],
  ['dataLogDir', 'folder'],
  ['dynamicConfigFile', 'file'],
  ['oraclePath', 'file'],
]);

/** Throws `ConfigError` for a value that its key does not permit. */
export function checkSetting(key: ConfigKey, setting: Setting): void {
  if (key.name.endsWith('.*')) return;
  const kind = pathKeys.get(key.name);
  const unquoted = /^(["'])(.*)\1$/.exec(setting.value)?.[2];
  if (kind !== undefined && unquoted !== undefined) {
    throw new ConfigError(
      `${setting.where}: the value of ${key.name} is in quotes, which would be part of the name of the ${kind}. Write ${key.name}=${unquoted}.`,
    );
  }
  if (key.value === 'boolean') readBoolean(setting);
  else if (key.value === 'yes or no') readYesNo(setting);
  // An empty value of a number means that it is not set.
  else if (typeof key.value === 'object' && setting.value !== '') {
    if ('real' in key.value) readReal(setting, key.value.min);
    else readInteger(setting, key.value, key.source);
  }
}

export function commaList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

export function readBoolean({ name, value, where }: Setting): boolean {
  const word = value.toLowerCase();
  if (word !== 'true' && word !== 'false') throw new ConfigError(`${where}: ${name} must be true or false, not "${value}".`);
  return word === 'true';
}

export function readYesNo({ name, value, where }: Setting): boolean {
  if (value !== 'yes' && value !== 'no') throw new ConfigError(`${where}: ${name} must be yes or no, not "${value}".`);
  return value === 'yes';
}

/**
 * Keys of the file are decimal; properties may also be hexadecimal (0x10, #10) or octal (010), as
 * Java reads them.
 */
export function readInteger(
  { name, value, where }: Setting,
  { min, max }: { min: number; max: number },
  place: ConfigKey['source'],
): number {
  const match = /^([+-]?)(0x|#|0(?=\d))?([0-9a-f]+)$/i.exec(value);
  const prefix = match?.[2]?.toLowerCase();
  const radix = prefix === undefined || place === 'file' ? 10 : prefix === '0' ? 8 : 16;
  const digits = place === 'file' ? (match?.[2] ?? '') + (match?.[3] ?? '') : (match?.[3] ?? '');
  const valid = (radix === 16 ? /^[0-9a-f]+$/i : radix === 8 ? /^[0-7]+$/ : /^\d+$/).test(digits);
  const number = valid ? Number.parseInt(digits, radix) * (match?.[1] === '-' ? -1 : 1) : Number.NaN;
  if (!(number >= min && number <= max)) {
    const range = min === max ? `${min}` : `a whole number from ${min} to ${max}`;
    throw new ConfigError(`${where}: ${name} must be ${range}, not "${value}".`);
  }
  return number;
}

export function readReal({ name, value, where }: Setting, min = 0): number {
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number) || number < min) {
    const range = min === 0 ? 'a number of at least 0' : 'a number';
    throw new ConfigError(`${where}: ${name} must be ${range}, not "${value}".`);
  }
  return number;
}
