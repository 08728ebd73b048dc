/**
 * Writes something of everything into a server's log and snapshots: every txn type, rejected
 * writes, successful and failed multis, open sessions with ephemeral znodes, quotas, ACLs of
 * several schemes, data that is null, empty, binary and large.
 */
import { OpCode, type SessionId } from '@tskeeper/protocol';

import { clientCount, Generator, type GeneratorOptions } from '../differential/generator.ts';
import { Side } from '../differential/side.ts';
import { Random } from '../random.ts';
import { creatorAcl, openAcl, RawClient, readAcl, record } from '@tskeeper/harness';

export interface OpenSession {
  readonly sessionId: SessionId;
  readonly passwd: Buffer;
  /** What getEphemerals must return. */
  readonly ephemerals: readonly string[];
}

/** Longer than any restart in a test. */
const timeOut = 600_000;

/** The part that is the same every time; `name` separates several runs on one server. */
export async function fixedWorkload(port: number, name: string): Promise<OpenSession[]> {
  const client = await RawClient.connectOrThrow(port, timeOut);
  await client.auth('digest', 'ann:secret');
  const top = `/${name}`;
  const expect = async (err: number, type: number, fields: Parameters<RawClient['call']>[1]): Promise<void> => {
    const answer = await client.call(type, fields);
    if (answer.err !== err) throw new Error(`the workload's request of type ${type} gave ${answer.err}, not ${err}`);
  };
  const text = Buffer.from('data');
  await expect(0, OpCode.create, record.create(top, null, openAcl, 0));
  await expect(0, OpCode.create2, record.create(`${top}/empty`, Buffer.alloc(0), creatorAcl, 0));
  await expect(0, OpCode.create, record.create(`${top}/binary`, Buffer.from([0, 255, 128, 66]), readAcl, 0));
  await expect(0, OpCode.create, record.create(`${top}/ünï`, Buffer.alloc(700_000, 'x'), openAcl, 0));
  await expect(0, OpCode.createContainer, record.create(`${top}/container`, text, openAcl, 4));
  await expect(0, OpCode.create, record.create(`${top}/container/child`, text, [{ perms: 31, scheme: 'ip', id: '127.0.0.1' }], 0));
  await expect(0, OpCode.createTTL, record.createTTL(`${top}/ttl`, text, openAcl, 5, 1_000_000_000n));
  await expect(0, OpCode.createTTL, record.createTTL(`${top}/ttl-`, text, openAcl, 6, (1n << 40n) - 1n));
  for (let i = 0; i < 3; i++) await expect(0, OpCode.create, record.create(`${top}/s-`, text, openAcl, 2));
  await expect(0, OpCode.delete, record.pathAndInt(`${top}/s-0000000008`, -1));
  await expect(0, OpCode.setData, record.setData(`${top}/empty`, null, 0));
  await expect(0, OpCode.setACL, record.setACL(`${top}/empty`, [...readAcl, ...creatorAcl], 0));
  // Rejected writes are txns as well.
  await expect(-110, OpCode.create, record.create(top, null, openAcl, 0));
  await expect(-103, OpCode.setData, record.setData(`${top}/empty`, null, 0));
  await expect(-101, OpCode.delete, record.pathAndInt(`${top}/missing`, -1));
  const create = (path: string, flags: number) => ({ type: OpCode.create, fields: record.create(path, text, openAcl, flags) });
  const remove = (path: string) => ({ type: OpCode.delete, fields: record.pathAndInt(path, -1) });
  const set = (path: string) => ({ type: OpCode.setData, fields: record.setData(path, text, -1) });
  const check = (path: string) => ({ type: OpCode.check, fields: record.pathAndInt(path, 0) });
  await expect(
    0,
    OpCode.multi,
    record.multi([
      create(`${top}/m`, 0),
      create(`${top}/m/s-`, 2),
      check(`${top}/m`),
      set(`${top}/m`),
      create(`${top}/gone`, 0),
      remove(`${top}/gone`),
    ]),
  );
  await expect(0, OpCode.multi, record.multi([create(`${top}/never`, 0), check(`${top}/missing`), remove(`${top}/m`)]));
  await expect(0, OpCode.multi, record.multi([]));
  // An undecodable request. A Java server logs it with the zxid of the txn before it.
  await expect(-5, OpCode.create, record.bytes(Buffer.from([127, 255, 255, 255])));
  const quota = `/zookeeper/quota${top}`;
  await expect(0, OpCode.create, record.create(quota, null, openAcl, 0));
  const limits = Buffer.from('count=100,bytes=-1=;byteHardLimit=5000000;countHardLimit=-1');
  await expect(0, OpCode.create, record.create(`${quota}/zookeeper_limits`, limits, openAcl, 0));
  await expect(0, OpCode.create, record.create(`${quota}/zookeeper_stats`, Buffer.from('count=0,bytes=0'), openAcl, 0));
  await expect(0, OpCode.create, record.create(`${top}/counted`, text, openAcl, 0));
  // Sessions that end, and sessions that stay.
  const ending = await RawClient.connectOrThrow(port, timeOut);
  await ending.call(OpCode.create, record.create(`${top}/passing`, text, openAcl, 1));
  await ending.close();
  const open: OpenSession[] = [];
  for (let i = 0; i < 3; i++) {
    const holder = await RawClient.connectOrThrow(port, timeOut);
    const ephemerals: string[] = [];
    for (let n = 0; n < i; n++) {
      const { value } = await holder.call(OpCode.create, record.create(`${top}/e-`, text, openAcl, 3));
      ephemerals.push(value.path!);
    }
    holder.abandon();
    open.push({ sessionId: holder.sessionId, passwd: holder.passwd, ephemerals });
  }
  await client.close();
  return open;
}

/** A random stream of the differential run, sent to one server. Its sessions stay open. */
export async function randomWorkload(port: number, seed: number, requests: number, options: GeneratorOptions): Promise<void> {
  const generator = new Generator(new Random(seed), options);
  const side = new Side(port, clientCount, { zxid: (zxid) => zxid });
  let steps = generator.initialSteps();
  for (let sent = 0; sent < requests; sent += 120) {
    for (const step of steps) await side.run(step);
    await side.settle();
    side.takeLogs();
    for (let client = 0; client < clientCount; client++) {
      if (side.isConnected(client)) continue;
      for (const step of side.hasSession(client) ? generator.reattach(client) : generator.newSession(client)) await side.run(step);
    }
    steps = generator.round(120);
  }
  for (let client = 0; client < clientCount; client++) side.drop(client, true);
}
