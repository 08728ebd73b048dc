/** Access control: who may do what, and what is rejected. */
import { type Acl, anyone, type Client, creatorAcl, digestId, openAcl, Perms, readOnlyAcl } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, refused, textOf } from '../expect.ts';
import { type Ground, identities } from '../ground.ts';

const docs = "Programmer's Guide, ZooKeeper access control using ACLs";
const as = (who: keyof typeof identities) => ({ auth: [{ scheme: 'digest', auth: identities[who] }] });
const digest = (who: keyof typeof identities, perms: number): Acl => ({ perms, id: { scheme: 'digest', id: digestId(identities[who]) } });
/** Identity of the session that removes the znode: it may list what is below it. */
const keeper = digest('keeper', Perms.all);

/**
 * A znode on which anyone has these permissions, with a child `x`, and two sessions: one with all
 * permissions, and one without an identity.
 */
async function guarded(ground: Ground, perms: number): Promise<{ readonly path: string; readonly nobody: Client; readonly owner: Client }> {
  const [owner, nobody] = [await ground.open(as('keeper')), await ground.open()];
  const acl = perms === 0 ? [keeper] : [keeper, { perms, id: anyone }];
  const { path } = await owner.create(`${ground.root}/guarded`, 'x', { acl });
  await owner.create(`${path}/x`, 'x');
  await ground.caughtUp(nobody);
  return { path, nobody, owner };
}

export const aclChecks: readonly RunnableCheck[] = [
  {
    name: 'acl.default-and-change',
    title: 'getACL returns the ACL as it was created or set',
    rows: ['B48'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const { path, stat } = await zk.create(`${ground.root}/a`);
      equal('created', await zk.getACL(path), { acl: openAcl, stat });
      await zk.setACL(path, [...readOnlyAcl, digest('keeper', Perms.all)]);
      equal('set', (await (await ground.open(as('keeper'))).getACL(path)).acl, [...readOnlyAcl, digest('keeper', Perms.all)]);
    },
  },
  {
    name: 'acl.read',
    title: 'without READ, getData and getChildren fail with NoAuth; READ alone allows nothing else',
    rows: ['C3-13', 'B48'],
    docs: `${docs}, ACL Permissions`,
    async run(ground) {
      const { path, nobody, owner } = await guarded(ground, Perms.write | Perms.create | Perms.delete | Perms.admin);
      await refused('getData without READ', nobody.getData(path), 'NoAuth');
      await refused('getChildren without READ', nobody.getChildren(path), 'NoAuth');
      await owner.setACL(path, [keeper, ...readOnlyAcl]);
      await ground.caughtUp(nobody);
      equal('getData with READ', textOf((await nobody.getData(path)).data), 'x');
      equal('getChildren with READ', (await nobody.getChildren(path)).children, ['x']);
      await refused('setData with READ alone', nobody.setData(path, 'y'), 'NoAuth');
      await refused('create with READ alone', nobody.create(`${path}/y`), 'NoAuth');
      await refused('delete of a child with READ alone', nobody.delete(`${path}/x`), 'NoAuth');
      await refused('setACL with READ alone', nobody.setACL(path, openAcl), 'NoAuth');
    },
  },
  {
    name: 'acl.exists',
    title: 'exists of an existing znode needs READ',
    rows: ['C3-13', 'A37'],
    docs: 'ZOOKEEPER-2590; FinalRequestProcessor, OpCode.exists',
    since: [3, 9, 2],
    async run(ground) {
      const { path, nobody } = await guarded(ground, Perms.write);
      await refused('exists without READ', nobody.exists(path), 'NoAuth');
      equal('exists of a missing znode', await nobody.exists(`${path}/nothing`), null);
    },
  },
  {
    name: 'acl.write-create-delete-admin',
    title:
      'WRITE allows setData, CREATE and DELETE allow creating and deleting children, ADMIN allows setACL, and each of them nothing else',
    rows: ['B48'],
    docs: `${docs}, ACL Permissions`,
    async run(ground) {
      const { path, nobody, owner } = await guarded(ground, 0);
      const calls: readonly (readonly [number, string, () => Promise<unknown>])[] = [
        [Perms.write, 'setData', () => nobody.setData(path, 'y')],
        [Perms.create, 'create', () => nobody.create(`${path}/y`)],
        [Perms.delete, 'delete', () => nobody.delete(`${path}/x`)],
        // Last, because the ACL that it sets removes the permission.
        [Perms.admin, 'setACL', () => nobody.setACL(path, [keeper])],
      ];
      for (const [granted, , allowed] of calls) {
        await owner.setACL(path, [keeper, { perms: granted, id: anyone }]);
        // Releases differ in whether they report a missing znode or a missing permission first.
        if ((await owner.exists(`${path}/x`)) === null) await owner.create(`${path}/x`);
        await ground.caughtUp(nobody);
        for (const [needed, name, call] of calls) {
          if (needed !== granted) await refused(`${name} with permissions ${granted}`, call(), 'NoAuth');
        }
        await allowed();
      }
    },
  },
  {
    name: 'acl.not-inherited',
    title: 'an ACL applies to one znode: it does not protect the children, and the ACL of the parent decides about a delete',
    rows: ['C3-13'],
    docs: `${docs}: ACLs are not recursive`,
    async run(ground) {
      const { path, nobody } = await guarded(ground, Perms.delete);
      equal('a child of an unreadable znode', textOf((await nobody.getData(`${path}/x`)).data), 'x');
      await nobody.setData(`${path}/x`, 'y');
      await nobody.delete(`${path}/x`);
    },
  },
  {
    name: 'acl.digest',
    title: 'the scheme digest grants access to sessions that authenticated with that user and password, and to no others',
    rows: ['B40', 'A35'],
    docs: `${docs}, Builtin ACL Schemes`,
    async run(ground) {
      const [alice, bob, nobody] = [await ground.open(as('alice')), await ground.open(as('bob')), await ground.open()];
      const { path } = await alice.create(`${ground.root}/a`, 'x', { acl: [keeper, digest('alice', Perms.all)] });
      await ground.caughtUp(bob);
      equal('alice', textOf((await alice.getData(path)).data), 'x');
      await refused('bob', bob.getData(path), 'NoAuth');
      await refused('nobody', nobody.getData(path), 'NoAuth');
      await nobody.addAuth('digest', identities.alice);
      equal('a session without identity that became alice', textOf((await nobody.getData(path)).data), 'x');
      await bob.addAuth('digest', identities.alice);
      equal('bob, who is also alice', textOf((await bob.getData(path)).data), 'x');
      await refused('a wrong password', (await ground.open({ auth: [{ scheme: 'digest', auth: 'alice:wrong' }] })).getData(path), 'NoAuth');
    },
  },
  {
    name: 'acl.auth',
    title: 'the scheme auth stands for the identities of the creator, and fails with InvalidACL without an identity',
    rows: ['B40', 'B48', 'A35'],
    docs: `${docs}, Builtin ACL Schemes`,
    async run(ground) {
      const zk = await ground.open({ auth: [...as('keeper').auth, ...as('alice').auth] });
      const { path } = await zk.create(`${ground.root}/a`, null, { acl: creatorAcl });
      const order = (one: Acl, other: Acl) => (one.id.id! < other.id.id! ? -1 : 1);
      equal('the ACL', (await zk.getACL(path)).acl.toSorted(order), [digest('alice', Perms.all), keeper].toSorted(order));
      const nobody = await ground.open();
      await refused('create without an identity', nobody.create(`${ground.root}/b`, null, { acl: creatorAcl }), 'InvalidACL');
    },
  },
  {
    name: 'acl.masked',
    title: 'getACL needs READ or ADMIN, and shows digests only with ADMIN',
    rows: ['B48', 'A37', 'E22'],
    docs: 'ZOOKEEPER-1392, CVE-2019-0201; FinalRequestProcessor, OpCode.getACL',
    async run(ground) {
      const { path, nobody, owner } = await guarded(ground, Perms.write);
      await refused('with neither', nobody.getACL(path), 'NoAuth');
      await owner.setACL(path, [keeper, ...readOnlyAcl]);
      await ground.caughtUp(nobody);
      equal('with READ', (await nobody.getACL(path)).acl, [{ perms: Perms.all, id: { scheme: 'digest', id: 'keeper:x' } }, ...readOnlyAcl]);
      await owner.setACL(path, [keeper, { perms: Perms.admin, id: anyone }]);
      await ground.caughtUp(nobody);
      equal('with ADMIN', (await nobody.getACL(path)).acl, [keeper, { perms: Perms.admin, id: anyone }]);
    },
  },
  {
    name: 'acl.ip',
    title: 'the scheme ip grants access by address and by address range',
    rows: ['B48', 'A35'],
    docs: `${docs}, Builtin ACL Schemes`,
    async run(ground) {
      const zk = await ground.open();
      const everywhere: Acl = { perms: Perms.read, id: { scheme: 'ip', id: '0.0.0.0/0' } };
      // An address reserved for documentation, which no client has.
      const elsewhere: Acl = { perms: Perms.all, id: { scheme: 'ip', id: '192.0.2.1' } };
      await zk.create(`${ground.root}/range`, 'x', { acl: [keeper, everywhere] });
      equal('from any address', textOf((await zk.getData(`${ground.root}/range`)).data), 'x');
      await refused('setData without permission', zk.setData(`${ground.root}/range`, 'y'), 'NoAuth');
      await zk.create(`${ground.root}/other`, 'x', { acl: [keeper, elsewhere] });
      await refused('from another address', zk.getData(`${ground.root}/other`), 'NoAuth');
    },
  },
  {
    name: 'acl.invalid',
    title: 'an ACL without a valid entry fails with InvalidACL, in create and in setACL',
    rows: ['A17'],
    docs: `${docs}; PrepRequestProcessor.fixupACL`,
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      const ids = [
        { scheme: 'world', id: 'someone' },
        { scheme: 'nonsense', id: 'x' },
        { scheme: 'digest', id: 'no-colon' },
        { scheme: 'ip', id: 'no-address' },
        { scheme: 'ip', id: '10.0.0.1/99' },
      ];
      for (const acl of [[], ...ids.map((id) => [{ perms: Perms.all, id }])]) {
        const name = acl[0] === undefined ? 'an empty list' : `${acl[0].id.scheme}:${acl[0].id.id}`;
        await refused(`create with ${name}`, zk.create(`${ground.root}/b`, null, { acl }), 'InvalidACL');
        await refused(`setACL with ${name}`, zk.setACL(`${ground.root}/a`, acl), 'InvalidACL');
      }
      equal('aversion, unchanged', (await zk.exists(`${ground.root}/a`))?.aversion, 0);
    },
  },
  {
    name: 'acl.no-list',
    title: 'a create without a list of ACLs fails with InvalidACL',
    rows: ['A17'],
    docs: 'PrepRequestProcessor.fixupACL',
    // 3.5 treats this as an undecodable request, which must not be sent to its ensembles.
    since: [3, 8, 0],
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const request = { path: `${ground.root}/b`, data: null, acl: null, flags: 0 };
      equal('the error', (await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request)))?.err, -114);
    },
  },
  {
    name: 'acl.super',
    title: 'the super user passes every ACL',
    rows: ['B40'],
    docs: "Administrator's Guide, DigestAuthenticationProvider.superDigest",
    needs: ['super'],
    async run(ground) {
      const { path } = await guarded(ground, 0);
      const zk = await ground.open({ auth: [{ scheme: 'digest', auth: ground.superAuth! }] });
      equal('getData', textOf((await zk.getData(path)).data), 'x');
      await zk.setACL(path, openAcl);
      await zk.delete(`${path}/x`);
    },
  },
];
