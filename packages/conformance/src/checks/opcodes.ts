/** Requests that no client sends. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal } from '../expect.ts';

export const opcodeChecks: readonly RunnableCheck[] = [
  {
    name: 'opcodes.unknown',
    title: 'a number that is no operation is Unimplemented (-6)',
    rows: ['A10'],
    docs: 'Request.isValid; UnimplementedRequestProcessor',
    async run(ground) {
      // Apache's servers close the connection behind it, and ours does not.
      for (const opCode of [999, 0, 99, -7]) {
        const cnxn = await ground.openRawSession();
        equal(`the error of ${opCode}`, (await cnxn.call(opCode))?.err, -6);
      }
    },
  },
  {
    name: 'opcodes.check-alone',
    title: 'check exists inside a multi only',
    rows: ['A14'],
    docs: 'ZOOKEEPER-2623',
    since: [3, 9, 3],
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.check, (writer) => operations.check.request.write(writer, { path: ground.root, version: -1 }));
      equal('the error', reply?.err, -6);
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
