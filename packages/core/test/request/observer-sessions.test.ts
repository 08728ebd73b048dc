import { expect, it } from 'vitest';
import { LeaderForwarder } from '../../src/request/leader-forwarder.ts';
import { IdleLink } from '../support/lone-server.ts';

it("an observer handles the leader's answers about a session in order, each after its sync: an end does not overtake an earlier answer", () => {
  const forwarding = new LeaderForwarder('observer', new IdleLink(), {} as never);
  const session = { sessionHigh: 1, sessionLow: 2 };
  forwarding.revalidate(session, 1000);
  forwarding.revalidate(session, 1000);
  expect([forwarding.revalidated(session, true), forwarding.revalidated(session, false)]).toEqual([false, false]);
  expect([forwarding.takeSync(), forwarding.takeSync()]).toMatchObject([{ isValid: true }, { isValid: false }]);
});
