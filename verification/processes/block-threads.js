/**
 * Preloaded into a server (`node --import`): at SIGUSR2 every thread of the pool starts to wait for
 * a write to the pipe in its folder. It simulates a name server that does not answer, or a disk
 * that hangs.
 */
import { open, writeFileSync } from 'node:fs';

const threads = 4;

process.on('SIGUSR2', () => {
  for (let thread = 0; thread < threads; thread++) open('pipe', 'r', () => {});
  // Later work of the pool has to wait for these.
  writeFileSync('pipe.blocked', '');
});
