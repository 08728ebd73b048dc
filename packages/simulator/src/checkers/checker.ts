import type { Recording } from '../record/recording.ts';
import type { Replay } from '../replay/replay.ts';

/** Holds a recording against one promise. */
export interface Checker {
  /** The promise's number, `P3`, where the list of properties has one. */
  readonly property: string;
  /** One sentence: what it looks for. */
  readonly promise: string;
  /** How often there was something to judge: over many seeds it shows whether the promise is put to the proof. */
  judged?(recording: Recording, replay: Replay): number;
  /** Everything that breaks the promise, each as one line of evidence. */
  check(recording: Recording, replay: Replay): string[];
}
