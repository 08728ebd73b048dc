/**
 * Mutants of the queue recipes: errors that are easily made with items that only one consumer may
 * get.
 */
import type { Mutant } from './mutant.ts';

const marks = 'packages/recipes/src/marks/marks.ts';
const list = 'packages/recipes/src/queues/item-list.ts';
const znode = 'packages/recipes/src/queues/queue-znode.ts';
const claimed = 'packages/recipes/src/queues/claimed-item.ts';
const consumers = 'packages/recipes/src/queues/consumers.ts';
const room = 'packages/recipes/src/queues/room.ts';

const wrong: Readonly<Record<string, Omit<Mutant, 'hunter'>>> = {
  'queue-write-repeated': {
    what: 'a queue write whose reply was lost is repeated with another mark',
    from: 'C1-3',
    file: marks,
    replace: 'unanswered = error;\n          continue;',
    by: 'void unanswered;\n          return await this.write(ops);',
  },
  'queue-write-believed': {
    what: 'a queue write whose reply was lost is assumed to have succeeded',
    from: 'C1-3',
    file: marks,
    replace: 'unanswered = error;\n          continue;',
    by: 'void unanswered;\n          return { results: undefined };',
  },
  'queue-mark-without-version': {
    what: 'a mark is written whatever its version',
    from: 'C1-3',
    file: marks,
    replace: '{ version: mark.version })',
    by: '{})',
  },
  'queue-mark-not-asked': {
    what: 'an error after a lost reply is believed, though it may come from the second attempt',
    from: 'C1-3',
    file: marks,
    replace: 'if (stat.version === mark.version) {',
    by: 'if (stat.version === mark.version || refusal.failedIndex !== undefined) {',
  },
  'queue-claims-not-seen': {
    what: 'a consumer does not check whether another one has claimed the item',
    from: 'B6',
    file: znode,
    replace: 'if (item === undefined || (item.version === 0 && !this.#options.sharesClaims)) return item;',
    by: 'if (item === undefined || item.version >= 0) return item;',
  },
  'queue-take-of-any-version': {
    what: 'an item is deleted even if it was claimed since it was read',
    from: 'B6',
    file: znode,
    replace: 'op.delete(item.path, { version: item.version })',
    by: 'op.delete(item.path)',
  },
  'queue-late-acknowledgement': {
    what: 'an item is acknowledged without its claim',
    from: 'B6',
    file: claimed,
    replace: 'op.delete(this.path), op.delete(this.#item.path, { version: this.#item.version })',
    by: 'op.delete(this.#item.path)',
  },
  'queue-claim-stays': {
    what: 'a returned item stays claimed',
    from: 'B6',
    file: claimed,
    replace: 'await super.leave();',
    by: 'await Promise.resolve();',
  },
  'queue-not-watched': {
    what: 'a waiting consumer lists the items without a watch',
    from: 'C1-16',
    file: list,
    replace: '...this.watching(this.#path, watches)',
    by: '',
  },
  'queue-line-not-left': {
    what: 'a consumer that got an item stays first in the wait queue',
    from: 'C1-2',
    file: consumers,
    replace: 'turn.release().catch(() => undefined);',
    by: 'void turn;',
  },
  'queue-room-not-fenced': {
    what: 'a producer puts although it has lost its place in the wait queue',
    from: 'B5',
    file: room,
    replace: 'await put([op.check(turn.path)]);',
    by: 'await put([]);',
  },
};

export const queueMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries(wrong).map(([name, mutant]) => [name, { hunter: 'recipes/queues', ...mutant }]),
);
