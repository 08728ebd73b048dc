/**
 * In which order the servers of an SRV name are tried: those of the lowest priority first, and among equals by chance, by their weights
 * (RFC 2782).
 */
import { type Random, uniform } from '../clock.ts';
import type { ServerAddress, ServiceRecord } from '../transport.ts';

/** One group for each priority. Records without a host or a port are left out: with them a domain says that it has no such service. */
export function inServiceOrder(records: readonly ServiceRecord[], random: Random): ServerAddress[][] {
  const usable = records.filter(({ host, port }) => host !== '' && host !== '.' && port >= 1 && port <= 65_535);
  const priorities = [...new Set(usable.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.map((priority) =>
    byWeight(
      usable.filter((record) => record.priority === priority),
      random,
    ),
  );
}

/**
 * Draws one after the other, each with a chance in proportion to its weight. One of weight 0 is drawn with a small chance while others are
 * left, as the RFC has it.
 */
function byWeight(records: readonly ServiceRecord[], random: Random): ServerAddress[] {
  const left = [...records];
  const drawn: ServerAddress[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, record) => sum + shareOf(record), 0);
    let point = uniform(random, total);
    const at = left.findIndex((record) => (point -= shareOf(record)) < 0);
    // Rounding may leave the point just behind the last one.
    const [{ host, port }] = left.splice(at === -1 ? left.length - 1 : at, 1) as [ServiceRecord];
    drawn.push({ host, port });
  }
  return drawn;
}

/** Weights are whole numbers, so this is small beside any of them; and where all are 0, all have the same chance. */
const shareOfWeightless = 0.01;

function shareOf({ weight }: ServiceRecord): number {
  return weight > 0 ? weight : shareOfWeightless;
}
