/** The operations of ClickHouse Keeper in an ensemble, of which some servers may not have them. */
import { type Acl, CreateMode, ErrorCode, keeperPath, type MultiOp, type MultiReply, openAcl, Perms, type Sid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleClient } from './ensemble-client.ts';
import { Ensemble } from './ensemble.ts';
import { delivered, joined, serve } from './ensemble-requests.ts';

/** `has`: the servers with tskeeper.keeperExtensions; by default all. */
function served(voters: number, observers: number, has?: (sid: Sid) => boolean, observerMasterEnabled = false): Ensemble {
  const ensemble = new Ensemble(1, voters, observers, 0);
  ensemble.observerMasterEnabled = observerMasterEnabled;
  for (const { sid } of ensemble.nodes) if (has?.(sid) ?? true) ensemble.keeperServers.add(sid);
  serve(ensemble);
  return ensemble;
}

function create(path: string, flags: number = CreateMode.persistent, acl: readonly Acl[] = openAcl) {
  return { path, data: Buffer.from(path), acl, flags };
}

const multi = (ensemble: Ensemble, client: EnsembleClient, ops: readonly MultiOp[]) => delivered(ensemble, client, 'multi', { ops });
const resultsOf = (reply: ReturnType<typeof multi>) => (reply?.body as MultiReply | undefined)?.results;

function flagsOf(ensemble: Ensemble, client: EnsembleClient): string | undefined {
  const reply = delivered(ensemble, client, 'getData', { path: keeperPath.featureFlags, watch: false });
  return (reply?.body as { readonly data: Buffer } | undefined)?.data.toString('hex');
}

const children = (ensemble: Ensemble, client: EnsembleClient, path: string) => {
  delivered(ensemble, client, 'sync', { path });
  const reply = delivered(ensemble, client, 'getChildren', { path, watch: false });
  return (reply!.body as { readonly children: readonly string[] }).children.toSorted();
};

const anyStat = {
  czxid: -1,
  mzxid: -1,
  ctime: -1,
  mtime: -1,
  version: -1,
  cversion: -1,
  aversion: -1,
  ephemeralOwner: -1n,
  dataLength: -1,
  numChildren: -1,
  pzxid: -1,
};

describe('writes of ClickHouse Keeper', () => {
  it.each([false, true])(
    'A20: have the same answers at the leader, a follower and an observer; observer of a follower: %s',
    (ofFollower) => {
      const ensemble = served(3, 1, undefined, ofFollower);
      for (const [at, node] of ensemble.nodes.entries()) {
        const client = joined(ensemble, node);
        expect(flagsOf(ensemble, client)).toBe('ba60');
        const top = `/t${at}`;
        const made = delivered(ensemble, client, 'createIfNotExists', create(top));
        expect(made).toMatchObject({ err: ErrorCode.Ok, body: { path: top } });
        // The second one finds it, and has a txn of its own.
        const found = delivered(ensemble, client, 'createIfNotExists', create(top));
        expect(found).toMatchObject({ err: ErrorCode.Ok, body: { path: top } });
        expect(found!.zxid).toBe(made!.zxid + 1);
        expect(delivered(ensemble, client, 'createIfNotExists', create(`${top}/q-`, CreateMode.persistentSequential))?.err).toBe(
          ErrorCode.BadArguments,
        );
        for (const path of ['/a', '/a/b', '/a/b/c', '/d']) delivered(ensemble, client, 'create', create(top + path));
        expect(delivered(ensemble, client, 'tryRemove', { path: `${top}/a`, version: -1 })?.err).toBe(ErrorCode.Ok);
        expect(delivered(ensemble, client, 'tryRemove', { path: `${top}/nothing/here`, version: -1 })?.err).toBe(ErrorCode.Ok);
        expect(delivered(ensemble, client, 'tryRemove', { path: `${top}/d`, version: 7 })?.err).toBe(ErrorCode.Ok);
        expect(children(ensemble, client, top)).toEqual(['a', 'd']);
        expect(delivered(ensemble, client, 'tryRemove', { path: `${top}/d`, version: 0 })?.err).toBe(ErrorCode.Ok);
        expect(delivered(ensemble, client, 'removeRecursive', { path: `${top}/a`, limit: 2 })?.err).toBe(ErrorCode.NotEmpty);
        expect(children(ensemble, client, top)).toEqual(['a']);
        expect(delivered(ensemble, client, 'removeRecursive', { path: `${top}/a`, limit: 3 })?.err).toBe(ErrorCode.Ok);
        expect(delivered(ensemble, client, 'removeRecursive', { path: `${top}/a`, limit: 3 })?.err).toBe(ErrorCode.Ok);
        expect(delivered(ensemble, client, 'removeRecursive', { path: '/', limit: 3 })?.err).toBe(ErrorCode.BadArguments);
        expect(delivered(ensemble, client, 'removeRecursive', { path: '/zookeeper', limit: 100 })?.err).toBe(ErrorCode.BadArguments);
        expect(children(ensemble, client, top)).toEqual([]);
      }
      ensemble.run(50);
      ensemble.compare();
    },
  );

  it('A20: are parts of a multi, with a result for each part, also where a part is several deletes or none', () => {
    const ensemble = served(3, 1);
    for (const [at, node] of ensemble.nodes.entries()) {
      const client = joined(ensemble, node);
      const top = `/m${at}`;
      for (const path of ['', '/a', '/a/b', '/a/b/c']) delivered(ensemble, client, 'create', create(top + path));
      const done = multi(ensemble, client, [
        { kind: 'checkNotExists', path: `${top}/x`, version: -1 },
        { kind: 'checkNotExists', path: `${top}/a`, version: 5 },
        { kind: 'createIfNotExists', ...create(`${top}/a`) },
        {
          kind: 'checkStat',
          path: `${top}/a`,
          version: 0,
          stat: { ...anyStat, numChildren: 1, cversion: 1, ephemeralOwner: 0n, dataLength: 5 },
        },
        { kind: 'removeRecursive', path: `${top}/a`, limit: 0xffffffff },
        { kind: 'removeRecursive', path: `${top}/a`, limit: 0 },
        { kind: 'createIfNotExists', ...create(`${top}/a`) },
        { kind: 'tryRemove', path: `${top}/a`, version: 3 },
        { kind: 'create2', ...create(`${top}/a/new`) },
      ]);
      expect(resultsOf(done)).toMatchObject([
        { kind: 'checkNotExists' },
        { kind: 'checkNotExists' },
        { kind: 'createIfNotExists', path: `${top}/a` },
        { kind: 'checkStat' },
        { kind: 'removeRecursive' },
        { kind: 'removeRecursive' },
        { kind: 'createIfNotExists', path: `${top}/a` },
        { kind: 'tryRemove' },
        { kind: 'create2', path: `${top}/a/new`, stat: { czxid: done!.zxid } },
      ]);
      expect(children(ensemble, client, `${top}/a`)).toEqual(['new']);
      const failed = multi(ensemble, client, [
        { kind: 'removeRecursive', path: `${top}/a`, limit: 10 },
        { kind: 'checkNotExists', path: top, version: 0 },
        { kind: 'delete', path: top, version: -1 },
      ]);
      expect(resultsOf(failed)).toEqual([
        { kind: 'error', err: ErrorCode.Ok },
        { kind: 'error', err: ErrorCode.NodeExists },
        { kind: 'error', err: ErrorCode.RuntimeInconsistency },
      ]);
      expect(children(ensemble, client, `${top}/a`)).toEqual(['new']);
    }
    ensemble.run(50);
    ensemble.compare();
  });

  it('A20: P33: a client removes a subtree only if it may delete every znode of it', () => {
    const ensemble = served(1, 0);
    const client = joined(ensemble, ensemble.nodes[0]!);
    const kept: readonly Acl[] = [{ perms: Perms.all & ~Perms.delete, id: { scheme: 'world', id: 'anyone' } }];
    for (const path of ['/s', '/s/a', '/s/b']) delivered(ensemble, client, 'create', create(path));
    delivered(ensemble, client, 'create', create('/s/a/kept', CreateMode.persistent, kept));
    expect(delivered(ensemble, client, 'removeRecursive', { path: '/s', limit: 100 })?.err).toBe(ErrorCode.NoAuth);
    // A subtree that is too large is refused as such.
    expect(delivered(ensemble, client, 'removeRecursive', { path: '/s', limit: 3 })?.err).toBe(ErrorCode.NotEmpty);
    expect(children(ensemble, client, '/s')).toEqual(['a', 'b']);
    expect(delivered(ensemble, client, 'removeRecursive', { path: '/s/b', limit: 1 })?.err).toBe(ErrorCode.Ok);
  });

  it('A20: a removal sees the writes before it that are not applied yet', () => {
    const ensemble = served(3, 0);
    const client = joined(ensemble, ensemble.leader!);
    delivered(ensemble, client, 'create', create('/p'));
    delivered(ensemble, client, 'create', create('/p/old'));
    const asked = [
      client.ask('create', create('/p/new')),
      client.ask('create', create('/p/new/below')),
      client.ask('delete', { path: '/p/old', version: -1 }),
      client.ask('removeRecursive', { path: '/p', limit: 3 }),
      client.ask('create', create('/p')),
    ];
    ensemble.runUntil(() => asked.every(({ answer: given }) => given !== undefined), 5000);
    expect(asked.map(({ answer: given }) => given!.err)).toEqual([0, 0, 0, 0, 0]);
    expect(children(ensemble, client, '/p')).toEqual([]);
    ensemble.run(50);
    ensemble.compare();
  });
});

describe('servers with and without the operations of ClickHouse Keeper', () => {
  it('A20: D1: a follower offers no writes while its leader has none, and refuses them before it forwards anything', () => {
    const ensemble = served(3, 0, (sid) => sid !== 3);
    expect(ensemble.leader!.sid).toBe(3);
    const client = joined(ensemble, ensemble.nodes[0]!);
    expect(flagsOf(ensemble, client)).toBe('8020');
    // The leader refuses this as it does any multi with a strange part.
    expect(multi(ensemble, client, [{ kind: 'checkNotExists', path: '/none', version: -1 }])?.err).toBe(ErrorCode.MarshallingError);
    // Reads concern this server alone.
    expect(delivered(ensemble, client, 'checkNotExists', { path: '/none', version: -1 })?.err).toBe(ErrorCode.Ok);
    expect(delivered(ensemble, client, 'checkStat', { path: '/', version: -1, stat: anyStat })?.err).toBe(ErrorCode.Ok);
    const before = ensemble.leader!.lastLogged;
    for (const name of ['createIfNotExists', 'tryRemove', 'removeRecursive'] as const) {
      const other = joined(ensemble, ensemble.nodes[0]!);
      const record = name === 'createIfNotExists' ? create('/none') : { path: '/none', version: -1, limit: 1 };
      expect(delivered(ensemble, other, name, record as never)).toMatchObject({ err: ErrorCode.Unimplemented, zxid: -1 });
      expect(other.isClosed).toBe(true);
    }
    // Only their sessions are in the log.
    expect(ensemble.leader!.lastLogged - before).toBe(3);
  });

  it('A20: a follower without them knows none, whatever its leader has', () => {
    const ensemble = served(3, 0, (sid) => sid === 3);
    expect(ensemble.leader!.sid).toBe(3);
    expect(flagsOf(ensemble, joined(ensemble, ensemble.leader!))).toBe('ba60');
    const client = joined(ensemble, ensemble.nodes[0]!);
    expect(flagsOf(ensemble, client)).toBeUndefined();
    // What a server does not know it must not forward: it could not answer the parts.
    expect(multi(ensemble, client, [{ kind: 'removeRecursive', path: '/none', limit: 1 }])?.err).toBe(ErrorCode.MarshallingError);
    for (const name of ['checkStat', 'tryRemove', 'listRecursive'] as const) {
      const other = joined(ensemble, ensemble.nodes[0]!);
      const record = { path: '/', version: -1, limit: 1, stat: anyStat };
      expect(delivered(ensemble, other, name, record as never)).toMatchObject({ err: ErrorCode.Unimplemented, zxid: -1 });
      expect(other.isClosed).toBe(true);
    }
  });
});
