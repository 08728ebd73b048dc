/**
 * The end of a transaction. A site that has done what was decided deletes its znode, and the last
 * of them deletes the transaction.
 *
 * The first site that leaves writes the decision in the same txn, as the votes cannot be counted
 * after that. So a late site finds the decision until it has acknowledged it; and a site that finds
 * nothing has acknowledged it.
 */
import { KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { connectionLossCodes, retryForever } from '../waiting/own-znode.ts';
import { waitForEvent } from '../waiting/watch-once.ts';
import { decisionPath, presenceNames, reservedNames, type Transaction } from './decision.ts';
import type { Vote } from './votes.ts';

/**
 * Removes a site from the transaction. Resolves also if it is removed already. Rejects as
 * `Client.multi` does, and with the signal's reason.
 */
export async function acknowledgeSite(transaction: Transaction, site: string, decision: Vote, signal: AbortSignal): Promise<void> {
  const { zk, acl } = transaction;
  const options = { ...retryForever, signal };
  const path = decisionPath(transaction);
  for (;;) {
    try {
      // Whether the site is at work no longer matters.
      const [recorded, { children }] = await Promise.all([zk.exists(path, options), zk.getChildren(site, options)]);
      const present = children.map((name) => op.delete(childPath(site, name)));
      await zk.multi([...(recorded === null ? [op.create(path, decision, { acl })] : []), ...present, op.delete(site)], options);
      return;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode') && error.path === site) return;
      // A reply was lost, or another site was faster with the decision, or the ephemeral of this
      // site was created or deleted.
      if (!KeeperError.is(error, ...connectionLossCodes, 'NodeExists', 'NoNode', 'NotEmpty')) throw error;
    }
  }
}

/**
 * Deletes the transaction if no site is left. First waits for the end of an ephemeral of the client
 * that began it or counts: until the client that begins it knows the outcome, it may begin it
 * again. Rejects as `Client.multi` does, and with the signal's reason.
 */
export async function deleteIfAcknowledged(transaction: Transaction, signal: AbortSignal): Promise<void> {
  const { zk, path } = transaction;
  const options = { ...retryForever, signal };
  for (;;) {
    try {
      const { children } = await zk.getChildren(path, options);
      if (children.some((name) => !reservedNames.includes(name))) return;
      const ephemeral = presenceNames.find((name) => children.includes(name));
      if (ephemeral !== undefined) {
        await waitForEvent(zk, childPath(path, ephemeral), signal);
        continue;
      }
      await zk.multi([op.delete(decisionPath(transaction)), op.delete(path)], options);
      return;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return;
      // A reply was lost, or another client counts the votes too, and finds the decision.
      if (!KeeperError.is(error, ...connectionLossCodes, 'NotEmpty')) throw error;
    }
  }
}
