/**
 * Converts the protocol's records to plain values of the reference model: a request to an
 * operation, a reply to its body. The model knows nothing of records, and the server nothing of
 * these values.
 */
import type {
  Acl as WireAcl,
  AddWatchRequest,
  AuthRequest,
  CheckWatchesRequest,
  ChildrenDataPageReply,
  ChildrenPageReply,
  ChildrenPageRequest,
  CheckStatRequest,
  ChildWithData,
  CreateRequest,
  CreateTTLRequest,
  DeleteRequest,
  FilteredListRequest,
  FilteredListWithStatsAndDataReply,
  FilteredListWithStatsAndDataRequest,
  GetDataRequest,
  GetEphemeralsRequest,
  MultiOp,
  MultiRequest,
  MultiResult as WireMultiResult,
  OperationName,
  PathRequest,
  ReconfigRequest,
  RecursiveRequest,
  SaslRequest,
  SetACLRequest,
  SetDataRequest,
  SetWatches2Request,
  SetWatchesRequest,
  Stat as WireStat,
} from '@tskeeper/protocol';
import { OpCode } from '@tskeeper/protocol';
import type { AclEntry, Body, Data, MultiResult, Operation, PageChild, ReadStep, WriteStep } from './operation-types.ts';

function dataOf(bytes: Uint8Array | null): Data {
  return bytes === null ? null : Buffer.from(bytes).toString('latin1');
}

export function aclOf(acl: readonly WireAcl[] | null): readonly AclEntry[] | null {
  return acl === null ? null : acl.map(({ perms, id }) => ({ perms, scheme: id.scheme, id: id.id }));
}

function createOf(request: CreateRequest) {
  return { path: request.path, data: dataOf(request.data), acl: aclOf(request.acl), flags: request.flags };
}

function multiStepOf(op: MultiOp): WriteStep | ReadStep {
  switch (op.kind) {
    case 'create':
    case 'create2':
    case 'createContainer':
      return { kind: op.kind, ...createOf(op) };
    case 'createTTL':
      return { kind: op.kind, ...createOf(op), ttl: op.ttl };
    case 'delete':
    case 'check':
      return { kind: op.kind, path: op.path, version: op.version };
    case 'setData':
      return { kind: op.kind, path: op.path, data: dataOf(op.data), version: op.version };
    case 'getData':
    case 'getChildren':
      return { kind: op.kind, path: op.path, watch: op.watch };
    case 'createIfNotExists':
      return { kind: op.kind, ...createOf(op) };
    case 'checkNotExists':
    case 'tryRemove':
      return { kind: op.kind, path: op.path, version: op.version };
    case 'checkStat':
      return { kind: op.kind, path: op.path, version: op.version, stat: op.stat };
    case 'removeRecursive':
      return { kind: op.kind, path: op.path, limit: op.limit };
    default:
      return op satisfies never;
  }
}

/** A request as an operation of the model. `record` is what the operation's codec has read. */
export function operationFrom(name: OperationName | undefined, opCode: number, record: unknown): Operation {
  switch (name) {
    case undefined:
      return { kind: 'unknown', opCode };
    case 'create':
    case 'create2':
    case 'createContainer':
      return { kind: name, ...createOf(record as CreateRequest) };
    case 'createTTL':
      return { kind: name, ...createOf(record as CreateTTLRequest), ttl: (record as CreateTTLRequest).ttl };
    case 'delete':
    case 'check':
    case 'checkNotExists':
    case 'tryRemove': {
      const { path, version } = record as DeleteRequest;
      return { kind: name, path, version };
    }
    case 'createIfNotExists':
      return { kind: name, ...createOf(record as CreateRequest) };
    case 'checkStat':
      return { kind: name, ...(record as CheckStatRequest) };
    case 'removeRecursive':
    case 'listRecursive':
      return { kind: name, ...(record as RecursiveRequest) };
    case 'filteredListWithStatsAndData':
      return { kind: name, ...(record as FilteredListWithStatsAndDataRequest) };
    case 'setData': {
      const { path, data, version } = record as SetDataRequest;
      return { kind: name, path, data: dataOf(data), version };
    }
    case 'setACL': {
      const { path, acl, version } = record as SetACLRequest;
      return { kind: name, path, acl: aclOf(acl), version };
    }
    case 'getData':
    case 'exists':
    case 'getChildren':
    case 'getChildren2': {
      const { path, watch } = record as GetDataRequest;
      return { kind: name, path, watch };
    }
    case 'filteredList':
      return { kind: name, ...(record as FilteredListRequest) };
    case 'getChildrenPage':
    case 'getChildrenDataPage':
      return { kind: name, ...(record as ChildrenPageRequest) };
    case 'getACL':
    case 'sync':
    case 'getAllChildrenNumber':
    case 'deleteContainer':
      return { kind: name, path: (record as PathRequest).path };
    case 'getEphemerals':
      return { kind: name, prefixPath: (record as GetEphemeralsRequest).prefixPath };
    case 'ping':
    case 'whoAmI':
    case 'closeSession':
    case 'getLeader':
    case 'transferLeader':
    case 'shedConnections':
      return { kind: name };
    case 'multi':
    case 'multiRead':
      return { kind: name, steps: (record as MultiRequest).ops.map(multiStepOf) };
    case 'reconfig':
      return { kind: name, ...(record as ReconfigRequest) };
    case 'checkWatches':
    case 'removeWatches':
      return { kind: name, ...(record as CheckWatchesRequest) };
    case 'addWatch':
      return { kind: name, ...(record as AddWatchRequest) };
    case 'setWatches':
      return { kind: name, ...(record as SetWatchesRequest) };
    case 'setWatches2':
      return { kind: name, ...(record as SetWatches2Request) };
    case 'auth': {
      const { scheme, auth } = record as AuthRequest;
      return { kind: name, scheme, auth: dataOf(auth) };
    }
    case 'sasl':
      return { kind: name, token: dataOf((record as SaslRequest).token) };
    default:
      return name satisfies never;
  }
}

interface WireBody {
  readonly path?: string;
  readonly data?: Buffer | null;
  readonly stat?: WireStat;
  readonly children?: readonly string[];
  readonly isLast?: boolean;
  readonly acl?: readonly WireAcl[];
  readonly ephemerals?: readonly string[];
  readonly totalNumber?: number;
  readonly clientInfo?: readonly { readonly authScheme: string; readonly user: string }[];
  readonly err?: number;
  readonly token?: Buffer | null;
  readonly results?: readonly WireMultiResult[];
}

/** The body after a reply's header. Lists without a defined order are sorted. */
export function bodyFrom(record: unknown): Body | null {
  if (record === undefined || record === null) return null;
  if ((record as WireBody).isLast !== undefined) return pageFrom(record as ChildrenPageReply | ChildrenDataPageReply);
  if ((record as { readonly stats?: unknown }).stats !== undefined) return contentsFrom(record as FilteredListWithStatsAndDataReply);
  const body = record as WireBody;
  return {
    ...(body.path !== undefined && { path: body.path }),
    ...(body.data !== undefined && { data: dataOf(body.data) }),
    ...(body.stat !== undefined && { stat: body.stat }),
    ...(body.children !== undefined && { children: body.children.toSorted() }),
    ...(body.acl !== undefined && { acl: aclOf(body.acl)! }),
    ...(body.ephemerals !== undefined && { ephemerals: body.ephemerals.toSorted() }),
    ...(body.totalNumber !== undefined && { totalNumber: body.totalNumber }),
    ...(body.clientInfo !== undefined && { clientInfo: body.clientInfo }),
    ...(body.err !== undefined && { err: body.err }),
    ...(body.token !== undefined && { token: dataOf(body.token) }),
    ...(body.results !== undefined && { results: body.results.map(resultFrom) }),
  };
}

/** The order of its children is defined. */
function pageFrom({ children, isLast, lastZxid, stat }: ChildrenPageReply | ChildrenDataPageReply): Body {
  const childFrom = (child: string | ChildWithData): PageChild => {
    if (typeof child === 'string') return { name: child };
    return 'stat' in child ? { ...child, data: dataOf(child.data) } : child;
  };
  return { page: { children: children.map(childFrom), isLast, lastZxid }, stat };
}

/** One for each child, and one for each Stat or value too many. */
function contentsFrom({ children, stat, stats, data }: FilteredListWithStatsAndDataReply): Body {
  const contents = Array.from({ length: Math.max(children.length, stats.length, data.length) }, (_, at): PageChild => ({
    name: children[at] ?? '',
    ...(stats[at] !== undefined && { stat: stats[at] }),
    ...(data[at] !== undefined && { data: dataOf(data[at]) }),
  }));
  return { contents: contents.toSorted(byName), stat };
}

function byName(one: PageChild, other: PageChild): number {
  return one.name < other.name ? -1 : Number(one.name > other.name);
}

function resultFrom(result: WireMultiResult): MultiResult {
  if (result.kind === 'error') return { type: OpCode.error, err: result.err, body: { err: result.err } };
  const { kind, ...rest } = result;
  const body = bodyFrom(rest);
  const isEmpty = body === null || Object.keys(body).length === 0;
  return { type: OpCode[kind], err: 0, ...(!isEmpty && { body }) };
}

/** The model's own body in the same order. */
export function sortedBody(body: Body | null): Body | null {
  if (body === null) return null;
  return {
    ...body,
    ...(body.children !== undefined && { children: body.children.toSorted() }),
    ...(body.contents !== undefined && { contents: body.contents.toSorted(byName) }),
    ...(body.ephemerals !== undefined && { ephemerals: body.ephemerals.toSorted() }),
    ...(body.results !== undefined && {
      results: body.results.map((result) => (result.body === undefined ? result : { ...result, body: sortedBody(result.body)! })),
    }),
  };
}
