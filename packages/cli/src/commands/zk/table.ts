/**
 * Every command that sends requests to a server, by its name in zkCli. One file per command or
 * family of commands; one entry here.
 */
import type { ZkCommand } from '../../zk/command.ts';
import { getAcl, setAcl } from './acl.ts';
import { addAuth, whoAmI } from './auth.ts';
import { getConfig, reconfig } from './config.ts';
import { create } from './create.ts';
import { deleteAll, deleteNode } from './delete.ts';
import { fourLetterWordCommand } from './four-letter-word.ts';
import { leader, shed } from './leader.ts';
import { delQuota, listQuota, setQuota } from './quota.ts';
import { get, getAllChildrenNumber, getEphemerals, ls, stat } from './read.ts';
import { set } from './set.ts';
import { sync } from './sync.ts';
import { version } from './version.ts';
import { addWatch, removeWatches } from './watches.ts';

export const zkCommands: readonly ZkCommand[] = [
  fourLetterWordCommand,
  addAuth,
  addWatch,
  getConfig,
  create,
  deleteNode,
  deleteAll,
  delQuota,
  get,
  getAcl,
  getAllChildrenNumber,
  getEphemerals,
  leader,
  listQuota,
  ls,
  reconfig,
  removeWatches,
  set,
  setAcl,
  setQuota,
  shed,
  stat,
  sync,
  version,
  whoAmI,
];

export function findZkCommand(name: string): ZkCommand | undefined {
  return zkCommands.find((command) => command.name === name);
}
