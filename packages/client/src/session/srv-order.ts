/**
 * The order in which the servers of an SRV name are tried: lowest priority first, and random within
 * a priority, by weight (RFC 2782).
 */
import { type Random, uniform } from '../clock.ts';
import type { ServerAddress, SrvRecord } from '../transport.ts';

/**
 * One group per priority. Omits records without a host or a port: a domain uses them to declare
 * that it has no such service.
 */
export function orderSrvRecords(records: readonly SrvRecord[], random: Random): ServerAddress[][] {
  const usable = records.filter(({ host, port }) => host !== '' && host !== '.' && port >= 1 && port <= 65_535);
  const priorities = [...new Set(usable.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.map((priority) =>
    orderByWeight(
      usable.filter((record) => record.priority === priority),
      random,
    ),
  );
}

/**
 * Draws one server after the other, each with a probability proportional to its weight. As the RFC
 * says, a server of weight 0 has a small probability while others are left.
 */
function orderByWeight(records: readonly SrvRecord[], random: Random): ServerAddress[] {
  const left = [...records];
  const drawn: ServerAddress[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, record) => sum + effectiveWeight(record), 0);
    let point = uniform(random, total);
    const at = left.findIndex((record) => (point -= effectiveWeight(record)) < 0);
    // Rounding may leave the point just after the last one.
    const [{ host, port }] = left.splice(at === -1 ? left.length - 1 : at, 1) as [SrvRecord];
    drawn.push({ host, port });
  }
  return drawn;
}

/**
 * Weights are whole numbers, so this is small compared with any of them; if all weights are 0, all
 * servers have the same probability.
 */
const effectiveWeightOfZero = 0.01;

function effectiveWeight({ weight }: SrvRecord): number {
  return weight > 0 ? weight : effectiveWeightOfZero;
}
