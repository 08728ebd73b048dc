import { ErrorCode } from '@tskeeper/protocol';
import type { CnxnRecord, Recording } from './recording.ts';

/**
 * Opcodes of writes that a server has turned away without their client learning of it: writes after
 * them may still take effect.
 */
export function unansweredThrottledOps({ throttledOps }: Recording, { key, requests }: CnxnRecord): number[] {
  const unheard = [...(throttledOps.get(key) ?? [])];
  for (const request of requests) {
    const at = request.reply?.err === ErrorCode.ThrottledOp ? unheard.indexOf(request.opCode) : -1;
    if (at !== -1) unheard.splice(at, 1);
  }
  return unheard;
}
