/**
 * Publishes the calls and session events of clients on channels of node:diagnostics_channel:
 * `tskeeper:request`, a tracing channel, and `tskeeper:session`. Events and their order are those
 * of `TracingChannel.tracePromise`. That function itself is not used, as it would settle the
 * promise a turn later, after events that must follow it.
 */
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { TracedCall, TracedSessionEvent, Tracer } from '../tracing.ts';

const requests = tracingChannel<unknown, TracedCall>('tskeeper:request');
const sessions = channel('tskeeper:session');

export const diagnosticsTracer: Tracer = {
  get hearsCalls() {
    return requests.hasSubscribers;
  },
  get hearsSession() {
    return sessions.hasSubscribers;
  },
  run: (call, work) =>
    // Stores bound to the channel are active during the whole call, so its steps inherit them.
    requests.start.runStores(call, () => {
      const promise = work();
      requests.end.publish(call);
      return promise;
    }),
  settled: (call) => {
    if ('error' in call) requests.error.publish(call);
    requests.asyncStart.publish(call);
    requests.asyncEnd.publish(call);
  },
  session: (event: TracedSessionEvent) => sessions.publish(event),
};
