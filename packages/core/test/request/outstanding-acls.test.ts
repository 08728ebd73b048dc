/**
 * An ACL is kept for outstanding changes, and removed when neither they nor a znode use it any
 * more.
 */
import { type Acl, type MultiOp, OpCode, openAcl, operations, writeMultiRequest } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { Stepper } from '../support/stepper.ts';

const client = 1;
const own: readonly Acl[] = [{ perms: 31, id: { scheme: 'ip', id: '127.0.0.1' } }];

function serving(): { readonly stepper: Stepper; readonly lists: () => number } {
  const stepper = new Stepper(() => {});
  stepper.connect(client);
  const { acls } = stepper.replica.tree;
  const before = acls.size;
  return { stepper, lists: () => acls.size - before };
}

function create(stepper: Stepper, path: string, acl: readonly Acl[]): void {
  stepper.ask(client, 1, OpCode.create, (writer) => operations.create.request.write(writer, { path, data: null, acl, flags: 0 }));
}

function remove(stepper: Stepper, path: string): void {
  stepper.ask(client, 2, OpCode.delete, (writer) => operations.delete.request.write(writer, { path, version: -1 }));
}

it('an ACL is removed when its znode is deleted and no outstanding change uses it', () => {
  const { stepper, lists } = serving();
  create(stepper, '/x', own);
  expect(lists()).toBe(1);
  stepper.finish();
  expect(lists()).toBe(1);
  remove(stepper, '/x');
  expect(lists()).toBe(1);
  stepper.finish();
  expect(lists()).toBe(0);
});

it('an ACL of a failed multi is removed with it', () => {
  const { stepper, lists } = serving();
  const ops: MultiOp[] = [
    { kind: 'create', path: '/x', data: null, acl: own, flags: 0 },
    { kind: 'setData', path: '/x', data: null, version: -1 },
    { kind: 'delete', path: '/none', version: -1 },
  ];
  stepper.ask(client, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops }));
  expect(lists()).toBe(0);
});

it('an ACL of a refused request is not kept', () => {
  const { stepper, lists } = serving();
  create(stepper, '/none/x', own);
  stepper.ask(client, 2, OpCode.setACL, (writer) => operations.setACL.request.write(writer, { path: '/', acl: own, version: 7 }));
  expect(lists()).toBe(0);
});

it('a pending znode keeps its ACL when another replaces it, and a server that ends leaves the tree unchanged', () => {
  const { stepper, lists } = serving();
  create(stepper, '/x', own);
  stepper.ask(client, 2, OpCode.setACL, (writer) => operations.setACL.request.write(writer, { path: '/x', acl: openAcl, version: -1 }));
  remove(stepper, '/x');
  create(stepper, '/y', own);
  expect(lists()).toBe(2);
  // The log has them all, and they are applied without replies.
  stepper.core.stop(stepper.now);
  const { tree } = stepper.replica;
  expect(tree.acls.get(tree.aclOf(tree.find('/y')))).toEqual(own);
  expect(lists()).toBe(1);
  tree.remove('/y', 99);
  expect(lists()).toBe(0);
});
