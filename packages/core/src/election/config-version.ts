/** The version of a configuration, as its text tells it: the line `version=<hex>`, a zxid, which is the last line of what servers send. */
const line = /^version=([0-9a-f]{1,16})\s*$/im;

/** Undefined when the text has no such line or what stands there is no number. */
export function configVersion(text: string): number | undefined {
  const found = line.exec(text);
  return found === null ? undefined : Number.parseInt(found[1]!, 16);
}
