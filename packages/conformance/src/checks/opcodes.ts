/** Requests that no client sends. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { Check } from '../check.ts';
import { equal } from '../expect.ts';

export const opcodeChecks: readonly Check[] = [
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
    title: 'a request that ends too early is refused (MarshallingError) or costs the connection, and nothing is done',
    rows: ['A10'],
    docs: 'PrepRequestProcessor.pRequest; FinalRequestProcessor',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.create2, (writer) => writer.ustring(`${ground.root}/a`));
      equal('the error', reply?.err ?? -5, -5);
      equal('what is there', await (await ground.open()).exists(`${ground.root}/a`), null);
    },
  },
];
