/** A create with all its options: parents, protection, repetition. */
import { ErrorCode } from '@tskeeper/protocol';
import { RequestFailure } from '../keeper-error.ts';
import { type CreateSettings, type Data, isSequential } from '../operations/create.ts';
import type { CallOptions } from './call-options.ts';
import type { CallDeadline, CallSession } from './call-deadline.ts';
import { createIdempotently } from './idempotent.ts';
import { createWithParents, type ParentMode, type ParentsToCreate } from './parents.ts';
import { checkGuid, createProtected, newGuid, type Protection, protectedPath } from './protection.ts';
import type { Retries } from './retries.ts';
import type { CreatedZnode, ZnodeCalls } from './znode-calls.ts';

/** Options of `create` beyond one znode in one request. */
export interface CreateExtras {
  /**
   * Creates missing parents, without data and with the ACL of the znode: `true` or `persistent` for
   * permanent ones, `container` for parents that servers delete after their last child is deleted.
   * Other clients may create or delete them at the same time. Parents stay if the create of the
   * znode itself fails. Default: false; a missing parent causes NoNode.
   */
  readonly parents?: boolean | ParentMode | undefined;
  /**
   * Makes the create safe against a lost answer: it puts a guid into the name, `_c_<guid>-name`, as
   * Curator does, and after a lost answer the client looks for the znode before it creates it
   * again. So there is exactly one, or none. It looks for as long as the session lives; `timeoutMs`
   * and `signal` limit that, and then the client deletes a created znode in the background. Only
   * the end of the session leaves an error with the outcome `unknown`. `path` of the result
   * contains the name.
   *
   * Instead of `true`, pass your own guid, as `node:crypto` creates them, to continue a create that
   * ended without an answer, also on a later session: the client looks for that guid first. It does
   * not accept an ephemeral of another session, but deletes it. Default: false.
   */
  readonly protection?: boolean | string | undefined;
  /**
   * Declares that only the resulting state counts, not which client created it: after a lost answer
   * the client repeats the create, by `retry` or its defaults. NodeExists is then a success if the
   * znode has these data, has not been changed, and belongs to this session if it is an ephemeral.
   * Not for sequential znodes; use `protection` for those. Default: false.
   */
  readonly idempotent?: boolean | undefined;
}

interface CreateCall {
  readonly session: CallSession;
  readonly znodes: ZnodeCalls;
  readonly path: string;
  readonly data: Data | undefined;
  readonly settings: CreateSettings;
  readonly extras: CreateExtras;
  readonly retry: CallOptions['retry'];
  readonly deadline: CallDeadline;
  /** For an idempotent create. */
  readonly retries: () => Retries;
  readonly parents: (mode: ParentMode) => ParentsToCreate;
}

export function hasExtras({ parents, protection, idempotent }: CreateExtras): boolean {
  return isEnabled(parents) || isEnabled(protection) || isEnabled(idempotent);
}

function isEnabled(option: boolean | string | undefined): boolean {
  return option !== undefined && option !== false;
}

export async function createWithExtras({
  session,
  znodes,
  path,
  data,
  settings,
  extras,
  retry,
  deadline,
  ...more
}: CreateCall): Promise<CreatedZnode> {
  const { idempotent } = extras;
  const mode = parentModeOf(extras.parents);
  const protection = protectionOf(extras.protection, session);
  if (idempotent === true && isSequential(settings.mode ?? 'persistent'))
    throw createOptionsError('each create of a sequential znode creates another one, so it cannot be idempotent; use protection instead');
  if (idempotent === true && protection !== undefined)
    throw createOptionsError('idempotent and protection exclude each other; protection finds exactly the znode of this call');
  const target = protection === undefined ? path : protectedPath(path, protection);
  const createIn = (options: CallOptions) => {
    const create = () => znodes.create(target, data, { ...settings, ...options });
    return mode === undefined ? create() : createWithParents(more.parents(mode), create);
  };
  if (idempotent === true) {
    return await createIdempotently(znodes, target, data, settings, more.retries(), (limits) => createIn({ ...limits, retry: false }));
  }
  const create = () => createIn({ ...deadline.requestLimits, retry });
  // Await here, so that the stack of an error includes the caller.
  return await (protection === undefined ? create() : createProtected(session, znodes, target, protection, deadline, create));
}

function parentModeOf(parents: boolean | ParentMode | undefined): ParentMode | undefined {
  if (parents === undefined || parents === false) return undefined;
  if (parents === true || parents === 'persistent') return 'persistent';
  if (parents === 'container') return parents;
  throw createOptionsError(`parents must be true, false, "persistent" or "container", not "${String(parents)}"`);
}

function protectionOf(protection: boolean | string | undefined, session: CallSession): Protection | undefined {
  if (protection === undefined || protection === false) return undefined;
  if (protection === true) return { guid: newGuid(session.random), isGenerated: true };
  checkGuid(protection);
  return { guid: protection, isGenerated: false };
}

function createOptionsError(reason: string): RequestFailure {
  return new RequestFailure(ErrorCode.BadArguments, 'notSent', reason);
}
