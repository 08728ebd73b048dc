/** Reports changes of a session to the tracer, with the session and the server. */
import { formatServer } from '../connect-string.ts';
import type { SessionTraceDetail, Tracer } from '../tracing.ts';
import type { MachineDriver } from './machine-driver.ts';

export class SessionTracer {
  readonly #tracer: Tracer;
  readonly #driver: MachineDriver;

  constructor(tracer: Tracer, driver: MachineDriver) {
    this.#tracer = tracer;
    this.#driver = driver;
  }

  /** Check this before `record`, so that a session without a tracer creates no reports. */
  get isEnabled(): boolean {
    return this.#tracer.tracesSession;
  }

  /** The server that is connected, tried, or was last. */
  get server(): string | undefined {
    const { server } = this.#driver.machine;
    return server === undefined ? undefined : formatServer(server);
  }

  record(detail: SessionTraceDetail): void {
    this.#tracer.sessionEvent({ ...detail, sessionId: this.#driver.machine.sessionId, server: this.server });
  }
}
