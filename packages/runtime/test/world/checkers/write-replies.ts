/** Every answered write got the answer that the model gives: error, path with its counter, and each field of its Stat. */
import type { Recording } from '../recording.ts';
import { nameRequest, type Replay, textOf } from '../replay.ts';

export function writeReplies(_recording: Recording, { writes }: Replay): string[] {
  const faults: string[] = [];
  for (const { request, answer } of writes) {
    const { reply } = request;
    if (reply === undefined) continue;
    const got = textOf({ err: reply.err, body: reply.body });
    const expected = textOf({ err: answer.err, body: answer.body });
    if (got !== expected) faults.push(`${nameRequest(request)} got\n  ${got}, not\n  ${expected}`);
  }
  return faults;
}
