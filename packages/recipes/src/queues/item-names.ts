/**
 * What the names of items contain: their number, and what else decides their order.
 *
 *     queue-0000000007                     in the order of the numbers
 *     queue-050000000007                   priority 05 (ZooKeeper's page, "queue-YY")
 *     entry-100-0000000007                 priority 100 (kazoo's Queue)
 *     queue-1000000640000000007            priority 100, after a digit that is 0 for negative ones
 *                                          (Curator's DistributedPriorityQueue)
 *     queue-|18F1A2B3C4D|0000000007        not before this time, in ms since 1970, hexadecimal
 *                                          (Curator's DistributedDelayQueue)
 *     queue-|order 12|0000000007           an id of the program (Curator's DistributedIdQueue)
 */
import { compareSequences, sequenceOf } from '@tskeeper/client';
import { checkName } from '../validation.ts';

/** A parsed name. */
export interface ParsedItemName {
  readonly name: string;
  /** The number at the end. */
  readonly sequence: number;
  /**
   * The item with the lower rank comes first, whatever the number: a priority, or the time from
   * which the item is available.
   */
  readonly rank: number;
  readonly id: string | undefined;
}

/** How one kind of queue names its items. */
export interface ItemNaming<Label> {
  /** The part before the number. Throws a RangeError or a TypeError for an invalid label. */
  prefixOf(label: Label): string;
  /** undefined for a name that is not an item of such a queue. */
  parse(name: string): ParsedItemName | undefined;
}

export function compareItems(one: ParsedItemName, other: ParsedItemName): number {
  return one.rank - other.rank || compareSequences(one.sequence, other.sequence);
}

export function plainNaming(prefix: string): ItemNaming<undefined> {
  checkPrefix(prefix);
  return {
    prefixOf: () => prefix,
    parse: (name) => {
      const sequence = sequenceOf(name, prefix);
      return sequence === undefined ? undefined : { name, sequence, rank: 0, id: undefined };
    },
  };
}

/**
 * How a name contains the priority. `page`: two digits, as in ZooKeeper's recipe; `kazoo`: three,
 * and a hyphen; `curator`: 32 bits in hexadecimal, after a digit that is 0 for negative priorities.
 */
export type PriorityNaming = 'page' | 'kazoo' | 'curator';

interface PriorityFormat {
  readonly prefix: string;
  readonly suffix: string;
  readonly min: number;
  readonly max: number;
  /** The text of a priority: all have the same length, and sort as the priorities do. */
  readonly format: (priority: number) => string;
  readonly parse: (text: string) => number | undefined;
}

function decimalFormat(prefix: string, digits: number, suffix: string): PriorityFormat {
  return {
    prefix,
    suffix,
    min: 0,
    max: 10 ** digits - 1,
    format: (priority) => String(priority).padStart(digits, '0'),
    parse: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
  };
}

const priorityFormats: Readonly<Record<PriorityNaming, PriorityFormat>> = {
  page: decimalFormat('queue-', 2, ''),
  kazoo: decimalFormat('entry-', 3, '-'),
  curator: {
    prefix: 'queue-',
    suffix: '',
    min: -(2 ** 31),
    max: 2 ** 31 - 1,
    format: (priority) => `${priority < 0 ? 0 : 1}${(priority >>> 0).toString(16).toUpperCase().padStart(8, '0')}`,
    parse: (text) => (/^(?:0[89A-F]|1[0-7])[0-9A-F]{7}$/.test(text) ? Number.parseInt(text.slice(1), 16) | 0 : undefined),
  },
};

export function priorityNaming(naming: PriorityNaming): ItemNaming<number> {
  if (!Object.hasOwn(priorityFormats, naming)) throw new TypeError(`naming must be "page", "kazoo" or "curator", not "${naming}"`);
  const { prefix, suffix, min, max, format, parse } = priorityFormats[naming];
  const { length } = format(min);
  return {
    prefixOf: (priority) => {
      if (!Number.isInteger(priority) || priority < min || priority > max)
        throw new RangeError(`a priority must be a whole number from ${min} to ${max}, lower first, not ${priority}`);
      return `${prefix}${format(priority)}${suffix}`;
    },
    parse: (name) => {
      const text = name.slice(prefix.length, prefix.length + length);
      const rank = parse(text);
      const sequence = rank === undefined || text.length !== length ? undefined : sequenceOf(name, `${prefix}${text}${suffix}`);
      return rank === undefined || sequence === undefined ? undefined : { name, sequence, rank, id: undefined };
    },
  };
}

/** Labels are times, in ms since 1970. */
export const delayNaming: ItemNaming<number> = {
  prefixOf: (dueMs) => {
    if (!Number.isSafeInteger(dueMs) || dueMs < 0)
      throw new RangeError(`a time must be a whole number of milliseconds since 1970, not ${dueMs}`);
    return formatLabel(dueMs.toString(16).toUpperCase().padStart(8, '0'));
  },
  parse: (name) => {
    const found = parseLabel(name);
    if (found === undefined || !/^[0-9A-F]{8,14}$/i.test(found.label)) return undefined;
    return { name, sequence: found.sequence, rank: Number.parseInt(found.label, 16), id: undefined };
  },
};

/** Labels are ids. */
export const idNaming: ItemNaming<string> = {
  prefixOf: (id) => {
    if (typeof id !== 'string' || id === '' || /[/|]/.test(id))
      throw new TypeError(`an id must be a non-empty string without "/" and "|", not "${id}"`);
    return formatLabel(id);
  },
  parse: (name) => {
    const found = parseLabel(name);
    return found && { name, sequence: found.sequence, rank: 0, id: found.label };
  },
};

const labelPattern = /^queue-\|([^|]+)\|/;

function formatLabel(label: string): string {
  return `queue-|${label}|`;
}

function parseLabel(name: string): { readonly label: string; readonly sequence: number } | undefined {
  const label = labelPattern.exec(name)?.[1];
  const sequence = label === undefined ? undefined : sequenceOf(name, formatLabel(label));
  return label === undefined || sequence === undefined ? undefined : { label, sequence };
}

function checkPrefix(prefix: string): void {
  checkName(prefix, 'the prefix of items');
}
