/**
 * vector<ustring>: lists of paths and of names. A null list reads as an empty one; a null element
 * is invalid.
 */
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

const textBytesMin = 4;

function readElement(reader: Reader): string {
  return reader.text('a path or a name');
}

export function readStringVector(reader: Reader): string[] {
  return reader.vector(textBytesMin, readElement) ?? [];
}

export function writeStringVector(writer: Writer, names: readonly string[]): void {
  writer.int32(names.length);
  for (const name of names) writer.ustring(name);
}
