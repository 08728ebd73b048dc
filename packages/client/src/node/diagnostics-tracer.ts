/**
 * Publishes the calls and session events of clients on channels of node:diagnostics_channel:
 * `tskeeper:request`, a tracing channel, and `tskeeper:session`. Events and their order are those
 * of `TracingChannel.tracePromise`. That function itself is not used, as it would settle the
 * promise a turn later, after events that must follow it.
 */
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { TracedCall, TracedSessionEvent, Tracer } from '../tracing.ts';

const requestChannel = tracingChannel<unknown, TracedCall>('tskeeper:request');
const sessionChannel = channel('tskeeper:session');

export const diagnosticsTracer: Tracer = {
  get tracesCalls() {
    return requestChannel.hasSubscribers;
  },
  get tracesSession() {
    return sessionChannel.hasSubscribers;
  },
  run: (call, work) =>
    // Stores bound to the channel are active during the whole call, so its steps inherit them.
    requestChannel.start.runStores(call, () => {
      const promise = work();
      requestChannel.end.publish(call);
      return promise;
    }),
  callSettled: (call) => {
    if ('error' in call) requestChannel.error.publish(call);
    requestChannel.asyncStart.publish(call);
    requestChannel.asyncEnd.publish(call);
  },
  sessionEvent: (event: TracedSessionEvent) => sessionChannel.publish(event),
};
