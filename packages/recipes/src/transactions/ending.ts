/**
 * The end of a transaction. A site that has done what was decided deletes its znode, and the last of them the transaction.
 *
 * With the first that goes the decision is written down, in the same txn, as the votes cannot be counted any more behind that. So a site that comes late
 * finds the decision for as long as it has not acknowledged it; and one that finds nothing has.
 */
import { KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { nextEvent, untilTheEnd } from '../waiting/next-event.ts';
import { decisionPath, ephemerals, reserved, type Transaction } from './decision.ts';
import type { Vote } from './votes.ts';
import { lossCodes } from '../waiting/unanswered.ts';

/** Takes a site out of the transaction. Resolves also if it is out. Rejects as `Client.multi` does, and with the signal's reason. */
export async function leave(transaction: Transaction, site: string, decision: Vote, signal: AbortSignal): Promise<void> {
  const { zk, acl } = transaction;
  const options = { ...untilTheEnd, signal };
  const path = decisionPath(transaction);
  for (;;) {
    try {
      // Whether it is at work does not matter any more.
      const [recorded, { children }] = await Promise.all([zk.exists(path, options), zk.getChildren(site, options)]);
      const present = children.map((name) => op.delete(childPath(site, name)));
      await zk.multi([...(recorded === null ? [op.create(path, decision, { acl })] : []), ...present, op.delete(site)], options);
      return;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode') && error.path === site) return;
      // An answer was lost, or another site was quicker with the decision, or this one's ephemeral has come or gone.
      if (!KeeperError.is(error, ...lossCodes, 'NodeExists', 'NoNode', 'NotEmpty')) throw error;
    }
  }
}

/**
 * Deletes the transaction if no site is left. An ephemeral of whoever has begun it, or counts, is waited for: as long as one who has begun it has not heard
 * so, they may begin it again. Rejects as `Client.multi` does, and with the signal's reason.
 */
export async function clear(transaction: Transaction, signal: AbortSignal): Promise<void> {
  const { zk, path } = transaction;
  const options = { ...untilTheEnd, signal };
  for (;;) {
    try {
      const { children } = await zk.getChildren(path, options);
      if (children.some((name) => !reserved.includes(name))) return;
      const ephemeral = ephemerals.find((name) => children.includes(name));
      if (ephemeral !== undefined) {
        await nextEvent(zk, childPath(path, ephemeral), signal);
        continue;
      }
      await zk.multi([op.delete(decisionPath(transaction)), op.delete(path)], options);
      return;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return;
      // An answer was lost, or somebody has come to count, and finds the decision.
      if (!KeeperError.is(error, ...lossCodes, 'NotEmpty')) throw error;
    }
  }
}
