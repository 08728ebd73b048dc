import { isIP } from 'node:net';

/** Whether only this machine can mean this host by it. What other names resolve to is not looked up. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
