/** Requests that no client sends. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal } from '../expect.ts';
import type { RawCnxn } from '../raw-cnxn.ts';

/**
 * Apache's servers may answer a few pings before they close the connection, and close a silent one
 * late.
 */
const pingsMax = 100;

async function endOf(cnxn: RawCnxn): Promise<'closed' | 'open'> {
  for (let pings = 0; pings < pingsMax && !cnxn.isClosed; pings++) await cnxn.ping();
  return cnxn.isClosed ? 'closed' : 'open';
}

export const opcodeChecks: readonly RunnableCheck[] = [
  {
    name: 'opcodes.unknown',
    title: 'an unknown opcode is answered with Unimplemented (-6), and the server closes the connection',
    rows: ['A10', 'E30'],
    docs: 'Request.isValid; UnimplementedRequestProcessor',
    async run(ground) {
      for (const opCode of [999, 0, 99, -7]) {
        const cnxn = await ground.openRawSession();
        equal(`the error of ${opCode}`, (await cnxn.call(opCode))?.err, -6);
        equal(`the connection after ${opCode}`, await endOf(cnxn), 'closed');
      }
    },
  },
  {
    name: 'opcodes.check-alone',
    title: 'check exists only inside a multi: alone it is answered like an unknown opcode',
    rows: ['A14'],
    docs: 'ZOOKEEPER-2623',
    since: [3, 9, 3],
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.check, (writer) => operations.check.request.write(writer, { path: ground.root, version: -1 }));
      equal('the error', reply?.err, -6);
      equal('the connection after it', await endOf(cnxn), 'closed');
    },
  },
  {
    name: 'opcodes.undecodable',
    title: 'a truncated read is rejected (MarshallingError), and the connection stays open',
    rows: ['A10'],
    docs: 'FinalRequestProcessor.processRequest',
    async run(ground) {
      // Only a read: a write that its leader cannot decode stops an ensemble of Apache's for good.
      const cnxn = await ground.openRawSession();
      equal('the error', (await cnxn.call(OpCode.getData, (writer) => writer.ustring(ground.root)))?.err, -5);
      equal('the error of a ping', (await cnxn.ping())?.err, 0);
    },
  },
];
