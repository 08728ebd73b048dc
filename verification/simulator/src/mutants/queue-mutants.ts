/**
 * Mutants of the queue recipes: errors that are easily made with items that only one consumer may
 * get.
 */
import type { Mutant } from './mutant.ts';

const withoutDetector: Readonly<Record<string, Omit<Mutant, 'detector'>>> = {
  'queue-write-repeated': {
    description: 'a queue write whose reply was lost is repeated with another mark',
    origin: 'C1-3',
    symbol: 'IdempotencyMarkers.#writeWithMarker',
    original: 'unanswered = error;\n          continue;',
    replacement: 'void unanswered;\n          return await this.write(ops);',
  },
  'queue-lost-reply-taken-as-success': {
    description: 'a queue write whose reply was lost is assumed to have succeeded',
    origin: 'C1-3',
    symbol: 'IdempotencyMarkers.#writeWithMarker',
    original: 'unanswered = error;\n          continue;',
    replacement: 'void unanswered;\n          return { results: undefined };',
  },
  'queue-marker-unversioned': {
    description: 'a mark is written whatever its version',
    origin: 'C1-3',
    symbol: 'IdempotencyMarkers.#writeWithMarker',
    original: '{ version: marker.version })',
    replacement: '{})',
  },
  'queue-lost-reply-refusal-believed': {
    description: 'an error after a lost reply is believed, though it may come from the second attempt',
    origin: 'C1-3',
    symbol: 'IdempotencyMarkers.#resolveRejection',
    original: 'if (stat.version === marker.version) {',
    replacement: 'if (stat.version === marker.version || refusal.failedIndex !== undefined) {',
  },
  'queue-claims-ignored': {
    description: 'a consumer does not check whether another one has claimed the item',
    origin: 'B6',
    symbol: 'QueueShard.#readUnclaimed',
    original: 'if (item === undefined || (item.version === 0 && !this.#options.claimsNamedAsItems)) return item;',
    replacement: 'if (item === undefined || item.version >= 0) return item;',
  },
  'queue-take-of-any-version': {
    description: 'an item is deleted even if it was claimed since it was read',
    origin: 'B6',
    symbol: 'QueueShard.take',
    original: 'op.delete(item.path, { version: item.version })',
    replacement: 'op.delete(item.path)',
  },
  'queue-late-acknowledgement': {
    description: 'an item is acknowledged without its claim',
    origin: 'B6',
    symbol: 'ClaimNode.acknowledge',
    original: 'op.delete(this.path), op.delete(this.#item.path, { version: this.#item.version })',
    replacement: 'op.delete(this.#item.path)',
  },
  'queue-claim-stays': {
    description: 'a returned item stays claimed',
    origin: 'B6',
    symbol: 'ClaimNode.leave',
    original: 'await super.leave();',
    replacement: 'await Promise.resolve();',
  },
  'queue-listed-without-watch': {
    description: 'a waiting consumer lists the items without a watch',
    origin: 'C1-16',
    symbol: 'ItemList.#children',
    original: '...this.watchOption(this.#path, watches)',
    replacement: '',
  },
  'queue-waiter-stays-after-take': {
    description: 'a consumer that got an item stays first in the wait queue',
    origin: 'C1-2',
    symbol: 'Consumers.wait',
    original: 'turn.release().catch(() => undefined);',
    replacement: 'void turn;',
  },
  'queue-capacity-not-fenced': {
    description: 'a producer puts although it has lost its place in the wait queue',
    origin: 'B5',
    symbol: 'Capacity.put',
    original: 'await put([op.check(turn.path)]);',
    replacement: 'await put([]);',
  },
};

export const queueMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries(withoutDetector).map(([name, mutant]) => [name, { detector: 'recipes/queues', ...mutant }]),
);
