/** The failed attempts to connect since a session was created or last connected. */
import type { ConnectFailure } from '../watched-event.ts';

/** A place where attempts to connect failed, the last reason, and their number. */
export interface ServerFailures {
  readonly server: string;
  readonly reason: string;
  readonly attempts: number;
}

/**
 * Maximum number of places that are remembered for the error of a session that could not be opened.
 */
const serverFailuresMax = 16;

export class ConnectFailures {
  readonly #byServer = new Map<string, ServerFailures>();
  #attempts = 0;

  add(server: string, reason: string): ConnectFailure {
    this.#attempts++;
    if (this.#byServer.size < serverFailuresMax || this.#byServer.has(server))
      this.#byServer.set(server, { server, reason, attempts: (this.#byServer.get(server)?.attempts ?? 0) + 1 });
    return { server, reason, attempt: this.#attempts };
  }

  clear(): void {
    this.#byServer.clear();
    this.#attempts = 0;
  }

  get byServer(): readonly ServerFailures[] {
    return [...this.#byServer.values()];
  }
}
