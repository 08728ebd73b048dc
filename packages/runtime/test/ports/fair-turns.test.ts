/**
 * Whose frames the core gets next: turns alternate by address, then by connection, and those that
 * have used much of its time come later.
 */
import { describe, expect, test } from 'vitest';
import { frame, handshake, PortRig } from './port-rig.ts';

const attacker = '10.0.6.6';
const honest = '10.0.9.1';
/** The turns of a listing, and the units that the core counts for it. */
const listingTurns = 10;
const listingUnits = 1_500_000;

/**
 * A port whose core takes ten turns for each request that begins with `list`, and counts the cost
 * at its end.
 */
async function openPort(): Promise<PortRig> {
  const rig = await PortRig.open({ options: { maxClientCnxns: 0 } });
  const { core } = rig;
  core.answer = (cnxn, body) => {
    core.write(cnxn, body);
    if (!body.toString('latin1').startsWith('list')) return;
    core.busyTurns = listingTurns;
    core.busyCnxn = cnxn;
    core.unitsPerTurn = listingUnits / listingTurns;
  };
  return rig;
}

/** Connections of one address, each of which requests so many listings at once, all in one turn. */
function listers(rig: PortRig, address: string, count: number, listings: number): void {
  const streams = Array.from({ length: count }, () => join(rig, address));
  receive(
    rig,
    streams.map((stream) => ({
      stream,
      bytes: Buffer.concat(Array.from({ length: listings }, (_, nth) => frame(`list ${stream}.${nth}`))),
    })),
  );
}

/** Connects a client, and returns its number at the port. */
function join(rig: PortRig, address: string): number {
  const stream = rig.core.contexts.size;
  rig.join(address);
  return stream;
}

/** Passes bytes to the port in one turn. */
function receive(rig: PortRig, input: readonly { readonly stream: number; readonly bytes: Buffer }[]): void {
  const streams = input.map(({ stream }) => stream);
  const buffers = input.map(({ bytes }) => bytes);
  const starts = input.map(() => 0);
  const ends = input.map(({ bytes }) => bytes.length);
  rig.runTurn((now) => rig.port.received({ count: input.length, streams, buffers, starts, ends }, now));
}

function turnsOf(rig: PortRig, count: number): void {
  for (let turn = 0; turn < count; turn++) rig.runTurn(() => undefined);
}

/** Requests that reached the core before this one, since there were `since` of them. */
function overtaken(rig: PortRig, body: string, since: number): string[] {
  const at = rig.core.bodies.indexOf(body);
  expect(at, `${body} has reached the core`).toBeGreaterThanOrEqual(since);
  return rig.core.bodies.slice(since, at);
}

function hand(rig: PortRig, stream: number, body: string): void {
  receive(rig, [{ stream, bytes: frame(body) }]);
}

describe('turns', () => {
  test('alternate between addresses: of 55 connections with 20 listings each at most one is served before an honest request', async () => {
    const rig = await openPort();
    const stream = join(rig, honest);
    listers(rig, attacker, 55, 20);
    turnsOf(rig, 3);
    for (let round = 0; round < 20; round++) {
      const before = rig.core.bodies.length;
      hand(rig, stream, `honest ${round}`);
      turnsOf(rig, 2 * listingTurns + 5);
      expect(overtaken(rig, `honest ${round}`, before).length).toBeLessThanOrEqual(1);
    }
    // All of them are served in the end.
    rig.settle();
    expect(rig.core.bodies).toHaveLength(55 * 20 + 20);
  });

  test('an address that has used little of the core is served until it has used as much as others', async () => {
    const rig = await openPort();
    const streams = Array.from({ length: 30 }, () => join(rig, honest));
    listers(rig, attacker, 5, 5);
    turnsOf(rig, 3);
    const before = rig.core.bodies.length;
    receive(
      rig,
      streams.map((stream) => ({ stream, bytes: frame(`honest ${stream}`) })),
    );
    rig.settle();
    const last = Math.max(...streams.map((stream) => rig.core.bodies.indexOf(`honest ${stream}`)));
    const listings = rig.core.bodies.slice(before, last).filter((body) => body.startsWith('list'));
    expect(listings.length).toBeLessThanOrEqual(3);
  });

  test('alternate between the connections of an address', async () => {
    const rig = await openPort();
    const stream = join(rig, attacker);
    listers(rig, attacker, 10, 20);
    turnsOf(rig, 3);
    // Some have been served twice by now, and have had their share.
    turnsOf(rig, 12 * (listingTurns + 2));
    const before = rig.core.bodies.length;
    hand(rig, stream, 'a neighbour');
    turnsOf(rig, 2 * listingTurns + 5);
    expect(overtaken(rig, 'a neighbour', before).length).toBeLessThanOrEqual(1);
  });

  test('a request that arrives while others wait for their turn does not overtake them', async () => {
    const rig = await openPort();
    const crowd = Array.from({ length: 12 }, () => join(rig, attacker));
    const flood = (body: string) => Buffer.concat(Array.from({ length: 200 }, () => frame(body)));
    receive(
      rig,
      crowd.map((stream, index) => ({ stream, bytes: flood(index === 11 ? 'waited' : 'short') })),
    );
    expect(rig.core.bodies).not.toContain('waited');
    receive(rig, [{ stream: crowd[0]!, bytes: flood('came later') }]);
    rig.settle();
    expect(rig.core.bodies.lastIndexOf('waited')).toBeLessThan(rig.core.bodies.indexOf('came later'));
    expect(rig.core.bodies).toHaveLength(13 * 200);
  });

  test('a client that sends a handshake and a request and closes while others wait for their turn is served to its end', async () => {
    const rig = await openPort();
    const crowd = Array.from({ length: 12 }, () => join(rig, attacker));
    const stream = rig.network.streamCount;
    rig.dial(honest);
    const flood = Buffer.concat(Array.from({ length: 256 }, () => frame('short')));
    const input = crowd.map((of) => ({ stream: of, bytes: flood }));
    const bytes = Buffer.concat([handshake(), frame('asked')]);
    rig.runTurn((now) => {
      for (const each of [...input, { stream, bytes }]) {
        rig.port.received({ count: 1, streams: [each.stream], buffers: [each.bytes], starts: [0], ends: [each.bytes.length] }, now);
      }
      rig.port.ended(stream, now);
    });
    rig.settle();
    expect(rig.core.bodies).toContain('asked');
  });

  test('end early when each request is costly, although none runs as a job', async () => {
    const rig = await openPort();
    const { core } = rig;
    core.answer = (cnxn, body) => {
      core.write(cnxn, body);
      if (body.toString('latin1') === 'costly') core.workUnits += 8000;
    };
    const [greedy, modest] = [join(rig, attacker), join(rig, honest)];
    receive(rig, [
      { stream: greedy, bytes: Buffer.concat(Array.from({ length: 200 }, () => frame('costly'))) },
      { stream: modest, bytes: frame('modest') },
    ]);
    rig.settle();
    expect(core.bodies.indexOf('modest')).toBeLessThan(4);
    expect(core.bodies).toHaveLength(201);
  });

  test('what an address used while no other waited does not count against it', async () => {
    const rig = await openPort();
    const [early, other] = [join(rig, attacker), join(rig, honest)];
    for (let round = 0; round < 20; round++) {
      hand(rig, early, `list ${round}`);
      turnsOf(rig, listingTurns + 2);
    }
    const before = rig.core.bodies.length;
    hand(rig, early, 'list once more');
    receive(rig, [{ stream: other, bytes: Buffer.concat(Array.from({ length: 8 }, (_, nth) => frame(`list of another ${nth}`))) }]);
    hand(rig, early, 'short');
    rig.settle();
    // It is charged only for the last one.
    expect(rig.core.bodies.slice(before).indexOf('short')).toBeLessThanOrEqual(3);
    expect(rig.core.bodies).toHaveLength(before + 10);
  });
});
