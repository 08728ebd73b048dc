/**
 * The usual quorum: more than half of the voters. Of four servers that is three, so a fourth server
 * does not increase the number of failures survived.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { sortedUniqueSids, type QuorumVerifier, type SidSet } from './quorum-verifier.ts';

export class MajorityQuorum implements QuorumVerifier {
  readonly voters: readonly Sid[];

  constructor(voters: Iterable<Sid>) {
    this.voters = sortedUniqueSids(voters);
  }

  isVoter(sid: Sid): boolean {
    return this.voters.includes(sid);
  }

  get active(): this {
    return this;
  }

  weight(sid: Sid): number {
    return this.isVoter(sid) ? 1 : 0;
  }

  containsQuorum(sids: SidSet): boolean {
    let present = 0;
    for (let index = 0; index < this.voters.length; index++) if (sids.has(this.voters[index]!)) present++;
    return present * 2 > this.voters.length;
  }

  get mayLackMajority(): boolean {
    return false;
  }

  fingerprint(to: Fingerprint): void {
    to.text('majority');
    for (const sid of this.voters) to.number(sid);
  }
}
