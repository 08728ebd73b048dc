/** All checkers, by name. */
import { afterFailure } from './checkers/after-failure.ts';
import { durability } from './checkers/durability.ts';
import { ephemerals } from './checkers/ephemerals.ts';
import { expiry } from './checkers/expiry.ts';
import { fifoOrder } from './checkers/fifo-order.ts';
import { outcomes } from './checkers/outcomes.ts';
import { reads } from './checkers/reads.ts';
import { sessionIdentity } from './checkers/session-identity.ts';
import { watches } from './checkers/watches.ts';
import { writeReplies } from './checkers/write-replies.ts';
import { zxidOrder } from './checkers/zxid-order.ts';
import type { Recording } from './recording.ts';
import { replay, type Replay } from './replay.ts';

export const checkers: Readonly<Record<string, (recording: Recording, replay: Replay) => string[]>> = {
  durability,
  outcomes,
  writeReplies,
  reads,
  fifoOrder,
  zxidOrder,
  watches,
  ephemerals,
  expiry,
  sessionIdentity,
  afterFailure,
};

/** Everything that is wrong with a recording, each with the name of who noticed. */
export function check(recording: Recording): string[] {
  const story = replay(recording);
  const found = Object.entries(checkers).flatMap(([name, checker]) => checker(recording, story).map((fault) => `${name}: ${fault}`));
  return [...recording.faults, ...found];
}
