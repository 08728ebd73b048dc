import { expect, it, vi } from 'vitest';

it('reserved ports differ between processes as well', async () => {
  const first = await import('../src/processes/ports.ts');
  vi.resetModules();
  // It knows no more of the first one than another process would.
  const second = await import('../src/processes/ports.ts');
  expect(second.reservePort).not.toBe(first.reservePort);
  const ports: number[] = [];
  for (let count = 0; count < 300; count++) ports.push(await first.reservePort(), await second.reservePort());
  expect(new Set(ports).size).toBe(ports.length);
});
