import { isIP } from 'node:net';

/** Whether a host name can only mean this machine. Other names are not resolved. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
