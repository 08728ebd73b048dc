/** Parts of scenes in which every client interacts with every other one. */
import type { Client } from '@tskeeper/client';

import { stepsPerCase } from './traffic.ts';

/** The maximum number of clients that all read each other when they join. */
const participantsMax = 21;

/** How many of so many clients. */
export const participantCount = (clients: number): number => Math.min(clients, participantsMax);
export const participantsOf = (clients: readonly Client[]): readonly Client[] => clients.slice(0, participantsMax);

/** One for each step. */
export const stepPaths = (path: string): string[] => Array.from({ length: stepsPerCase }, (_, at) => `${path}/${at}`);
