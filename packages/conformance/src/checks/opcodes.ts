/** Requests that no client sends. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal } from '../expect.ts';
import type { RawCnxn } from '../raw-cnxn.ts';

/** Apache's servers may answer a few pings before they close, and close a silent connection late. */
const pingsMax = 100;

async function endOf(cnxn: RawCnxn): Promise<'closed' | 'open'> {
  for (let pings = 0; pings < pingsMax && !cnxn.isClosed; pings++) await cnxn.ping();
  return cnxn.isClosed ? 'closed' : 'open';
}

export const opcodeChecks: readonly RunnableCheck[] = [
  {
    name: 'opcodes.unknown',
    title: 'a number that is not an operation is answered Unimplemented (-6), and the server closes the connection',
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
    title: 'check exists inside a multi only: alone it is answered like a number that is not an operation',
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
    title: 'a read that ends too early is refused (MarshallingError), and the connection goes on',
    rows: ['A10'],
    docs: 'FinalRequestProcessor.processRequest',
    async run(ground) {
      // A read only: a write that its leader cannot decode stops an ensemble of Apache's for good.
      const cnxn = await ground.openRawSession();
      equal('the error', (await cnxn.call(OpCode.getData, (writer) => writer.ustring(ground.root)))?.err, -5);
      equal('the error of a ping', (await cnxn.ping())?.err, 0);
    },
  },
];
