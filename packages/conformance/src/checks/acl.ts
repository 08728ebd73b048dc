/** Access control: who may do what, and what is rejected. */
import { type Acl, anyone, type Client, creatorAcl, digestId, openAcl, Perms, readOnlyAcl } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError, textOf } from '../expect.ts';
import { type CheckContext, identities } from '../check-context.ts';

const docs = "Programmer's Guide, ZooKeeper access control using ACLs";
const authAs = (who: keyof typeof identities) => ({ auth: [{ scheme: 'digest', auth: identities[who] }] });
const digestAcl = (who: keyof typeof identities, perms: number): Acl => ({
  perms,
  id: { scheme: 'digest', id: digestId(identities[who]) },
});
/** Identity of the session that removes the znode: it may list what is below it. */
const adminAcl = digestAcl('keeper', Perms.all);

/**
 * A znode on which anyone has these permissions, with a child `x`, and two sessions: one with all
 * permissions, and one without an identity.
 */
async function createGuardedZnode(
  context: CheckContext,
  perms: number,
): Promise<{ readonly path: string; readonly nobody: Client; readonly owner: Client }> {
  const [owner, nobody] = [await context.openClient(authAs('keeper')), await context.openClient()];
  const acl = perms === 0 ? [adminAcl] : [adminAcl, { perms, id: anyone }];
  const { path } = await owner.create(`${context.rootPath}/guarded`, 'x', { acl });
  await owner.create(`${path}/x`, 'x');
  await context.catchUp(nobody);
  return { path, nobody, owner };
}

export const aclChecks: readonly RunnableCheck[] = [
  {
    name: 'acl.default-and-change',
    title: 'getACL returns the ACL as it was created or set',
    behaviourIds: ['B48'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const { path, stat } = await zk.create(`${context.rootPath}/a`);
      expectEqual('created', await zk.getACL(path), { acl: openAcl, stat });
      await zk.setACL(path, [...readOnlyAcl, digestAcl('keeper', Perms.all)]);
      expectEqual('set', (await (await context.openClient(authAs('keeper'))).getACL(path)).acl, [
        ...readOnlyAcl,
        digestAcl('keeper', Perms.all),
      ]);
    },
  },
  {
    name: 'acl.read',
    title: 'without READ, getData and getChildren fail with NoAuth; READ alone allows nothing else',
    behaviourIds: ['C3-13', 'B48'],
    docs: `${docs}, ACL Permissions`,
    async run(context) {
      const { path, nobody, owner } = await createGuardedZnode(context, Perms.write | Perms.create | Perms.delete | Perms.admin);
      await expectError('getData without READ', nobody.getData(path), 'NoAuth');
      await expectError('getChildren without READ', nobody.getChildren(path), 'NoAuth');
      await owner.setACL(path, [adminAcl, ...readOnlyAcl]);
      await context.catchUp(nobody);
      expectEqual('getData with READ', textOf((await nobody.getData(path)).data), 'x');
      expectEqual('getChildren with READ', (await nobody.getChildren(path)).children, ['x']);
      await expectError('setData with READ alone', nobody.setData(path, 'y'), 'NoAuth');
      await expectError('create with READ alone', nobody.create(`${path}/y`), 'NoAuth');
      await expectError('delete of a child with READ alone', nobody.delete(`${path}/x`), 'NoAuth');
      await expectError('setACL with READ alone', nobody.setACL(path, openAcl), 'NoAuth');
    },
  },
  {
    name: 'acl.exists',
    title: 'exists of an existing znode needs READ',
    behaviourIds: ['C3-13', 'A37'],
    docs: 'ZOOKEEPER-2590; FinalRequestProcessor, OpCode.exists',
    since: [3, 9, 2],
    async run(context) {
      const { path, nobody } = await createGuardedZnode(context, Perms.write);
      await expectError('exists without READ', nobody.exists(path), 'NoAuth');
      expectEqual('exists of a missing znode', await nobody.exists(`${path}/nothing`), null);
    },
  },
  {
    name: 'acl.write-create-delete-admin',
    title:
      'WRITE allows setData, CREATE and DELETE allow creating and deleting children, ADMIN allows setACL, and each of them nothing else',
    behaviourIds: ['B48'],
    docs: `${docs}, ACL Permissions`,
    async run(context) {
      const { path, nobody, owner } = await createGuardedZnode(context, 0);
      const calls: readonly (readonly [number, string, () => Promise<unknown>])[] = [
        [Perms.write, 'setData', () => nobody.setData(path, 'y')],
        [Perms.create, 'create', () => nobody.create(`${path}/y`)],
        [Perms.delete, 'delete', () => nobody.delete(`${path}/x`)],
        // Last, because the ACL that it sets removes the permission.
        [Perms.admin, 'setACL', () => nobody.setACL(path, [adminAcl])],
      ];
      for (const [granted, , allowed] of calls) {
        await owner.setACL(path, [adminAcl, { perms: granted, id: anyone }]);
        // Releases differ in whether they report a missing znode or a missing permission first.
        if ((await owner.exists(`${path}/x`)) === null) await owner.create(`${path}/x`);
        await context.catchUp(nobody);
        for (const [needed, name, call] of calls) {
          if (needed !== granted) await expectError(`${name} with permissions ${granted}`, call(), 'NoAuth');
        }
        await allowed();
      }
    },
  },
  {
    name: 'acl.not-inherited',
    title: 'an ACL applies to one znode: it does not protect the children, and the ACL of the parent decides about a delete',
    behaviourIds: ['C3-13'],
    docs: `${docs}: ACLs are not recursive`,
    async run(context) {
      const { path, nobody } = await createGuardedZnode(context, Perms.delete);
      expectEqual('a child of an unreadable znode', textOf((await nobody.getData(`${path}/x`)).data), 'x');
      await nobody.setData(`${path}/x`, 'y');
      await nobody.delete(`${path}/x`);
    },
  },
  {
    name: 'acl.digest',
    title: 'the scheme digest grants access to sessions that authenticated with that user and password, and to no others',
    behaviourIds: ['B40', 'A35'],
    docs: `${docs}, Builtin ACL Schemes`,
    async run(context) {
      const [alice, bob, nobody] = [
        await context.openClient(authAs('alice')),
        await context.openClient(authAs('bob')),
        await context.openClient(),
      ];
      const { path } = await alice.create(`${context.rootPath}/a`, 'x', { acl: [adminAcl, digestAcl('alice', Perms.all)] });
      await context.catchUp(bob);
      expectEqual('alice', textOf((await alice.getData(path)).data), 'x');
      await expectError('bob', bob.getData(path), 'NoAuth');
      await expectError('nobody', nobody.getData(path), 'NoAuth');
      await nobody.addAuth('digest', identities.alice);
      expectEqual('a session without identity that became alice', textOf((await nobody.getData(path)).data), 'x');
      await bob.addAuth('digest', identities.alice);
      expectEqual('bob, who is also alice', textOf((await bob.getData(path)).data), 'x');
      await expectError(
        'a wrong password',
        (await context.openClient({ auth: [{ scheme: 'digest', auth: 'alice:wrong' }] })).getData(path),
        'NoAuth',
      );
    },
  },
  {
    name: 'acl.auth',
    title: 'the scheme auth stands for the identities of the creator, and fails with InvalidACL without an identity',
    behaviourIds: ['B40', 'B48', 'A35'],
    docs: `${docs}, Builtin ACL Schemes`,
    async run(context) {
      const zk = await context.openClient({ auth: [...authAs('keeper').auth, ...authAs('alice').auth] });
      const { path } = await zk.create(`${context.rootPath}/a`, null, { acl: creatorAcl });
      const order = (one: Acl, other: Acl) => (one.id.id! < other.id.id! ? -1 : 1);
      expectEqual('the ACL', (await zk.getACL(path)).acl.toSorted(order), [digestAcl('alice', Perms.all), adminAcl].toSorted(order));
      const nobody = await context.openClient();
      await expectError('create without an identity', nobody.create(`${context.rootPath}/b`, null, { acl: creatorAcl }), 'InvalidACL');
    },
  },
  {
    name: 'acl.masked',
    title: 'getACL needs READ or ADMIN, and shows digests only with ADMIN',
    behaviourIds: ['B48', 'A37', 'E22'],
    docs: 'ZOOKEEPER-1392, CVE-2019-0201; FinalRequestProcessor, OpCode.getACL',
    async run(context) {
      const { path, nobody, owner } = await createGuardedZnode(context, Perms.write);
      await expectError('with neither', nobody.getACL(path), 'NoAuth');
      await owner.setACL(path, [adminAcl, ...readOnlyAcl]);
      await context.catchUp(nobody);
      expectEqual('with READ', (await nobody.getACL(path)).acl, [
        { perms: Perms.all, id: { scheme: 'digest', id: 'keeper:x' } },
        ...readOnlyAcl,
      ]);
      await owner.setACL(path, [adminAcl, { perms: Perms.admin, id: anyone }]);
      await context.catchUp(nobody);
      expectEqual('with ADMIN', (await nobody.getACL(path)).acl, [adminAcl, { perms: Perms.admin, id: anyone }]);
    },
  },
  {
    name: 'acl.ip',
    title: 'the scheme ip grants access by address and by address range',
    behaviourIds: ['B48', 'A35'],
    docs: `${docs}, Builtin ACL Schemes`,
    async run(context) {
      const zk = await context.openClient();
      const everywhere: Acl = { perms: Perms.read, id: { scheme: 'ip', id: '0.0.0.0/0' } };
      // An address reserved for documentation, which no client has.
      const elsewhere: Acl = { perms: Perms.all, id: { scheme: 'ip', id: '192.0.2.1' } };
      await zk.create(`${context.rootPath}/range`, 'x', { acl: [adminAcl, everywhere] });
      expectEqual('from any address', textOf((await zk.getData(`${context.rootPath}/range`)).data), 'x');
      await expectError('setData without permission', zk.setData(`${context.rootPath}/range`, 'y'), 'NoAuth');
      await zk.create(`${context.rootPath}/other`, 'x', { acl: [adminAcl, elsewhere] });
      await expectError('from another address', zk.getData(`${context.rootPath}/other`), 'NoAuth');
    },
  },
  {
    name: 'acl.invalid',
    title: 'an ACL without a valid entry fails with InvalidACL, in create and in setACL',
    behaviourIds: ['A17'],
    docs: `${docs}; PrepRequestProcessor.fixupACL`,
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`);
      const ids = [
        { scheme: 'world', id: 'someone' },
        { scheme: 'nonsense', id: 'x' },
        { scheme: 'digest', id: 'no-colon' },
        { scheme: 'ip', id: 'no-address' },
        { scheme: 'ip', id: '10.0.0.1/99' },
      ];
      for (const acl of [[], ...ids.map((id) => [{ perms: Perms.all, id }])]) {
        const name = acl[0] === undefined ? 'an empty list' : `${acl[0].id.scheme}:${acl[0].id.id}`;
        await expectError(`create with ${name}`, zk.create(`${context.rootPath}/b`, null, { acl }), 'InvalidACL');
        await expectError(`setACL with ${name}`, zk.setACL(`${context.rootPath}/a`, acl), 'InvalidACL');
      }
      expectEqual('aversion, unchanged', (await zk.exists(`${context.rootPath}/a`))?.aversion, 0);
    },
  },
  {
    name: 'acl.no-list',
    title: 'a create without a list of ACLs fails with InvalidACL',
    behaviourIds: ['A17'],
    docs: 'PrepRequestProcessor.fixupACL',
    // 3.5 treats this as an undecodable request, which must not be sent to its ensembles.
    since: [3, 8, 0],
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const request = { path: `${context.rootPath}/b`, data: null, acl: null, flags: 0 };
      expectEqual('the error', (await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request)))?.err, -114);
    },
  },
  {
    name: 'acl.super',
    title: 'the super user passes every ACL',
    behaviourIds: ['B40'],
    docs: "Administrator's Guide, DigestAuthenticationProvider.superDigest",
    needs: ['super'],
    async run(context) {
      const { path } = await createGuardedZnode(context, 0);
      const zk = await context.openClient({ auth: [{ scheme: 'digest', auth: context.superAuth! }] });
      expectEqual('getData', textOf((await zk.getData(path)).data), 'x');
      await zk.setACL(path, openAcl);
      await zk.delete(`${path}/x`);
    },
  },
];
