/** All recipe families. */
import type { Family } from './family.ts';
import { doubleBarriers } from './families/double-barriers.ts';
import { caches } from './families/caches.ts';
import { candidates } from './families/candidates.ts';
import { elections } from './families/elections.ts';
import { events } from './families/events.ts';
import { barriers } from './families/barriers.ts';
import { simpleBarriers } from './families/simple-barriers.ts';
import { persistentNodes } from './families/persistent-nodes.ts';
import { leases } from './families/leases.ts';
import { locks } from './families/locks.ts';
import { migrations } from './families/migrations.ts';
import { multiLocks } from './families/multi-locks.ts';
import { priorityLocks } from './families/priority-locks.ts';
import { queues } from './families/queues.ts';
import { semaphores } from './families/semaphores.ts';
import { setPartitions } from './families/set-partitions.ts';
import { sharedLocks } from './families/shared-locks.ts';
import { transactions } from './families/transactions.ts';
import { values } from './families/values.ts';

export const families = {
  locks,
  'shared-locks': sharedLocks,
  elections,
  semaphores,
  'multi-locks': multiLocks,
  'priority-locks': priorityLocks,
  'set-partitions': setPartitions,
  transactions,
  queues,
  'double-barriers': doubleBarriers,
  barriers,
  'simple-barriers': simpleBarriers,
  values,
  leases,
  candidates,
  'persistent-nodes': persistentNodes,
  caches,
  events,
  migrations,
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

export const familyNames = Object.keys(families) as FamilyName[];
