/** What the model answers to a request, and how a reply compares with it. */
import { isDeepStrictEqual } from 'node:util';
import { ErrorCode, type MultiRequest, OpCode } from '@tskeeper/protocol';
import { bodyFrom, sortedBody } from '../model/from-wire.ts';
import type { Body } from '../model/operation-types.ts';
import type { ModelOutput } from '../model/outbox.ts';
import type { Request } from '../record/recording.ts';
import { replyText, textOf } from '../record/request-text.ts';

/** The expected reply to a request. */
export interface Answer {
  readonly err: number;
  readonly body: Body | null;
}

export function answerOf(outputs: readonly ModelOutput[]): Answer {
  for (const { message } of outputs) {
    if (message.kind === 'reply') return { err: message.err, body: message.body };
  }
  throw new Error('the model gave no reply');
}

/** The reply to a write that is refused because its session has ended or moved. */
export function refusal({ name, record }: Request, refusedWith: number): Answer {
  if (name !== 'multi') return { err: refusedWith, body: null };
  const results = (record as MultiRequest).ops.map((_, at) => {
    const err = at === 0 ? refusedWith : ErrorCode.RuntimeInconsistency;
    return { type: OpCode.error, err, body: { err } };
  });
  return { err: ErrorCode.Ok, body: { results } };
}

/** Whether the reply to a request is the expected one. */
export function isAnsweredAs({ reply }: Request, answer: Answer): boolean {
  return (
    reply !== undefined &&
    reply.err === answer.err &&
    (isDeepStrictEqual(sortedBody(bodyFrom(reply.body)), sortedBody(answer.body)) || replyText({ reply }) === answerText(answer))
  );
}

/** An expectation as text, equal to `replyText` if the content is. */
export function answerText({ err, body }: Answer): string {
  return textOf({ err, body: sortedBody(body) });
}
