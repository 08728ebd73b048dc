/**
 * A whole number as a `SharedValue` (Curator's SharedCount): many read it, some change it. For a
 * counter that many increment, see `AtomicNumber`.
 */
import { checkConstructorOptions } from '../validation.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import { int32, type NumberFormat } from './number-format.ts';
import { SharedValue, type SharedValueOptions } from './shared-value.ts';

/** How a count is kept. */
export interface SharedCountOptions extends SharedValueOptions {
  /** The format in the znode. Default: `int32`, 4 bytes, as in Curator's SharedCount. */
  readonly format?: NumberFormat<number> | undefined;
}

/** A `SharedValue` that is a number. */
export class SharedCount extends SharedValue<number> {
  constructor(source: SessionSource, path: string, options: SharedCountOptions = {}) {
    checkConstructorOptions(options, 'SharedCount', arguments.length);
    const { format = int32, acl } = options;
    const decode = (data: Uint8Array | null) => (data === null || data.length === 0 ? format.zero : format.decode(data));
    super(source, path, { encode: (value) => format.encode(value), decode }, { acl });
  }

  /** As last read; 0 if the znode does not exist. */
  get count(): number {
    return this.current?.value ?? 0;
  }
}
