/**
 * A request between its arrival, when it is admitted, and the moment when its effects become
 * visible, when it is performed.
 */
import { OpCode } from '@tskeeper/protocol';
import type { Id } from './access-rules.ts';
import type { Operation } from './operation-types.ts';

/** A request that has arrived, with the identities and the clock of that moment. */
export interface Admitted {
  readonly cnxn: number;
  readonly session: bigint;
  readonly xid: number;
  readonly operation: Operation;
  readonly identities: readonly Id[];
  readonly wallMs: number;
}

const writeKinds = new Set<Operation['kind']>([
  'create',
  'create2',
  'createContainer',
  'createTTL',
  'delete',
  'setData',
  'setACL',
  'multi',
  'reconfig',
  'closeSession',
  'createIfNotExists',
  'removeRecursive',
  'tryRemove',
]);
const writeOpCodes = new Set<number>([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.delete,
  OpCode.setData,
  OpCode.setACL,
  OpCode.multi,
  OpCode.reconfig,
  OpCode.createIfNotExists,
  OpCode.removeRecursive,
  OpCode.tryRemove,
]);

/** Whether a request becomes a txn, and so waits for the log, whatever its result. */
export function isWrite(operation: Operation): boolean {
  return operation.kind === 'undecodable' ? writeOpCodes.has(operation.opCode) : writeKinds.has(operation.kind);
}

const keeperKinds = [
  'filteredList',
  'checkNotExists',
  'createIfNotExists',
  'removeRecursive',
  'checkStat',
  'tryRemove',
  'filteredListWithStatsAndData',
  'listRecursive',
] as const satisfies readonly Operation['kind'][];
const keeperOpCodes = new Set<number>(keeperKinds.map((kind) => OpCode[kind]));

/** A server without Keeper's extensions does not know the operation, and reads no record of it. */
export function isKeeperOperation(operation: Operation): boolean {
  if (operation.kind === 'undecodable') return keeperOpCodes.has(operation.opCode);
  return (keeperKinds as readonly string[]).includes(operation.kind);
}
