/** The value of a model's znode, and the errors of its codec. */
import type { CreateSettings, Data, ParentMode, Stat } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import type { Codec } from '../codecs/codec.ts';

/** How the znodes of a model are kept, except how they are created. */
export interface ModelSettings<Read, Written = Read> {
  /** Encodes and decodes the values. */
  readonly codec: Codec<Read, Written>;
  /**
   * The mode in which missing parents of a new znode are created; false: then the creation fails
   * with NoNode. Default: `container`.
   */
  readonly parents?: ParentMode | false | undefined;
}

/**
 * How the znodes of a model are kept and created: `mode`, `acl` and `ttlMs` as in `Client.create`.
 */
export type ModelOptions<Read, Written = Read> = ModelSettings<Read, Written> & CreateSettings;

/** A value, and the Stat of its data. */
export interface ModelValue<Read> {
  /** Of the znode. */
  readonly path: string;
  /** Decoded by the codec of the model. */
  readonly value: Read;
  /** `version` is what conditional writes compare. */
  readonly stat: Stat;
}

export function encodeValue<Written>(codec: Codec<unknown, Written>, path: string, value: Written): Data {
  try {
    return codec.encode(value);
  } catch (cause) {
    throw new RecipeError('Refused', `the model of ${path} rejects the value, so nothing was written: ${messageOf(cause)}`, { cause });
  }
}

export function decodeValue<Read>(codec: Codec<Read, never>, path: string, data: Uint8Array | null, stat: Stat): ModelValue<Read> {
  try {
    return { path, value: codec.decode(data), stat };
  } catch (cause) {
    throw new RecipeError('Mismatch', `the data of ${path}, version ${stat.version}, do not fit its model: ${messageOf(cause)}`, { cause });
  }
}

export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
