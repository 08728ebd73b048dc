/**
 * Preloaded into a server (`node --import`): at SIGUSR2 every thread of the pool begins to wait for somebody to write to the pipe in its
 * folder. What that stands for is a name server that does not answer, or a disk that hangs.
 */
import { open, writeFileSync } from 'node:fs';

const threads = 4;

process.on('SIGUSR2', () => {
  for (let thread = 0; thread < threads; thread++) open('pipe', 'r', () => {});
  // Whatever is asked of the pool from here on stands behind these.
  writeFileSync('pipe.blocked', '');
});
