/**
 * Items in the format of Curator's DistributedQueue and related queues (its ItemSerializer): one
 * znode may have several.
 *
 *     00 01 00 01                      the version
 *     01  00 00 00 05  h e l l o       an item: its length, and its bytes
 *     02                               the end
 */
import type { Data } from '@tskeeper/client';
import type { Codec } from '../codecs/codec.ts';

const version = 0x00010001;
const itemMark = 1;
const endMark = 2;

const utf8 = new TextEncoder();

/**
 * The data that Curator's DistributedQueue, DistributedIdQueue, DistributedPriorityQueue and
 * DistributedDelayQueue write to a znode: put `encode(['an item'])`, and work on each of
 * `decode(item.data)`. Curator's `putMulti` creates one znode with several items, which are
 * delivered together. `decode` throws a TypeError for data in another format.
 */
export const curatorItemsCodec: Codec<readonly Uint8Array[], readonly Data[]> = {
  encode(items) {
    const all = items.map((item) => (typeof item === 'string' ? utf8.encode(item) : (item ?? new Uint8Array(0))));
    const data = new Uint8Array(all.reduce((length, item) => length + 5 + item.length, 5));
    const view = new DataView(data.buffer);
    view.setInt32(0, version);
    let at = 4;
    for (const item of all) {
      view.setUint8(at, itemMark);
      view.setInt32(at + 1, item.length);
      data.set(item, at + 5);
      at += 5 + item.length;
    }
    view.setUint8(at, endMark);
    return data;
  },
  decode(data) {
    const bytes = data ?? new Uint8Array(0);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length < 4 || view.getInt32(0) !== version) throw formatError('they do not begin with its version');
    const items: Uint8Array[] = [];
    let at = 4;
    while (bytes[at] === itemMark) {
      const length = at + 5 <= bytes.length ? view.getInt32(at + 1) : -1;
      if (length < 0 || at + 5 + length > bytes.length) throw formatError(`the item at byte ${at} is cut off`);
      items.push(bytes.slice(at + 5, at + 5 + length));
      at += 5 + length;
    }
    if (bytes[at] !== endMark) throw formatError(`there is neither an item nor the end at byte ${at}`);
    return items;
  },
};

function formatError(reason: string): TypeError {
  return new TypeError(`these data are not in the format of Curator: ${reason}; use the data of other producers as they are`);
}
