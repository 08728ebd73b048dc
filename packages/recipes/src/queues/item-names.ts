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
import { checkName } from '../given.ts';

/** A parsed name. */
export interface ItemName {
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
export interface ItemNames<Label> {
  /** The part before the number. Throws a RangeError or a TypeError for an invalid label. */
  prefixOf(label: Label): string;
  /** undefined for a name that is not an item of such a queue. */
  read(name: string): ItemName | undefined;
}

export function inOrder(one: ItemName, other: ItemName): number {
  return one.rank - other.rank || compareSequences(one.sequence, other.sequence);
}

export function plainNames(prefix: string): ItemNames<undefined> {
  checkPrefix(prefix);
  return {
    prefixOf: () => prefix,
    read: (name) => {
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

interface PriorityForm {
  readonly prefix: string;
  readonly end: string;
  readonly least: number;
  readonly most: number;
  /** The text of a priority: all have the same length, and sort as the priorities do. */
  readonly write: (priority: number) => string;
  readonly read: (text: string) => number | undefined;
}

function decimalForm(prefix: string, digits: number, end: string): PriorityForm {
  return {
    prefix,
    end,
    least: 0,
    most: 10 ** digits - 1,
    write: (priority) => String(priority).padStart(digits, '0'),
    read: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
  };
}

const priorityForms: Readonly<Record<PriorityNaming, PriorityForm>> = {
  page: decimalForm('queue-', 2, ''),
  kazoo: decimalForm('entry-', 3, '-'),
  curator: {
    prefix: 'queue-',
    end: '',
    least: -(2 ** 31),
    most: 2 ** 31 - 1,
    write: (priority) => `${priority < 0 ? 0 : 1}${(priority >>> 0).toString(16).toUpperCase().padStart(8, '0')}`,
    read: (text) => (/^(?:0[89A-F]|1[0-7])[0-9A-F]{7}$/.test(text) ? Number.parseInt(text.slice(1), 16) | 0 : undefined),
  },
};

export function priorityNames(naming: PriorityNaming): ItemNames<number> {
  if (!Object.hasOwn(priorityForms, naming)) throw new TypeError(`naming is "page", "kazoo" or "curator", not "${naming}"`);
  const { prefix, end, least, most, write, read } = priorityForms[naming];
  const { length } = write(least);
  return {
    prefixOf: (priority) => {
      if (!Number.isInteger(priority) || priority < least || priority > most)
        throw new RangeError(`a priority is a whole number from ${least} to ${most}, lower first, not ${priority}`);
      return `${prefix}${write(priority)}${end}`;
    },
    read: (name) => {
      const text = name.slice(prefix.length, prefix.length + length);
      const rank = read(text);
      const sequence = rank === undefined || text.length !== length ? undefined : sequenceOf(name, `${prefix}${text}${end}`);
      return rank === undefined || sequence === undefined ? undefined : { name, sequence, rank, id: undefined };
    },
  };
}

/** Labels are times, in ms since 1970. */
export const delayNames: ItemNames<number> = {
  prefixOf: (dueMs) => {
    if (!Number.isSafeInteger(dueMs) || dueMs < 0)
      throw new RangeError(`a time is a whole number of milliseconds since 1970, not ${dueMs}`);
    return labelled(dueMs.toString(16).toUpperCase().padStart(8, '0'));
  },
  read: (name) => {
    const found = readLabelled(name);
    if (found === undefined || !/^[0-9A-F]{8,14}$/i.test(found.label)) return undefined;
    return { name, sequence: found.sequence, rank: Number.parseInt(found.label, 16), id: undefined };
  },
};

/** Labels are ids. */
export const idNames: ItemNames<string> = {
  prefixOf: (id) => {
    if (typeof id !== 'string' || id === '' || /[/|]/.test(id))
      throw new TypeError(`an id is a non-empty string without "/" and "|", not "${id}"`);
    return labelled(id);
  },
  read: (name) => {
    const found = readLabelled(name);
    return found && { name, sequence: found.sequence, rank: 0, id: found.label };
  },
};

const labelledForm = /^queue-\|([^|]+)\|/;

function labelled(label: string): string {
  return `queue-|${label}|`;
}

function readLabelled(name: string): { readonly label: string; readonly sequence: number } | undefined {
  const label = labelledForm.exec(name)?.[1];
  const sequence = label === undefined ? undefined : sequenceOf(name, labelled(label));
  return label === undefined || sequence === undefined ? undefined : { label, sequence };
}

function checkPrefix(prefix: string): void {
  checkName(prefix, 'the prefix of items');
}
