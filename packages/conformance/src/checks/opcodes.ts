/** Requests that no client sends. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual } from '../expect.ts';
import type { RawCnxn } from '../raw-cnxn.ts';

/**
 * Apache's servers may answer a few pings before they close the connection, and close a silent one
 * late.
 */
const pingsMax = 100;

async function stateAfterPings(cnxn: RawCnxn): Promise<'closed' | 'open'> {
  for (let pings = 0; pings < pingsMax && !cnxn.isClosed; pings++) await cnxn.ping();
  return cnxn.isClosed ? 'closed' : 'open';
}

export const opcodeChecks: readonly RunnableCheck[] = [
  {
    name: 'opcodes.unknown',
    title: 'an unknown opcode is answered with Unimplemented (-6), and the server closes the connection',
    behaviourIds: ['A10', 'E30'],
    docs: 'Request.isValid; UnimplementedRequestProcessor',
    async run(context) {
      for (const opCode of [999, 0, 99, -7]) {
        const cnxn = await context.openRawCnxnWithSession();
        expectEqual(`the error of ${opCode}`, (await cnxn.call(opCode))?.err, -6);
        expectEqual(`the connection after ${opCode}`, await stateAfterPings(cnxn), 'closed');
      }
    },
  },
  {
    name: 'opcodes.check-alone',
    title: 'check exists only inside a multi: alone it is answered like an unknown opcode',
    behaviourIds: ['A14'],
    docs: 'ZOOKEEPER-2623',
    since: [3, 9, 3],
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.check, (writer) =>
        operations.check.request.write(writer, { path: context.rootPath, version: -1 }),
      );
      expectEqual('the error', reply?.err, -6);
      expectEqual('the connection after it', await stateAfterPings(cnxn), 'closed');
    },
  },
  {
    name: 'opcodes.undecodable',
    title: 'a truncated read is rejected (MarshallingError), and the connection stays open',
    behaviourIds: ['A10'],
    docs: 'FinalRequestProcessor.processRequest',
    async run(context) {
      // Only a read: a write that its leader cannot decode stops an ensemble of Apache's for good.
      const cnxn = await context.openRawCnxnWithSession();
      expectEqual('the error', (await cnxn.call(OpCode.getData, (writer) => writer.ustring(context.rootPath)))?.err, -5);
      expectEqual('the error of a ping', (await cnxn.ping())?.err, 0);
    },
  },
];
