/** Makes a span of each call of every client in this process; returns how to end that. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { formatSessionId, KeeperError, type TracedCall } from '@tskeeper/client';
import { context, type Span, SpanKind, SpanStatusCode, trace } from './open-telemetry-api.ts';

export function traceZooKeeper(): () => void {
  const tracer = trace.getTracer('@tskeeper/client');
  const calls = tracingChannel<Span, TracedCall>('tskeeper:request');
  const active = new AsyncLocalStorage<Span>();
  const spans = new WeakMap<TracedCall, Span>();

  // The store holds for all that the call does, so the steps of a deleteRecursive become children of its span.
  calls.start.bindStore(active, (call) => {
    const around = active.getStore();
    const parent = around === undefined ? context.active() : trace.setSpan(context.active(), around);
    const attributes = { 'zookeeper.path': call.chroot + (call.path ?? ''), 'zookeeper.session': formatSessionId(call.sessionId) };
    const span = tracer.startSpan(`zookeeper ${call.op}`, { kind: SpanKind.CLIENT, attributes }, parent);
    spans.set(call, span);
    return span;
  });

  const ended = (message: unknown) => {
    const { server, xid, zxid, attempt, error } = message as TracedCall;
    const span = spans.get(message as TracedCall);
    const answered = { 'server.address': server, 'zookeeper.xid': xid, 'zookeeper.zxid': zxid?.toString(16) };
    span?.setAttributes({ ...answered, 'zookeeper.attempts': attempt });
    if (error instanceof Error) {
      span?.recordException(error);
      span?.setStatus({ code: SpanStatusCode.ERROR, message: KeeperError.is(error) ? error.code : error.message });
    }
    span?.end();
  };
  calls.asyncEnd.subscribe(ended);
  return () => {
    calls.asyncEnd.unsubscribe(ended);
    calls.start.unbindStore(active);
  };
}
