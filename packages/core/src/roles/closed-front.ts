import type { ClientFront } from '../client-front.ts';
import type { ClientOutput, CnxnId } from '../client-output.ts';
import { IdleInspector } from '../idle-inspector.ts';
import type { Inspector } from '../inspector.ts';
import type { PeerState } from './peer-state.ts';

/**
 * The front of a server of an ensemble while it serves no clients: it neither leads nor follows, or
 * it leads and leaves clients to its learners (`leaderServes`). Each connection is closed as soon
 * as it opens. Input of connections that the last server has closed has no effect.
 *
 * While the lead is handed over, that would be unkind: the next leader serves within milliseconds,
 * and a client that is refused pauses for much longer. So connections wait then, unread.
 */
export class ClosedFront implements ClientFront {
  isHolding = false;
  readonly isBusy = false;
  readonly busyCnxn = undefined;
  readonly workUnits = 0;
  readonly #state: PeerState;
  readonly #out: ClientOutput;
  readonly #inspector: IdleInspector;

  constructor(state: PeerState) {
    this.#state = state;
    this.#out = state.io.clients;
    this.#inspector = new IdleInspector(state.options.core.tickTimeMs, this.#out);
  }

  connect(cnxn: CnxnId): void {
    this.#out.close(cnxn, 'not serving');
  }

  frame(): void {}

  bytesReceived(): void {}

  handshakeDelayed(): void {}

  lastFrame(): void {}

  disconnected(): void {}

  drained(): void {}

  /** A connection that is not served is being closed, so nothing holds its input back. */
  wantsInput(): boolean {
    return true;
  }

  get inspect(): Inspector {
    return this.#inspector.inspectorOf(this.#state.replica);
  }
}
