/**
 * Small bugs of a server, by name: each changes the frames between a client and a correct server. A
 * canary of a check is a bug that the check has to detect.
 */
import { type ConnectRequest, type ConnectResponse, ErrorCode, OpCode, openAcl, operationOf, Reader } from '@tskeeper/protocol';
import { type Outgoing, type Request, withRecord, withReply, type Wrongness } from './wrong-server.ts';

type Fields = Readonly<Record<string, unknown>>;
type Event = Extract<Outgoing, { kind: 'event' }>;

const names = Object.entries(OpCode).filter(
  ([name, code]) =>
    operationOf(code) !== undefined && !['notification', 'createSession', 'error', 'sasl', 'deleteContainer'].includes(name),
);
const creates: readonly number[] = [OpCode.create, OpCode.create2, OpCode.createContainer, OpCode.createTTL];

const reply =
  (types: readonly number[], change: (record: Fields) => Fields): (() => Wrongness) =>
  () => ({ outgoing: (frame) => withReply<Fields>(frame, types, change) });
const request =
  (types: readonly number[], change: (record: Fields) => Fields): (() => Wrongness) =>
  () => ({ request: (asked) => (types.includes(asked.type) ? withRecord<Fields>(asked, change) : asked) });
const events =
  (change: (event: Event) => readonly Event[]): (() => Wrongness) =>
  () => ({ outgoing: (frame) => (frame.kind === 'event' ? change(frame) : [frame]) });
const refusals =
  (types: readonly number[], err: number, only?: number): (() => Wrongness) =>
  () => ({
    outgoing: (frame) => [
      frame.kind === 'reply' && types.includes(frame.type) && frame.err !== 0 && (only === undefined || frame.err === only)
        ? { ...frame, err }
        : frame,
    ],
  });
const answered =
  (type: number, err: number): (() => Wrongness) =>
  () => ({
    request: (asked, answer) => {
      if (asked.type !== type) return asked;
      answer(err);
      return undefined;
    },
  });
const stat =
  (field: string, types?: readonly number[]): (() => Wrongness) =>
  () => ({
    outgoing: (frame) =>
      withReply<Fields>(frame, types ?? statTypes, (record) => {
        const before = record['stat'] as Fields;
        const value = before[field] as number | bigint;
        return { ...record, stat: { ...before, [field]: typeof value === 'bigint' ? value + 1n : value + 1 } };
      }),
  });
const statTypes: readonly number[] = [
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.exists,
  OpCode.getData,
  OpCode.setData,
  OpCode.getACL,
  OpCode.setACL,
  OpCode.getChildren2,
];
const part = (change: (result: Fields) => Fields) => (record: Fields) => ({ results: (record['results'] as Fields[]).map(change) });
const ops = (change: (list: Fields[]) => Fields[]) => (record: Fields) => ({ ops: change(record['ops'] as Fields[]) });
/** Each read of a path returns what the read before it returned. */
function late(types: readonly number[]): () => Wrongness {
  return () => {
    const before = new Map<number, Buffer>();
    return {
      outgoing: (frame) => {
        if (frame.kind !== 'reply' || !types.includes(frame.type) || frame.err !== 0) return [frame];
        const body = before.get(frame.type) ?? frame.body;
        before.set(frame.type, frame.body);
        return [{ ...frame, body }];
      },
    };
  };
}
/** getData of paths that end like this returns what it returned before. */
function lateFor(ending: string): Wrongness {
  const asked: boolean[] = [];
  let before: Buffer | undefined;
  return {
    request: (one) => {
      // The path and the watch flag.
      if (one.type === OpCode.getData) asked.push(one.body.toString('utf8', 4, one.body.length - 1).endsWith(ending));
      return one;
    },
    outgoing: (frame) => {
      if (frame.kind !== 'reply' || frame.type !== OpCode.getData) return [frame];
      if (asked.shift() !== true || frame.err !== 0) return [frame];
      const body = before ?? frame.body;
      before = frame.body;
      return [{ ...frame, body }];
    },
  };
}

const strayEvent = (zxid: number): Event => ({ kind: 'event', zxid, type: 3, state: 3, path: '/' });
const handshake =
  (change: (response: ConnectResponse) => ConnectResponse): (() => Wrongness) =>
  () => ({ connectResponse: change });
const asking =
  (change: (asked: ConnectRequest) => ConnectRequest): (() => Wrongness) =>
  () => ({ connectRequest: change });

/** Counted over all connections. */
let configReads = 0;
const unwatched = new Set<unknown>();

/** The last byte, which says whether to set a watch, is missing. */
const isTooShort = ({ type, body }: Request): boolean => type === OpCode.getData && body.length === 4 + body.readInt32BE(0);

/** Bugs by name. */
export const mutations: Readonly<Record<string, () => Wrongness>> = {
  ...Object.fromEntries(
    names.flatMap(([name, type]): [string, () => Wrongness][] => [
      [`${name} is answered as done, and not done`, answered(type, ErrorCode.Ok)],
      [`${name} is refused as Unimplemented`, answered(type, ErrorCode.Unimplemented)],
      [`refusals of ${name} are SystemError`, refusals([type], ErrorCode.SystemError)],
      [`refusals of ${name} are NoNode`, refusals([type], ErrorCode.NoNode)],
      [
        `${name} is answered with the xid of another request`,
        () => ({ outgoing: (frame) => [frame.kind === 'reply' && frame.type === type ? { ...frame, xid: frame.xid + 1 } : frame] }),
      ],
    ]),
  ),
  ...Object.fromEntries(
    ['czxid', 'mzxid', 'ctime', 'mtime', 'version', 'cversion', 'aversion', 'ephemeralOwner', 'dataLength', 'numChildren', 'pzxid'].flatMap(
      (field): [string, () => Wrongness][] => [
        [`${field} of every Stat is too large by one`, stat(field)],
        [`${field} of the Stat of creates is too large by one`, stat(field, creates.slice(1))],
        [`${field} of the Stat of exists is too large by one`, stat(field, [OpCode.exists])],
        [`${field} of the Stat of getData is too large by one`, stat(field, [OpCode.getData])],
        [`${field} of the Stat of setData is too large by one`, stat(field, [OpCode.setData])],
      ],
    ),
  ),
  ...Object.fromEntries(
    [
      [1, 'NodeCreated'],
      [2, 'NodeDeleted'],
      [3, 'NodeDataChanged'],
      [4, 'NodeChildrenChanged'],
    ].flatMap(([type, name]): [string, () => Wrongness][] => [
      [`${name} is not sent`, events((event) => (event.type === type ? [] : [event]))],
      [`${name} is sent twice`, events((event) => (event.type === type ? [event, event] : [event]))],
      [`${name} has another type`, events((event) => [event.type === type ? { ...event, type: (type % 4) + 1 } : event])],
      [
        `${name} has the path of the parent`,
        events((event) => [event.type === type ? { ...event, path: event.path.replace(/\/[^/]*$/, '') || '/' } : event]),
      ],
    ]),
  ),
  'events have zxid 1': events((event) => [{ ...event, zxid: 1 }]),
  'events have state Expired': events((event) => [{ ...event, state: -112 }]),
  'events of one connection have one path': () => {
    let path: string | undefined;
    return { outgoing: (frame) => [frame.kind === 'event' ? { ...frame, path: (path ??= frame.path) } : frame] };
  },
  'events come one event late': () => {
    let held: Outgoing | undefined;
    return {
      outgoing: (frame) => {
        if (frame.kind !== 'event') return [frame];
        const before = held;
        held = frame;
        return before === undefined ? [] : [before];
      },
    };
  },
  'events come in reversed pairs': () => {
    const held: Outgoing[] = [];
    return {
      outgoing: (frame) => {
        if (frame.kind === 'event') {
          held.unshift(frame);
          return [];
        }
        return [...held.splice(0), frame];
      },
    };
  },
  'only the first event of a connection is sent': () => {
    let sent = 0;
    return { outgoing: (frame) => (frame.kind !== 'event' || sent++ === 0 ? [frame] : []) };
  },
  'events arrive after the next reply': () => {
    const held: Outgoing[] = [];
    return {
      outgoing: (frame) => {
        if (frame.kind !== 'event') return [frame, ...held.splice(0)];
        held.push(frame);
        return [];
      },
    };
  },
  'creates answer a path with a slash at its end': reply(creates, (record) => ({ ...record, path: `${String(record['path'])}/` })),
  'creates answer the path of the parent': reply(creates, (record) => ({
    ...record,
    path: String(record['path']).replace(/\/[^/]*$/, ''),
  })),
  'creates answer a path that is one number too large': reply(creates, (record) => ({
    ...record,
    path: String(record['path']).replace(/\d+$/, (digits) => String(Number(digits) + 1).padStart(digits.length, '0')),
  })),
  'creates make persistent znodes only': request(creates, (record) => ({ ...record, flags: 0 })),
  'creates make no sequential znodes': request(creates, (record) => ({ ...record, flags: Number(record['flags']) & ~2 })),
  'creates make no ephemerals': request(creates, (record) => ({ ...record, flags: Number(record['flags']) & ~1 })),
  'creates make sequential znodes of all': request(creates, (record) => ({
    ...record,
    flags: Number(record['flags']) <= 1 ? Number(record['flags']) | 2 : record['flags'],
  })),
  'creates forget the data': request(creates, (record) => ({ ...record, data: null })),
  'creates grant everything': request(creates, (record) => ({ ...record, acl: openAcl })),
  'creates take a list without ACLs for all rights': request(creates, (record) => ({
    ...record,
    acl: record['acl'] === null || (record['acl'] as unknown[]).length === 0 ? openAcl : record['acl'],
  })),
  'creates with unknown flags are persistent': request(creates, (record) => ({
    ...record,
    flags: Number(record['flags']) > 6 ? 0 : record['flags'],
  })),
  'NodeExists of creates is success': () => ({
    outgoing: (frame) => [
      frame.kind === 'reply' && creates.includes(frame.type) && frame.err === ErrorCode.NodeExists
        ? { ...frame, err: ErrorCode.NoNode }
        : frame,
    ],
  }),
  'operations that an ACL forbids succeed': refusals(
    names.map(([, type]) => type),
    ErrorCode.NoNode,
    ErrorCode.NoAuth,
  ),
  'InvalidACL is BadArguments': refusals(
    names.map(([, type]) => type),
    ErrorCode.BadArguments,
    ErrorCode.InvalidACL,
  ),
  'BadArguments is NoNode': refusals(
    names.map(([, type]) => type),
    ErrorCode.NoNode,
    ErrorCode.BadArguments,
  ),
  'BadVersion is NoNode': refusals(
    names.map(([, type]) => type),
    ErrorCode.NoNode,
    ErrorCode.BadVersion,
  ),
  'NoNode is SystemError': refusals(
    names.map(([, type]) => type),
    ErrorCode.SystemError,
    ErrorCode.NoNode,
  ),
  'NoWatcher is NoNode': refusals(
    names.map(([, type]) => type),
    ErrorCode.NoNode,
    ErrorCode.NoWatcher,
  ),
  'Unimplemented is BadArguments': refusals([...names.map(([, type]) => type), 999], ErrorCode.BadArguments, ErrorCode.Unimplemented),
  'MarshallingError is BadArguments': refusals(
    names.map(([, type]) => type),
    ErrorCode.BadArguments,
    ErrorCode.MarshallingError,
  ),
  'NoChildrenForEphemerals is NoNode': refusals(
    names.map(([, type]) => type),
    ErrorCode.NoNode,
    ErrorCode.NoChildrenForEphemerals,
  ),
  'every request counts as a change of the Stat of exists': () => {
    let requests = 0;
    return {
      request: (asked) => {
        requests++;
        return asked;
      },
      outgoing: (frame) =>
        withReply<Fields>(frame, [OpCode.exists], (record) => ({ ...record, stat: { ...(record['stat'] as Fields), version: requests } })),
    };
  },
  'every getData is NoAuth': answered(OpCode.getData, ErrorCode.NoAuth),
  'a read that is refused sets a watch': () => ({
    request: (asked) => (asked.type === OpCode.getData ? { ...asked, type: OpCode.exists } : asked),
  }),
  'only the first request to restore watches is carried out': () => {
    let requests = 0;
    return {
      request: (asked, answer) => {
        if (asked.type !== OpCode.setWatches && asked.type !== OpCode.setWatches2) return asked;
        if (requests++ === 0) return asked;
        answer(ErrorCode.Ok);
        return undefined;
      },
    };
  },
  'multi leaves its checks out': request(
    [OpCode.multi],
    ops((list) => list.filter(({ kind }) => kind !== 'check')),
  ),
  'getChildren lists one too many': reply([OpCode.getChildren, OpCode.getChildren2], (record) => ({
    ...record,
    children: [...(record['children'] as string[]), 'x'],
  })),
  'getConfig has other data each time': () => {
    const asked: boolean[] = [];
    return {
      request: (one) => {
        if (one.type === OpCode.getData) asked.push(one.body.includes('/zookeeper/config'));
        return one;
      },
      outgoing: (frame) =>
        frame.kind === 'reply' && frame.type === OpCode.getData && asked.shift() === true
          ? withReply<Fields>(frame, [OpCode.getData], (record) => ({
              ...record,
              data: Buffer.from(`version=${configReads++}`),
            }))
          : [frame],
    };
  },
  'getConfig has data': () => {
    const asked: boolean[] = [];
    return {
      request: (one) => {
        if (one.type === OpCode.getData) asked.push(one.body.includes('/zookeeper/config'));
        return one;
      },
      outgoing: (frame) =>
        frame.kind === 'reply' && frame.type === OpCode.getData && asked.shift() === true
          ? withReply<Fields>(frame, [OpCode.getData], (record) => ({ ...record, data: Buffer.from('server.1=nobody') }))
          : [frame],
    };
  },
  'auth is shown to the server on the first connection only': () => {
    let isResumed = false;
    return {
      connectRequest: (asked) => {
        isResumed = asked.sessionId !== 0n;
        return asked;
      },
      request: (asked, answer) => {
        if (asked.type !== OpCode.auth || !isResumed) return asked;
        answer(ErrorCode.Ok);
        return undefined;
      },
    };
  },
  'events of one connection have one zxid': () => {
    let zxid: number | undefined;
    return { outgoing: (frame) => [frame.kind === 'event' ? { ...frame, zxid: (zxid ??= frame.zxid) } : frame] };
  },
  'reads go back in time': () => {
    const seen: Buffer[] = [];
    return {
      outgoing: (frame) => {
        if (frame.kind !== 'reply' || ![OpCode.getData, OpCode.getChildren2].includes(frame.type as 4) || frame.err !== 0) return [frame];
        seen.push(frame.body);
        return [{ ...frame, body: seen.length % 5 === 0 ? seen[0]! : frame.body }];
      },
    };
  },
  'of two znodes the second is read late': () => lateFor('/b'),
  'of two znodes the first is read late': () => lateFor('/a'),
  'creates take the ACL of the parent': () => {
    const acls = new Map<string, unknown>();
    return {
      request: (asked) => {
        if (!creates.includes(asked.type)) return asked;
        return withRecord<Fields>(asked, (record) => {
          const path = String(record['path']);
          const acl = acls.get(path.slice(0, path.lastIndexOf('/'))) ?? record['acl'];
          acls.set(path, acl);
          return { ...record, acl };
        });
      },
    };
  },
  'a length that no frame has is skipped': () => ({ skipsBadLengths: true }),
  'a read that ends too early costs the connection': () => ({
    outgoing: (frame) => [
      frame,
      ...(frame.kind === 'reply' && frame.type === OpCode.getData && frame.err === ErrorCode.MarshallingError
        ? [{ kind: 'end' } as const]
        : []),
    ],
  }),
  'a read that ends too early is carried out': () => ({
    request: (asked) => (isTooShort(asked) ? { ...asked, body: Buffer.concat([asked.body, Buffer.alloc(1)]) } : asked),
  }),
  'creates make ephemerals of all': request(creates, (record) => ({ ...record, flags: Number(record['flags']) | 1 })),
  'reads that an ACL forbids succeed': refusals(
    [OpCode.getData, OpCode.getChildren, OpCode.getChildren2, OpCode.exists],
    ErrorCode.SystemError,
    ErrorCode.NoAuth,
  ),
  'an event follows each reply to multiRead': () => ({
    outgoing: (frame) => [frame, ...(frame.kind === 'reply' && frame.type === OpCode.multiRead ? [strayEvent(frame.zxid)] : [])],
  }),
  'setData loses the last byte': request([OpCode.setData], (record) => ({
    ...record,
    data: (record['data'] as Buffer | null)?.subarray(0, -1) ?? null,
  })),
  'creates lose the last byte': request(creates, (record) => ({
    ...record,
    data: (record['data'] as Buffer | null)?.subarray(0, -1) ?? null,
  })),
  'refused deletes are done': () => ({
    outgoing: (frame) => [frame.kind === 'reply' && frame.type === OpCode.delete ? { ...frame, err: 0 } : frame],
  }),
  'refusals of deletes are BadVersion': refusals([OpCode.delete], ErrorCode.BadVersion),
  'refusals of deletes are BadArguments': refusals([OpCode.delete], ErrorCode.BadArguments),
  'refusals of creates are NoAuth': refusals(creates, ErrorCode.NoAuth),
  'refusals of creates are NodeExists': refusals(creates, ErrorCode.NodeExists),
  'zxids of every Stat are those of the znode before': () => {
    let czxid: unknown;
    return {
      outgoing: (frame) =>
        withReply<Fields>(frame, statTypes, (record) => ({
          ...record,
          stat: { ...(record['stat'] as Fields), mzxid: (czxid ??= (record['stat'] as Fields)['mzxid']) },
        })),
    };
  },
  'versions are not compared': request([OpCode.setData, OpCode.delete, OpCode.setACL], (record) => ({ ...record, version: -1 })),
  'setACL grants everything': request([OpCode.setACL], (record) => ({ ...record, acl: openAcl })),
  'setData forgets the data': request([OpCode.setData], (record) => ({ ...record, data: null })),
  'getData loses the last byte': reply([OpCode.getData], (record) => ({
    ...record,
    data: (record['data'] as Buffer | null)?.subarray(0, -1) ?? null,
  })),
  'getData answers what it answered before': late([OpCode.getData]),
  'getChildren answers what it answered before': late([OpCode.getChildren, OpCode.getChildren2]),
  'exists answers what it answered before': late([OpCode.exists]),
  'getChildren leaves the first child out': reply([OpCode.getChildren, OpCode.getChildren2], (record) => ({
    ...record,
    children: (record['children'] as string[]).slice(1),
  })),
  'getChildren lists the first child twice': reply([OpCode.getChildren, OpCode.getChildren2], (record) => ({
    ...record,
    children: [...(record['children'] as string[]).slice(0, 1), ...(record['children'] as string[])],
  })),
  'getChildren lists paths': reply([OpCode.getChildren, OpCode.getChildren2], (record) => ({
    ...record,
    children: (record['children'] as string[]).map((name) => `x${name}`),
  })),
  'getACL says that everything is granted': reply([OpCode.getACL], (record) => ({ ...record, acl: openAcl })),
  'getACL shows ids in full': reply([OpCode.getACL], (record) => ({
    ...record,
    acl: (record['acl'] as { perms: number; id: { scheme: string; id: string } }[]).map(({ perms, id }) => ({
      perms,
      id: { ...id, id: id.id.replace(':x', ':secret') },
    })),
  })),
  'getAllChildrenNumber counts the znode itself': reply([OpCode.getAllChildrenNumber], (record) => ({
    totalNumber: Number(record['totalNumber']) + 1,
  })),
  'getEphemerals lists nothing': reply([OpCode.getEphemerals], () => ({ ephemerals: [] })),
  'getEphemerals lists one too many': reply([OpCode.getEphemerals], (record) => ({
    ephemerals: [...(record['ephemerals'] as string[]), '/x'],
  })),
  'sync answers another path': reply([OpCode.sync], () => ({ path: '/' })),
  'reads set no watches': request([OpCode.getData, OpCode.exists, OpCode.getChildren, OpCode.getChildren2], (record) => ({
    ...record,
    watch: false,
  })),
  'getData sets no watch': request([OpCode.getData], (record) => ({ ...record, watch: false })),
  'getChildren sets no watch': request([OpCode.getChildren, OpCode.getChildren2], (record) => ({ ...record, watch: false })),
  'every read sets a watch': request([OpCode.getData, OpCode.exists, OpCode.getChildren, OpCode.getChildren2], (record) => ({
    ...record,
    watch: true,
  })),
  'every watch is recursive': request([OpCode.addWatch], (record) => ({ ...record, mode: 1 })),
  'no watch is recursive': request([OpCode.addWatch], (record) => ({ ...record, mode: 0 })),
  'removeWatches removes all types': request([OpCode.removeWatches], (record) => ({ ...record, type: 3 })),
  'checkWatches asks for all types': request([OpCode.checkWatches], (record) => ({ ...record, type: 3 })),
  'checkWatches removes them': () => ({
    request: (asked) => (asked.type === OpCode.checkWatches ? { ...asked, type: OpCode.removeWatches } : asked),
  }),
  'removeWatches removes those of other sessions': () => ({
    request: (asked) => {
      if (asked.type === OpCode.removeWatches)
        unwatched.add((operationOf(asked.type)!.request.read(new Reader(asked.body)) as Fields)['path']);
      return asked;
    },
    outgoing: (frame) => (frame.kind === 'event' && unwatched.has(frame.path) ? [] : [frame]),
  }),
  'removeWatches only checks them': () => ({
    request: (asked) => (asked.type === OpCode.removeWatches ? { ...asked, type: OpCode.checkWatches } : asked),
  }),
  'watches are restored as of now': request([OpCode.setWatches, OpCode.setWatches2], (record) => ({
    ...record,
    relativeZxid: Number.MAX_SAFE_INTEGER,
  })),
  'watches that stay are not restored': request([OpCode.setWatches2], (record) => ({
    ...record,
    persistentWatches: [],
    persistentRecursiveWatches: [],
  })),
  'data watches are not restored': request([OpCode.setWatches, OpCode.setWatches2], (record) => ({
    ...record,
    dataWatches: [],
    existWatches: [],
  })),
  'multi is split into its operations': () => {
    /**
     * For each multi without an answer: the number of parts still to be answered, and the results
     * of the others.
     */
    const split: { left: number; readonly results: Fields[] }[] = [];
    return {
      request: (asked) => {
        if (asked.type !== OpCode.multi) return asked;
        const parts: Request[] = [];
        const single = (each: Fields) => withRecord<Fields>(asked, (record) => ({ ...record, ops: [each] }));
        withRecord<Fields>(asked, (record) => {
          for (const each of record['ops'] as Fields[]) parts.push(single(each));
          return record;
        });
        split.push({ left: parts.length, results: [] });
        return parts;
      },
      outgoing: (frame) => {
        if (frame.kind !== 'reply' || frame.type !== OpCode.multi) return [frame];
        const multi = split[0]!;
        return withReply<Fields>(frame, [OpCode.multi], (record) => {
          multi.results.push(...(record['results'] as Fields[]));
          return { results: multi.results };
        }).filter(() => {
          multi.left--;
          if (multi.left === 0) split.shift();
          return multi.left === 0;
        });
      },
    };
  },
  'multi reverses its operations': request(
    [OpCode.multi],
    ops((list) => list.toReversed()),
  ),
  'multi leaves its last operation out': request(
    [OpCode.multi],
    ops((list) => list.slice(0, -1)),
  ),
  'multi does its first operation twice': request(
    [OpCode.multi],
    ops((list) => [...list.slice(0, 1), ...list]),
  ),
  'multi makes persistent znodes only': request(
    [OpCode.multi],
    ops((list) => list.map((each) => ('flags' in each ? { ...each, flags: 0 } : each))),
  ),
  'multi compares no versions': request(
    [OpCode.multi],
    ops((list) => list.map((each) => ('version' in each ? { ...each, version: -1 } : each))),
  ),
  'multi answers one result only': reply([OpCode.multi, OpCode.multiRead], (record) => ({
    results: (record['results'] as Fields[]).slice(0, 1),
  })),
  'multi answers one result too many': reply([OpCode.multi], (record) => ({
    results: [...(record['results'] as Fields[]), { kind: 'check' }],
  })),
  'errors within a multi are SystemError': reply(
    [OpCode.multi, OpCode.multiRead],
    part((result) => (result['kind'] === 'error' && result['err'] !== 0 ? { ...result, err: ErrorCode.SystemError } : result)),
  ),
  'errors within a multi are Ok': reply(
    [OpCode.multi, OpCode.multiRead],
    part((result) => (result['kind'] === 'error' ? { ...result, err: 0 } : result)),
  ),
  'paths within a multi have a slash at the end': reply(
    [OpCode.multi],
    part((result) => ('path' in result ? { ...result, path: `${String(result['path'])}/` } : result)),
  ),
  'Stats within a multi have a version too large by one': reply(
    [OpCode.multi, OpCode.multiRead],
    part((result) =>
      'stat' in result
        ? { ...result, stat: { ...(result['stat'] as Fields), version: Number((result['stat'] as Fields)['version']) + 1 } }
        : result,
    ),
  ),
  'data within a multiRead are lost': reply(
    [OpCode.multiRead],
    part((result) => ('data' in result ? { ...result, data: null } : result)),
  ),
  'replies have zxid 1': () => ({ outgoing: (frame) => [frame.kind === 'reply' ? { ...frame, zxid: 1 } : frame] }),
  'zxids of replies fall': () => {
    let next = 1_000_000_000;
    return { outgoing: (frame) => [frame.kind === 'reply' ? { ...frame, zxid: next-- } : frame] };
  },
  'replies to reads overtake those to writes': () => {
    const held: Outgoing[] = [];
    return {
      outgoing: (frame) => {
        if (frame.kind === 'reply' && frame.type === OpCode.setData && held.length === 0) {
          held.push(frame);
          return [];
        }
        return [frame, ...held.splice(0)];
      },
    };
  },
  'getConfig is empty': () => ({
    outgoing: (frame) =>
      withReply<Fields>(frame, [OpCode.getData], (record) =>
        String(record['data']).includes('version=') || record['data'] === null ? { ...record, data: Buffer.from('x') } : record,
      ),
  }),
  'sessions have id 7': handshake((response) => ({ ...response, sessionId: response.sessionId === 0n ? 0n : 7n })),
  'passwords are short': handshake((response) => ({ ...response, passwd: Buffer.alloc(8) })),
  'refused handshakes have a password': handshake((response) =>
    response.timeOut === 0 ? { ...response, passwd: Buffer.alloc(16, 1) } : response,
  ),
  'refused handshakes grant a time-out': handshake((response) =>
    response.timeOut === 0 ? { ...response, timeOut: 4000, sessionId: 9n } : response,
  ),
  'sessions that have ended are resumed': () => {
    let sessionId = 0n;
    return {
      connectRequest: (asked) => {
        ({ sessionId } = asked);
        return asked;
      },
      connectResponse: (response) => (response.timeOut === 0 ? { ...response, timeOut: 4000, sessionId } : response),
    };
  },
  'time-outs are granted four times as long as they are kept': handshake((response) => ({ ...response, timeOut: 4 * response.timeOut })),
  'time-outs are halved': handshake((response) => ({ ...response, timeOut: Math.floor(response.timeOut / 2) })),
  'time-outs are granted below the bound': asking((asked) => ({ ...asked, timeOut: 1 })),
  'each connection gets a new session': asking((asked) => ({ ...asked, sessionId: 0n, passwd: Buffer.alloc(16) })),
  'sessions cannot be resumed': asking((asked) => (asked.sessionId === 0n ? asked : { ...asked, passwd: Buffer.alloc(16, 9) })),
  'auth is not shown to the server': answered(OpCode.auth, ErrorCode.Ok),
  'auth takes every scheme': () => ({
    request: (asked, answer) => {
      if (asked.type !== OpCode.auth || (operationOf(OpCode.auth)!.request.read(new Reader(asked.body)) as Fields)['scheme'] === 'digest')
        return asked;
      answer(ErrorCode.Ok);
      return undefined;
    },
  }),
  'whoAmI lists no identity': reply([OpCode.whoAmI], () => ({ clientInfo: [] })),
  'whoAmI shows passwords': reply([OpCode.whoAmI], (record) => ({
    clientInfo: (record['clientInfo'] as Fields[]).map((info) => ({ ...info, user: `${String(info['user'])}:secret` })),
  })),
};
