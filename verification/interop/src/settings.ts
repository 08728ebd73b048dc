/**
 * Settings that all parts of interop share: the servers' configuration and the facts that the
 * drivers receive about it.
 */
import { createHash } from 'node:crypto';

import type { ServerKind } from '@tskeeper/harness';

export const superAuth = 'super:secret';

function digestOf(identity: string): string {
  const [user] = identity.split(':');
  return `${user}:${createHash('sha1').update(identity).digest('base64')}`;
}

/** zookeeper.DigestAuthenticationProvider.superDigest for `superAuth`. */
export const superDigestProperty = { 'zookeeper.DigestAuthenticationProvider.superDigest': digestOf(superAuth) };

/** No checks of containers: which ones they delete, and when, would depend on time. */
export const noContainerChecks = { 'znode.container.checkIntervalMs': 3_600_000 };

/** The ZooKeeper version whose behaviour a kind of server has. */
export function versionOf(kind: ServerKind): readonly [number, number, number] {
  return kind === 'java-3.8.0' ? [3, 8, 0] : [3, 9, 5];
}
