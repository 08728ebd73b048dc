/**
 * Limits of what is held for clients at once, as shares of the memory: a small memory must not be
 * used up in a moment, before the memory guard measures again.
 */
import type { MemoryProbe } from './memory-use.ts';

export interface InFlightBudgets {
  readonly core: number;
  readonly port: number;
}

/**
 * Infinity where the memory is not known: without a probe, or when it fails. The guard logs a
 * failure at its next measurement.
 */
export function inFlightBudgets(probe: MemoryProbe | undefined): InFlightBudgets {
  let core = Infinity;
  let port = Infinity;
  try {
    for (const { limitBytes, holdsTree } of probe?.(0) ?? []) {
      core = Math.min(core, limitBytes / (holdsTree ? 40 : 16));
      if (holdsTree) port = Math.min(port, limitBytes / 10);
    }
  } catch {
    return { core: Infinity, port: Infinity };
  }
  return { core, port };
}
