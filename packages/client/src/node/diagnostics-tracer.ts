/**
 * Tells what clients do on the channels of node:diagnostics_channel: `tskeeper:request`, a tracing channel, and `tskeeper:session`. Events and their order
 * are those of `TracingChannel.tracePromise`, which is not used itself as it would settle the promise a turn later, behind events that are
 * to be told behind it.
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
    // Stores that are bound to the channel hold for all that the call does, so that its steps are known to be steps of it.
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
