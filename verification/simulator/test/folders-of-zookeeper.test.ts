/**
 * The whole server on data folders that Apache ZooKeeper wrote: clients see what the listings of
 * the folders say.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Acl, ErrorCode, openAcl, type SessionId, type Stat } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { sendRequest, connectRawClient, type RawClient, snappy, VirtualWorld } from '../src/index.ts';

interface ListedNode {
  readonly path: string;
  readonly data: { readonly hex: string } | null;
  readonly acl: number;
  readonly stat: {
    readonly czxid: string;
    readonly mzxid: string;
    readonly ctime: number;
    readonly mtime: number;
    readonly version: number;
    readonly cversion: number;
    readonly aversion: number;
    readonly ephemeralOwner: string;
    readonly pzxid: string;
  };
}

interface ListedSnapshot {
  readonly sessions: readonly { readonly id: string; readonly timeout: number }[];
  readonly aclCache: readonly { readonly key: number; readonly acl: readonly Acl[] }[];
  readonly nodes: readonly ListedNode[];
}

const fixtures = fileURLToPath(new URL('../../../fixtures/', import.meta.url));

function listing(name: string, snapshot: string): ListedSnapshot {
  const listed = JSON.parse(readFileSync(`${fixtures}${name}/listing.json`, 'utf8')) as Record<string, ListedSnapshot> & {
    files?: Record<string, ListedSnapshot>;
  };
  return (listed.files ?? listed)[snapshot]!;
}

/** A server on that folder, and a client that may read everything whatever the ACLs. */
async function serve(name: string, wanted: (file: string) => boolean = () => true): Promise<VirtualWorld> {
  const core = { extendedTypesEnabled: true, skipAcl: true, maxSessionTimeoutMs: 60_000 };
  const world = new VirtualWorld(1, { core, snappy });
  for (const file of readdirSync(fixtures + name)) {
    if (file !== 'listing.json' && wanted(file))
      world.server.disk.putFile(`${world.server.snapshotFolder}/${file}`, readFileSync(`${fixtures}${name}/${file}`));
  }
  await world.server.start();
  return world;
}

interface SeenNode {
  readonly data: string | null;
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

async function readTree(world: VirtualWorld, client: RawClient): Promise<Map<string, SeenNode>> {
  const seen = new Map<string, SeenNode>();
  const waiting = ['/'];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const { data, stat } = (await sendRequest(world, client, 'getData', { path, watch: false })).body;
    const { acl } = (await sendRequest(world, client, 'getACL', { path })).body;
    const { children } = (await sendRequest(world, client, 'getChildren', { path, watch: false })).body;
    seen.set(path, { data: data?.toString('hex') ?? null, acl, stat });
    for (const child of children) waiting.push(path === '/' ? `/${child}` : `${path}/${child}`);
  }
  return seen;
}

function isSession(owner: bigint): boolean {
  return owner >> 56n !== 0xffn && owner !== 0x8000000000000000n;
}

function expected({ nodes, aclCache }: ListedSnapshot): Map<string, SeenNode> {
  const acls = new Map(aclCache.map(({ key, acl }) => [key, acl]));
  const paths = nodes.map(({ path }) => (path === '' ? '/' : path));
  return new Map(
    nodes.map(({ path: listed, data, acl, stat }) => {
      const path = listed === '' ? '/' : listed;
      const prefix = path === '/' ? '/' : `${path}/`;
      const numChildren = paths.filter((each) => each !== '/' && each.startsWith(prefix) && !each.includes('/', prefix.length)).length;
      const owner = BigInt(stat.ephemeralOwner);
      const seen: Stat = {
        czxid: Number(stat.czxid),
        mzxid: Number(stat.mzxid),
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion * 2 - numChildren,
        aversion: stat.aversion,
        ephemeralOwner: isSession(owner) ? BigInt.asIntN(64, owner) : 0n,
        dataLength: (data?.hex.length ?? 0) / 2,
        numChildren,
        pzxid: Number(stat.pzxid),
      };
      return [path, { data: data?.hex ?? null, acl: acls.get(acl) ?? openAcl, stat: seen }];
    }),
  );
}

describe.each(['3.9.5', '3.8.0'])('the data folder of a ZooKeeper %s', (version) => {
  const name = `disk-${version}`;
  const listed = listing(name, 'snapshot.22');
  const session: SessionId = BigInt.asIntN(64, BigInt(listed.sessions[0]!.id));
  const timeoutMs = listed.sessions[0]!.timeout;
  const ephemerals = listed.nodes.filter(({ stat }) => stat.ephemeralOwner !== '0x0' && isSession(BigInt(stat.ephemeralOwner)));

  test.each([
    ['from its newest snapshot', () => true],
    ['from its empty snapshot and the log', (file: string) => file !== 'snapshot.22'],
  ])('is served %s', async (_how, wanted) => {
    const world = await serve(name, wanted);
    const client = await connectRawClient(world);
    expect(await readTree(world, client)).toEqual(expected(listed));
    expect(world.server.logLines.filter((line) => !line.startsWith('info'))).toEqual([]);
  });

  test('is unchanged by restarts, which write no warning', async () => {
    const world = await serve(name);
    await world.server.stop();
    await world.server.start();
    world.server.kill();
    await world.server.start();
    world.server.losePower(() => 0);
    await world.server.start();
    const client = await connectRawClient(world);
    expect(await readTree(world, client)).toEqual(expected(listed));
  });

  test('A74: has a session that a client can resume, and keeps its ephemeral znodes', async () => {
    const world = await serve(name);
    await world.run(timeoutMs - 1000);
    const client = await connectRawClient(world, timeoutMs, session);
    expect(client.session).toBe(session);
    await world.run(timeoutMs * 2);
    for (const { path } of ephemerals) expect((await sendRequest(world, client, 'exists', { path, watch: false })).err).toBe(ErrorCode.Ok);
  });

  test('has a session that ends after its full timeout', async () => {
    const world = await serve(name);
    const client = await connectRawClient(world);
    const { path } = ephemerals[0]!;
    const startMs = world.recording.processes[0]!.startedMs;
    await world.run(startMs + timeoutMs - world.clock.elapsedMs);
    expect((await sendRequest(world, client, 'exists', { path, watch: false })).err).toBe(ErrorCode.Ok);
    await world.run(2 * world.server.core.tickTimeMs);
    for (const each of ephemerals) {
      expect((await sendRequest(world, client, 'exists', { path: each.path, watch: false })).err).toBe(ErrorCode.NoNode);
    }
    const late = await connectRawClient(world, timeoutMs, session);
    expect(late.lostSessions).toEqual([session]);
  });
});

test.each(['gz', 'snappy'])('a snapshot that ZooKeeper compressed with %s is served', async (compression) => {
  const world = await serve('disk-compressed', (file) => file === `snapshot.6.${compression}`);
  const client = await connectRawClient(world);
  const seen = await readTree(world, client);
  const listed = expected(listing('disk-compressed', 'snapshot.6.gz'));
  // The two folders differ in servers, times and sessions; their trees have the same structure.
  const shape = (tree: Map<string, SeenNode>) =>
    new Map(
      Array.from(tree, ([path, { data, acl, stat }]) => [path, { data, acl, stat: { ...stat, ctime: 0, mtime: 0, ephemeralOwner: 0n } }]),
    );
  expect(compression === 'gz' ? seen : shape(seen)).toEqual(compression === 'gz' ? listed : shape(listed));
});
