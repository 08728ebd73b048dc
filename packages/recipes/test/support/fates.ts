/** What happens to each request of one client, as the test decides. */
import { type Client, connect, type ConnectOptions, type Transport } from '@tskeeper/client';
import { FrameDecoder, OpCode, readReplyHeader, Xid } from '@tskeeper/protocol';
import { reply } from '../../../client/test/support/server-frames.ts';
import type { RecipeWorld } from './recipe-world.ts';

/**
 * The connection breaks, before the request has reached the server, or before its reply has
 * arrived. `silence`: the connection stays and the request is applied, but from then on only pings
 * are answered; for a client with `requestTimeoutMs`.
 */
export type Loss = 'request' | 'answer' | 'silence';

/**
 * undefined: the request is applied and answered. `ahead`: something else happens before it reaches
 * the server; `behind`: before its reply is read. `refused`: it is not applied, and answered with
 * this error; only for a single request in flight.
 */
export type Fate =
  | Loss
  | { readonly ahead: () => Promise<unknown> }
  | { readonly behind: () => Promise<unknown> }
  | { readonly refused: number }
  | undefined;

/**
 * A request that is sent: its number, over all connections, and its content. Handshakes and pings
 * do not count.
 */
export interface Departing {
  readonly at: number;
  readonly opCode: number;
}

/** A client whose requests have these fates, from the first after its handshake on. */
export async function fated(t: RecipeWorld, fateOf: (request: Departing) => Fate, options: ConnectOptions = {}): Promise<Client> {
  const given = t.world.options(options);
  const wire = given.transport!;
  let sent = 0;
  const transport: Transport = {
    resolve: (host) => wire.resolve!(host),
    connect: (address, sink) => {
      let isHandshake = true;
      let isDeaf = false;
      /** Finds the replies to pings, when nothing else is answered. */
      let pings: FrameDecoder | undefined;
      let isCut = false;
      let isHeld = false;
      const departing: Buffer[] = [];
      let arrived: Buffer[] | undefined;
      const cnxn = wire.connect(address, {
        connected: () => sink.connected(),
        received: (bytes) => {
          if (isDeaf) return;
          if (pings !== undefined) {
            pings.feed(bytes, 0, bytes.length, (reader) => {
              if (readReplyHeader(reader).xid === Xid.ping) sink.received(reply(Xid.ping, 0));
              return true;
            });
            return;
          }
          if (arrived === undefined) sink.received(bytes);
          else arrived.push(Buffer.from(bytes));
        },
        closed: (error) => sink.closed(error),
      });
      const lose = () => {
        isDeaf = true;
        t.world.clock.after(50, () => {
          cnxn.destroy();
          sink.closed('the connection broke');
        });
      };
      const fateOfFrame = (frame: Buffer): Fate => {
        const opCode = isHandshake ? OpCode.ping : frame.readInt32BE(8);
        isHandshake = false;
        return opCode === OpCode.ping ? undefined : fateOf({ at: sent++, opCode });
      };
      const departBehind = async (happening: Promise<unknown>, frame: Buffer) => {
        isHeld = true;
        await happening;
        isHeld = false;
        cnxn.send(frame);
        depart();
      };
      const arriveBehind = async (happening: Promise<unknown>) => {
        const late: Buffer[] = [];
        arrived = late;
        await happening;
        arrived = undefined;
        for (const bytes of late) sink.received(bytes);
      };
      const depart = () => {
        while (!isCut && departing.length > 0) {
          if (isHeld) return;
          const frame = departing.shift()!;
          const fate = fateOfFrame(frame);
          if (typeof fate === 'object' && 'ahead' in fate) {
            void departBehind(fate.ahead(), frame);
            return;
          }
          if (typeof fate === 'object' && 'refused' in fate) {
            t.world.clock.after(1, () => sink.received(reply(frame.readInt32BE(4), 0, fate.refused)));
            continue;
          }
          if (fate === 'silence') pings ??= new FrameDecoder(1 << 20);
          isCut = fate === 'request';
          if (!isCut) cnxn.send(frame);
          if (typeof fate === 'object') void arriveBehind(fate.behind());
          else if (fate !== undefined && fate !== 'silence') lose();
        }
      };
      return {
        send: (bytes) => {
          const buffer = Buffer.from(bytes);
          for (let at = 0; at < buffer.length; at += 4 + buffer.readInt32BE(at)) {
            departing.push(buffer.subarray(at, at + 4 + buffer.readInt32BE(at)));
          }
          depart();
        },
        end: () => cnxn.end(),
        destroy: () => cnxn.destroy(),
      };
    },
  };
  return await t.until(connect('server:2181', { ...given, transport }));
}
