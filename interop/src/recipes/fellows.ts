/** What scenes are made of in which everybody has to do with everybody. */
import type { Client } from '@tskeeper/client';

import { steps } from './traffic.ts';

/** Of those who all read each other when they come. */
const fellowsMax = 21;

/** How many of so many clients. */
export const fellows = (clients: number): number => Math.min(clients, fellowsMax);
export const fellowsOf = (clients: readonly Client[]): readonly Client[] => clients.slice(0, fellowsMax);

/** One for each step. */
export const pathsBelow = (path: string): string[] => Array.from({ length: steps }, (_, at) => `${path}/${at}`);
