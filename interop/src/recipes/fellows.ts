/** Parts of scenes in which every client interacts with every other one. */
import type { Client } from '@tskeeper/client';

import { steps } from './traffic.ts';

/** The maximum number of clients that all read each other when they join. */
const fellowsMax = 21;

/** How many of so many clients. */
export const fellows = (clients: number): number => Math.min(clients, fellowsMax);
export const fellowsOf = (clients: readonly Client[]): readonly Client[] => clients.slice(0, fellowsMax);

/** One for each step. */
export const pathsBelow = (path: string): string[] => Array.from({ length: steps }, (_, at) => `${path}/${at}`);
