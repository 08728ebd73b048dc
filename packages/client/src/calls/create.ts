/** A create with all that can be asked of it: parents, protection, repetition. */
import { ErrorCode } from '@tskeeper/protocol';
import { Refusal } from '../keeper-error.ts';
import { type CreateSettings, type Data, isSequential } from '../operations/create.ts';
import type { CallOptions } from '../session/operation.ts';
import type { Bounds, CallSession } from './bounds.ts';
import { createIdempotently } from './idempotent.ts';
import { createBelow, type ParentMode, type Parents } from './parents.ts';
import { checkGuid, createProtected, newGuid, type Protection, protectedPath } from './protection.ts';
import type { Retries } from './retries.ts';
import type { Created, Znodes } from './znodes.ts';

/** What a create can do besides making one znode in one request. */
export interface CreateExtras {
  /**
   * Makes the parents that are missing, without data and with the ACL of the znode itself: `true` or `persistent` for such that stay, `container` for such
   * that servers delete when the last child has gone. Who else makes or deletes them at the same time does no harm. Parents stay when
   * the znode itself cannot be made. Default: false; a missing parent is NoNode.
   */
  readonly parents?: boolean | ParentMode | undefined;
  /**
   * Survives the loss of the answer: a guid goes into the name, `_c_<guid>-name`, as Curator's clients do it, and when no answer comes the
   * client looks whether the znode is there before it makes it again. So there is exactly one, or none. It looks for as long as the session lives;
   * `timeoutMs` and `signal` bound that, and a znode that was made but not waited for is then deleted in the background. An error with the outcome
   * `unknown` is left for the end of the session. `path` of the result has the name.
   *
   * A guid of one's own, as `node:crypto` makes them, in place of `true`: it is looked for first, so a create that has ended without an answer can be
   * taken up again, on a later session as well. An ephemeral of another session is not taken for it, but deleted. Default: false.
   */
  readonly protection?: boolean | string | undefined;
  /**
   * Means the state, not the act: when no answer comes the create is made again, by `retry` or its defaults, and NodeExists is then success if the
   * znode has these data, was not changed since, and belongs to this session if it is an ephemeral - whoever has made it. Not for sequential
   * znodes, which `protection` is for. Default: false.
   */
  readonly idempotent?: boolean | undefined;
}

interface CreateCall {
  readonly session: CallSession;
  readonly znodes: Znodes;
  readonly path: string;
  readonly data: Data | undefined;
  readonly settings: CreateSettings;
  readonly extras: CreateExtras;
  readonly retry: CallOptions['retry'];
  readonly bounds: Bounds;
  /** Of an idempotent create. */
  readonly retries: () => Retries;
  readonly parents: (mode: ParentMode) => Parents;
}

export function hasExtras({ parents, protection, idempotent }: CreateExtras): boolean {
  return isAsked(parents) || isAsked(protection) || isAsked(idempotent);
}

function isAsked(option: boolean | string | undefined): boolean {
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
  bounds,
  ...more
}: CreateCall): Promise<Created> {
  const { idempotent } = extras;
  const mode = parentModeOf(extras.parents);
  const protection = protectionOf(extras.protection, session);
  if (idempotent === true && isSequential(settings.mode ?? 'persistent'))
    throw badArguments('each create of a sequential znode makes another, so it cannot be idempotent; protection is for that');
  if (idempotent === true && protection !== undefined)
    throw badArguments('a create is idempotent or has protection; protection finds what is really its own');
  const target = protection === undefined ? path : protectedPath(path, protection);
  const createIn = (options: CallOptions) => {
    const create = () => znodes.create(target, data, { ...settings, ...options });
    return mode === undefined ? create() : createBelow(more.parents(mode), create);
  };
  if (idempotent === true) {
    return await createIdempotently(znodes, target, data, settings, more.retries(), (limits) => createIn({ ...limits, retry: false }));
  }
  const create = () => createIn({ ...bounds.left, retry });
  // Awaited here, so that the stack of an error goes on to whoever called.
  return await (protection === undefined ? create() : createProtected(session, znodes, target, protection, bounds, create));
}

function parentModeOf(parents: boolean | ParentMode | undefined): ParentMode | undefined {
  if (parents === undefined || parents === false) return undefined;
  if (parents === true || parents === 'persistent') return 'persistent';
  if (parents === 'container') return parents;
  throw badArguments(`parents is true, false, "persistent" or "container", not "${String(parents)}"`);
}

function protectionOf(protection: boolean | string | undefined, session: CallSession): Protection | undefined {
  if (protection === undefined || protection === false) return undefined;
  if (protection === true) return { guid: newGuid(session.random), isOwn: true };
  checkGuid(protection);
  return { guid: protection, isOwn: false };
}

function badArguments(reason: string): Refusal {
  return new Refusal(ErrorCode.BadArguments, 'notSent', reason);
}
