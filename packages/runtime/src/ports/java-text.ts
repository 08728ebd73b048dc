/** Dates and doubles as Java writes them. Programs parse these texts, so they are exact. */
import type { Millis } from '@tskeeper/protocol';

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** As java.util.Date prints, in UTC: `Fri Nov 20 09:34:51 UTC 2026`. */
export function javaDate(wallMs: Millis): string {
  const date = new Date(wallMs);
  const two = (value: number) => String(value).padStart(2, '0');
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  return `${days[date.getUTCDay()]} ${months[date.getUTCMonth()]} ${two(date.getUTCDate())} ${time} UTC ${date.getUTCFullYear()}`;
}

/** As Double.toString: always a point, and an exponent below 0.001 and from ten million on. */
export function javaDouble(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    const [digits, exponent] = value.toExponential().split('e');
    return `${withPoint(digits!)}E${Number(exponent)}`;
  }
  return withPoint(String(value));
}

function withPoint(digits: string): string {
  return digits.includes('.') ? digits : `${digits}.0`;
}

/** An average as ZooKeeper rounds it: four decimals, halves up. */
export function average(sum: number, count: number): number {
  return count === 0 ? 0 : Number((sum / count).toFixed(4));
}
