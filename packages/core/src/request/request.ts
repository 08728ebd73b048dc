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

  constructor(now: Now, cnxn = unusedCnxn(now)) {
    this.cnxn = cnxn;
    this.now = now;
  }

  /** For a job that may still run when the next request is admitted. */
  copy(): Request {
    const own = new Request(this.now, this.cnxn);
    own.xid = this.xid;
    own.opCode = this.opCode;
    own.identities = this.identities;
    own.arrivedMs = this.arrivedMs;
    own.isThrottled = this.isThrottled;
    own.frameStart = this.frameStart;
    return own;
  }
}

/** In place of a connection before the first request. */
function unusedCnxn(now: Now): Cnxn {
  const context = { remoteAddress: '', remotePort: 0, localPort: 0, secure: false, peerCertificate: undefined };
  return new Cnxn(noCnxn, context, new AddressLoad(''), now.wallMs);
}
