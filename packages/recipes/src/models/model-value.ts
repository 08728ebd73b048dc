/** What a model's znode has, as a value; and how values and data are told apart when one cannot be made of the other. */
import type { CreateSettings, Data, ParentMode, Stat } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import type { Codec } from '../codecs/codec.ts';

/** How the znodes of a model are kept, besides how they are made. */
export interface ModelSettings<Read, Written = Read> {
  /** From values to data, and back. */
  readonly codec: Codec<Read, Written>;
  /** What is made of parents that are missing when a znode is made; false: then it fails with NoNode. Default: `container`. */
  readonly parents?: ParentMode | false | undefined;
}

/** How the znodes of a model are kept, and how they are made: `mode`, `acl` and `ttlMs` as in `Client.create`. */
export type ModelOptions<Read, Written = Read> = ModelSettings<Read, Written> & CreateSettings;

/** A value, and the Stat of the data it was made of. */
export interface ModelValue<Read> {
  /** Of the znode. */
  readonly path: string;
  /** By the codec of the model. */
  readonly value: Read;
  /** `version` is what conditional writes compare. */
  readonly stat: Stat;
}

export function encoded<Written>(codec: Codec<unknown, Written>, path: string, value: Written): Data {
  try {
    return codec.encode(value);
  } catch (cause) {
    throw new RecipeError('Refused', `nothing was written to ${path}, as its model does not allow it: ${reasonOf(cause)}`, { cause });
  }
}

export function decoded<Read>(codec: Codec<Read, never>, path: string, data: Uint8Array | null, stat: Stat): ModelValue<Read> {
  try {
    return { path, value: codec.decode(data), stat };
  } catch (cause) {
    throw new RecipeError('Mismatch', `the data of ${path}, version ${stat.version}, are not of its model: ${reasonOf(cause)}`, { cause });
  }
}

export function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
