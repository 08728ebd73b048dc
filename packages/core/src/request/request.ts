/**
 * A request of a client, from its admission to its reply or until it is parked. The parts of the
 * server that handle requests reuse one object each, so that no request allocates one: it is valid
 * until the next request is admitted, or as long as the job that serves it runs.
 */
import type { Millis } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import { Cnxn } from '../cnxn/cnxn.ts';
import type { Now } from '../now.ts';
import { AddressLoad } from '../pending/load.ts';
import { noCnxn } from '../pending/proposal.ts';

export class Request {
  cnxn: Cnxn;
  xid = 0;
  opCode = 0;
  /** The identities with which it arrived: a later authentication has no effect on it. */
  identities = Identities.none;
  arrivedMs: Millis = 0;
  now: Now;
  /** It waited too long for its turn, or the limits refuse it; it is answered ThrottledOp. */
  isThrottled = false;
  /** Where its frame starts in the bytes of its reader. */
  frameStart = 0;

  constructor(now: Now) {
    const context = { remoteAddress: '', remotePort: 0, localPort: 0, secure: false, peerCertificate: undefined };
    this.cnxn = new Cnxn(noCnxn, context, new AddressLoad(''), now.wallMs);
    this.now = now;
  }
}
