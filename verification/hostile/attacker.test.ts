/**
 * A stranger counts replies and their errors however the bytes arrive: a rejected attack must not
 * count as one that was carried out.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { reservePort } from '@tskeeper/harness';
import { answersByError, Attacker } from './attacks/attacker.ts';

function frame(length: number, error: number): Buffer {
  const bytes = Buffer.alloc(4 + length, 9);
  bytes.writeInt32BE(length, 0);
  bytes.writeInt32BE(error, 16);
  return bytes;
}

it('a stranger counts replies and errors that arrive in pieces of any length', async () => {
  const port = await reservePort();
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const joining = Attacker.connect(port, '127.0.0.1');
  const [socket] = await accepted;
  socket.setNoDelay(true);
  socket.write(frame(37, 0));
  const stranger = await joining;
  answersByError.clear();
  const asked = Array.from({ length: 4 }, () => stranger.send({ kind: 'ping' }));
  const answers = Buffer.concat([frame(16, 0), frame(16, -101), frame(1000, 0), frame(16, -115)]);
  for (let at = 0, length = 1; at < answers.length; at += length++) {
    socket.write(answers.subarray(at, at + length));
    await new Promise(setImmediate);
  }
  await Promise.all(asked);
  expect(await stranger.untilAnswered()).toBe(true);
  expect(stranger.replyCount).toBe(5);
  expect(stranger.lastError).toBe(-115);
  expect([...answersByError]).toEqual([
    [0, 2],
    [-101, 1],
    [-115, 1],
  ]);
  stranger.destroy();
  socket.destroy();
  server.close();
});
