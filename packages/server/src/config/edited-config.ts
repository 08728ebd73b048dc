/**
 * zoo.cfg after a reconfiguration: what a dynamic file says is removed from it, and it names that
 * file. All other lines stay as the operator has written them, comments included; ZooKeeper loses
 * the comments.
 */
import { parseLines, type Pair, stringify } from 'dot-properties';

/** ZooKeeper compares the beginnings of keys, so `groups` would go as well. */
const dynamicKeys = /^(?:server\.|group|weight|dynamicConfigFile|peerType)/;
const clientAddressKeys = /^clientPort(?:Address)?$/;

/**
 * @param dropsClientAddress the dynamic file has the address for clients, and two that differ would
 *   keep the server from starting.
 */
export function editedConfig(text: string, dynamicConfigFile: string, dropsClientAddress: boolean): string {
  let kept = '';
  let from = 0;
  for (const node of parseLines(text, true)) {
    if (node.type !== 'PAIR') continue;
    const { key, range } = node as Required<Pair>;
    const name = key.trim();
    if (!dynamicKeys.test(name) && !(dropsClientAddress && clientAddressKeys.test(name))) continue;
    kept += text.slice(from, range[0]).replace(/[^\S\n]*$/, '');
    from = text.indexOf('\n', range.at(-1)) + 1;
    if (from === 0) from = text.length;
  }
  kept += text.slice(from);
  if (kept !== '' && !kept.endsWith('\n')) kept += '\n';
  return `${kept}${stringify({ dynamicConfigFile }, { keySep: '=', lineWidth: null })}\n`;
}
