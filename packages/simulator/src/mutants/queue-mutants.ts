/** The queues' part of the zoo: what is easily got wrong with items that are to be had once. */
import type { Mutant } from './mutant.ts';

const marks = 'packages/recipes/src/marks/marks.ts';
const list = 'packages/recipes/src/queues/item-list.ts';
const znode = 'packages/recipes/src/queues/queue-znode.ts';
const claimed = 'packages/recipes/src/queues/claimed-item.ts';
const consumers = 'packages/recipes/src/queues/consumers.ts';
const room = 'packages/recipes/src/queues/room.ts';

const wrong: Readonly<Record<string, Omit<Mutant, 'hunter'>>> = {
  'queue-write-repeated': {
    what: 'a write of a queue whose answer was lost is made again, with another mark',
    from: 'C1-3',
    file: marks,
    replace: 'unanswered = error;\n          continue;',
    by: 'void unanswered;\n          return await this.write(ops);',
  },
  'queue-write-believed': {
    what: 'a write of a queue whose answer was lost is taken to have been carried out',
    from: 'C1-3',
    file: marks,
    replace: 'unanswered = error;\n          continue;',
    by: 'void unanswered;\n          return { results: undefined };',
  },
  'queue-mark-without-version': {
    what: 'a mark is written to, whatever its version',
    from: 'C1-3',
    file: marks,
    replace: '{ version: mark.version })',
    by: '{})',
  },
  'queue-mark-not-asked': {
    what: 'a refusal behind a lost answer is believed, though it may be of the second attempt',
    from: 'C1-3',
    file: marks,
    replace: 'if (stat.version === mark.version) {',
    by: 'if (stat.version === mark.version || refusal.failedIndex !== undefined) {',
  },
  'queue-claims-not-seen': {
    what: 'who looks for an item does not look whether others work on it',
    from: 'B6',
    file: znode,
    replace: 'if (item === undefined || (item.version === 0 && !this.#options.sharesClaims)) return item;',
    by: 'if (item === undefined || item.version >= 0) return item;',
  },
  'queue-take-of-any-version': {
    what: 'an item is deleted, also when somebody has claimed it since it was read',
    from: 'B6',
    file: znode,
    replace: 'op.delete(item.path, { version: item.version })',
    by: 'op.delete(item.path)',
  },
  'queue-late-acknowledgement': {
    what: 'an item is acknowledged without the claim on it',
    from: 'B6',
    file: claimed,
    replace: 'op.delete(this.path), op.delete(this.#item.path, { version: this.#item.version })',
    by: 'op.delete(this.#item.path)',
  },
  'queue-claim-stays': {
    what: 'an item that is given back stays claimed',
    from: 'B6',
    file: claimed,
    replace: 'await super.leave();',
    by: 'await Promise.resolve();',
  },
  'queue-not-watched': {
    what: 'who waits lists the items without a watch',
    from: 'C1-16',
    file: list,
    replace: '...this.watching(this.#path, watches)',
    by: '',
  },
  'queue-line-not-left': {
    what: 'who has got an item stays the first of those who wait',
    from: 'C1-2',
    file: consumers,
    replace: 'turn.release().catch(() => undefined);',
    by: 'void turn;',
  },
  'queue-room-not-fenced': {
    what: 'a producer puts although it has lost its place in line',
    from: 'B5',
    file: room,
    replace: 'await put([op.check(turn.path)]);',
    by: 'await put([]);',
  },
};

export const queueMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries(wrong).map(([name, mutant]) => [name, { hunter: 'recipes/queues', ...mutant }]),
);
