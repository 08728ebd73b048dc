/**
 * A server that sends more than the program can process: timers and the rest of the program get
 * their turns.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { NodeTransport, TlsTransport, type Transport, type TransportCnxn } from '../../src/index.ts';
import { identity } from '../support/certificates.ts';

const ca = identity({ cn: 'authority', isAuthority: true });
const good = identity({ cn: 'zk', names: ['IP:127.0.0.1'], by: ca });
const sentBytes = 16 * 1024 * 1024;
/** The limit of a turn, and one more buffer of a socket. */
const turnBytesMax = (256 + 64) * 1024;

let server: Server | undefined;
let socket: Socket | undefined;
let cnxn: TransportCnxn | undefined;

afterEach(async () => {
  cnxn?.destroy();
  socket?.destroy();
  if (server !== undefined) await new Promise((resolve) => server!.close(resolve));
});

const kinds: Readonly<
  Record<string, { readonly serve: (serving: (socket: Socket) => void) => Server; readonly transport: () => Transport }>
> = {
  TCP: { serve: (serving) => createServer(serving), transport: () => new NodeTransport() },
  TLS: {
    serve: (serving) => createTlsServer({ cert: good.cert, key: good.key }, serving),
    transport: () => new TlsTransport({ ca: ca.cert }),
  },
};

it.each(Object.keys(kinds))('a client reads at most a quarter of a megabyte per turn of the event loop: %s', async (kind) => {
  const { serve, transport } = kinds[kind]!;
  server = serve((accepted) => {
    socket = accepted;
    accepted.on('error', () => undefined);
    accepted.end(Buffer.alloc(sentBytes));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let inTurn = 0;
  let most = 0;
  let all = 0;
  const turn = { next: undefined as NodeJS.Immediate | undefined };
  const newTurn = () => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    turn.next = setImmediate(newTurn);
  };
  newTurn();
  const end = await new Promise<string | undefined>((resolve) => {
    cnxn = transport().connect(
      { host: '127.0.0.1', port: (server!.address() as AddressInfo).port },
      {
        connected: () => undefined,
        received: (bytes) => {
          inTurn += bytes.length;
          all += bytes.length;
        },
        closed: resolve,
      },
    );
  });
  clearImmediate(turn.next);
  // Nothing is lost, including the end.
  expect([end, all]).toEqual([undefined, sentBytes]);
  expect(most).toBeLessThanOrEqual(turnBytesMax);
});
