/**
 * Group membership: the group is a znode, and each member an ephemeral child, which is deleted when
 * the member's session ends for any reason.
 *
 *   main.js <connect string> <group> join <name>      stays until it is ended
 *   main.js <connect string> <group> watch            prints the members, and again whenever they change
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';

/** Joins under a name; the membership lasts as long as the client's session. */
export async function join(zk: Client, group: string, name: string, about: string): Promise<void> {
  await makeGroup(zk, group);
  await zk.create(`${group}/${name}`, about, { mode: 'ephemeral' });
}

/** Calls `take` with the names of the members, now and after each change. Ends when the group is deleted. */
export async function watchMembers(zk: Client, group: string, take: (names: readonly string[]) => void): Promise<void> {
  let seen = -1n;
  await makeGroup(zk, group);
  for (;;) {
    let tell!: () => void;
    const changed = new Promise<void>((resolve) => (tell = resolve));
    try {
      const { children, stat } = await zk.getChildren(group, { watch: tell });
      // The watch also fires when the state of the connection changes; then there may be no change.
      if (stat.pzxid !== seen) take(children.toSorted());
      seen = stat.pzxid;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return;
      if (KeeperError.is(error, 'ConnectionLoss')) continue;
      throw error;
    }
    await changed;
  }
}

async function makeGroup(zk: Client, group: string): Promise<void> {
  try {
    await zk.create(group);
  } catch (error) {
    if (!KeeperError.is(error, 'NodeExists')) throw error;
  }
}

const [hosts, group, command, name] = process.argv.slice(2);
if (hosts === undefined || group === undefined || (command !== 'watch' && (command !== 'join' || name === undefined))) {
  console.error('usage: main.js <connect string> <group> join <name> | watch');
  process.exit(2);
}
const zk = await connect(hosts, { sessionTimeoutMs: 4000 });
zk.on('state', ({ state }) => {
  if (state !== 'Expired') return;
  // This process is no longer a member, and must not behave like one.
  console.error('the session has expired');
  process.exit(1);
});
if (command === 'join') {
  await join(zk, group, name!, `process ${process.pid}`);
  console.log(`${name} is a member of ${group}`);
  // On a signal the session is closed, so the member leaves at once and not after the session timeout.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void zk.close());
} else {
  await watchMembers(zk, group, (names) => console.log(`members: ${names.join(' ') || 'none'}`));
  await zk.close();
}
