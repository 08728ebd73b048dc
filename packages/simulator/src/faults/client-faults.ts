/** What clients do to servers, by bad luck or bad manners. */
import { RawClient } from '../clients/raw-client.ts';
import type { Fault } from './fault.ts';

export const move: Fault = {
  id: 'F17',
  what: 'a client comes back over a new connection while the old one is still there',
  strike: (stage) => stage.anyActor().moveOn(),
};

export const sleep: Fault = {
  id: 'F28',
  what: 'a client falls off the net, for longer than its session lives perhaps',
  strike: (stage, random) => stage.anyActor().sleep(random.below(2500)),
};

export const halfFrame: Fault = {
  id: 'F29',
  what: 'a client sends part of a request and falls silent',
  strike(stage) {
    const actor = stage.anyActor();
    if (actor instanceof RawClient) actor.halfFrame();
  },
};

export const babble: Fault = {
  id: 'F30',
  what: 'a client sends what is no request',
  strike(stage) {
    const actor = stage.anyActor();
    if (actor instanceof RawClient) actor.babble();
  },
};

export const flood: Fault = {
  id: 'F27',
  what: 'a client sends two hundred requests without waiting for an answer',
  strike(stage, random) {
    const actor = stage.anyActor();
    if (!actor.ready) return;
    for (let count = 0; count < 200; count++) {
      if (random.below(4) > 0) actor.ask({ name: 'exists', record: { path: '/a', watch: false } });
      else actor.ask({ name: 'setData', record: { path: '/', data: Buffer.from(`flood ${stage.nowMs} ${count}`), version: -1 } });
    }
  },
};

export const hoard: Fault = {
  id: 'F32',
  what: 'somebody begins long requests over several connections of one address, and reads nothing',
  strike(stage, random) {
    const bytesOfEach = Array.from({ length: 2 + random.below(6) }, () => 2000 + random.below(28_000));
    stage.addHoarder(bytesOfEach, 200 + random.below(1500));
  },
};

export const impostor: Fault = {
  id: 'F30',
  what: 'somebody asks for a session that is not his, with a wrong password, or for one that has seen a zxid from the future',
  strike(stage, random) {
    const victim = stage.anyActor();
    if (!(victim instanceof RawClient) || victim.session === 0n) return;
    stage.addImpostor(victim, random.below(3) === 0 ? 'from the future' : 'wrong password');
  },
};
