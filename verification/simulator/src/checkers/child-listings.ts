/** Listings of children in several pages, while children were created and deleted. */
import { type Txn, type Zxid } from '@tskeeper/protocol';
import type { Listing, Recording } from '../record/recording.ts';
import { parentOf } from '../record/parent-of.ts';
import type { Replay } from '../replay/replay-result.ts';
import type { Checker } from './checker.ts';

export const childListings: Checker = {
  property: 'P26',
  promise:
    'A listing of children in pages contains each child that exists all the time once, and none that does not exist at any time of it, even if its pages come from different servers.',
  check(recording, replay) {
    const violations: string[] = [];
    if (recording.listings.length === 0) return violations;
    const lives = livesOf(recording, replay);
    for (const listing of recording.listings) {
      if (mayBeReadOnly(listing, recording)) continue;
      const { client, path, fromZxid, toZxid, names } = listing;
      const what = `${client} listed ${path} from ${fromZxid} to ${toZxid}`;
      const counts = new Map<string, number>();
      for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
      const base = path === '/' ? '' : path;
      for (const [child, spans] of lives.get(path) ?? []) {
        const name = child.slice(base.length + 1);
        const count = counts.get(name) ?? 0;
        counts.delete(name);
        const during = spans.filter(({ from, to }) => from <= toZxid && to > fromZxid);
        if (during.some(({ from, to }) => from <= fromZxid && to > toZxid) && count !== 1)
          violations.push(`${what}, and got ${name} ${count} times`);
        else if (count > during.length) violations.push(`${what}, and got ${name} ${count} times; there were ${during.length} such znodes`);
      }
      for (const name of counts.keys())
        if (base !== '/zookeeper' && !(base === '' && name === 'zookeeper'))
          violations.push(`${what}, and got ${name}, which never existed`);
    }
    return violations;
  },
};

/**
 * Whether a page may come from a server in read-only mode: it shows its own log, with txns that are
 * not committed or without those that are.
 */
function mayBeReadOnly({ client, fromMs, toMs }: Listing, { readOnlyCnxns }: Recording): boolean {
  return readOnlyCnxns.some((cnxn) => cnxn.client === client && cnxn.openedMs <= toMs && (cnxn.closedMs ?? Infinity) >= fromMs);
}

/** From the txn that created it up to the one that deleted it. */
interface Life {
  readonly from: Zxid;
  to: Zxid;
}

/** By parent, by path: the lives of all znodes. */
function livesOf({ log, seedState }: Recording, { sessions }: Replay): Map<string, Map<string, Life[]>> {
  const lives = new Map<string, Map<string, Life[]>>();
  const created = (path: string, zxid: Zxid): void => {
    const parent = parentOf(path) || '/';
    const siblings = lives.get(parent) ?? new Map<string, Life[]>();
    lives.set(parent, siblings);
    siblings.set(path, [...(siblings.get(path) ?? []), { from: zxid, to: Infinity }]);
  };
  const deleted = (path: string, zxid: Zxid): void => {
    const life = lives
      .get(parentOf(path) || '/')
      ?.get(path)
      ?.at(-1);
    if (life !== undefined) life.to = Math.min(life.to, zxid);
  };
  const apply = (txn: Txn, zxid: Zxid): void => {
    switch (txn.kind) {
      case 'create':
      case 'createContainer':
      case 'createTTL':
        created(txn.path, zxid);
        break;
      case 'delete':
        deleted(txn.path, zxid);
        break;
      case 'multi':
        // One error means that no part was applied.
        if (txn.txns.some((member) => member.txn.kind === 'error')) return;
        for (const member of txn.txns) apply(member.txn, zxid);
        break;
      default:
    }
  };
  for (const { path } of seedState.znodes) created(path, 0);
  const closings = [...sessions.values()].filter(({ closedBy }) => closedBy !== undefined);
  const ephemeralsByZxid = new Map(closings.map(({ closedZxid, ephemerals }) => [closedZxid, ephemerals]));
  for (const { logged } of log) {
    const { zxid } = logged.header;
    for (const path of ephemeralsByZxid.get(zxid) ?? []) deleted(path, zxid);
    apply(logged.txn, zxid);
  }
  return lives;
}
