/** Valid and invalid paths. */
import { openAcl } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError } from '../expect.ts';

const docs = "Programmer's Guide, The ZooKeeper Data Model; PathUtils.validatePath";

/** After the path of an existing znode. */
const illegalNames = [
  ['/.', 'the name .'],
  ['/..', 'the name ..'],
  ['/a\u0000b', 'U+0000'],
  ['/a\u0001b', 'U+0001'],
  ['/a\u001fb', 'U+001F'],
  ['/a\u007fb', 'U+007F'],
  ['/a\u009fb', 'U+009F'],
  ['/a\ud800\udc00b', 'a character beyond the basic plane'],
  ['/a\uf8ffb', 'U+F8FF'],
  ['/a\ufff0b', 'U+FFF0'],
  ['/', 'an empty name'],
] as const;

export const pathChecks: readonly RunnableCheck[] = [
  {
    name: 'paths.legal',
    title: 'names may contain dots, blanks and any character that is not forbidden',
    behaviourIds: ['A1', 'C3-4', 'C3-5', 'C3-6'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const names = [
        '.a',
        'a.',
        '...',
        'a..b',
        ' ',
        'a b',
        'ä',
        '世界',
        '\u0020',
        '\u007e',
        '\u00a0',
        '\ud7ff',
        '\uf900',
        '\uffef',
        'zookeeper',
      ];
      for (const name of new Set(names)) {
        expectEqual('the path', (await zk.create(`${context.rootPath}/${name}`)).path, `${context.rootPath}/${name}`);
      }
      expectEqual('the names', (await zk.getChildren(context.rootPath)).children.toSorted(), [...new Set(names)].toSorted());
    },
  },
  {
    name: 'paths.client',
    title: 'the client rejects an invalid path (BadArguments) in every call',
    behaviourIds: ['A1', 'C3-2', 'C3-3', 'C3-4', 'C3-5', 'C3-6'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const paths = ['', 'a', 'a/b', '//', '//a', '/a/', '/a//b', ...illegalNames.map(([name]) => `/a${name}`)];
      for (const path of paths) {
        const calls = [
          () => zk.create(path),
          () => zk.getData(path),
          () => zk.exists(path),
          () => zk.setData(path, null),
          () => zk.getChildren(path),
          () => zk.delete(path),
        ];
        for (const call of calls) await expectError(JSON.stringify(path), call(), 'BadArguments');
      }
      await expectError('a sequential name .', zk.create('/a/b/..', null, { mode: 'persistentSequential' }), 'NoNode');
    },
  },
  {
    name: 'paths.server',
    title: 'the server rejects a create with an invalid path (BadArguments), and its parent stays unchanged',
    behaviourIds: ['A1', 'C3-2', 'C3-3', 'C3-4', 'C3-5', 'C3-6'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const cnxn = await context.openRawCnxnWithSession();
      const before = await zk.exists(context.rootPath);
      for (const [name, what] of illegalNames) {
        const request = { path: context.rootPath + name, data: null, acl: openAcl, flags: 0 };
        // An ill-formed UTF-16 name must reach the server as the bytes of its code units, as this
        // writer encodes it.
        const reply = await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
        expectEqual(`the error of create with ${what}`, reply?.err, -8);
      }
      for (const path of ['', 'a']) {
        const request = { path, data: null, acl: openAcl, flags: 0 };
        const reply = await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
        expectEqual(`the error of create with the path ${JSON.stringify(path)}`, reply?.err, -8);
      }
      expectEqual('the Stat of the parent', await zk.exists(context.rootPath), before);
    },
  },
  {
    name: 'paths.server-changes',
    title: 'the server rejects setData and setACL with an invalid path (BadArguments)',
    behaviourIds: ['A1', 'C3-2'],
    docs: 'PrepRequestProcessor.validatePath',
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      for (const path of [`${context.rootPath}/`, `${context.rootPath}//a`, `${context.rootPath}/./a`, 'a']) {
        const set = await cnxn.call(OpCode.setData, (writer) =>
          operations.setData.request.write(writer, { path, data: null, version: -1 }),
        );
        const acl = await cnxn.call(OpCode.setACL, (writer) =>
          operations.setACL.request.write(writer, { path, acl: openAcl, version: -1 }),
        );
        expectEqual(`the errors of setData and setACL with ${path}`, [set?.err, acl?.err], [-8, -8]);
      }
    },
  },
];
