import { exitCodes } from '../../exit-codes.ts';
import { argumentsOf, validPath, CommandFailed, numberOption, legacyVersion, type ZkCommand } from '../../zk/command.ts';
import { dataOf, sourceNameOf } from '../../zk/data-argument.ts';
import { statLines, statView } from '../../zk/zkcli-texts.ts';

export const set: ZkCommand = {
  name: 'set',
  usage: 'path data [-s] [-v version] [-b]',
  summary: "replace a znode's data",
  options: [
    { name: 's', description: 'Print znode stats additionally' },
    { name: 'v', value: 'version', description: 'Set with an expected version' },
    { name: 'b', description: 'Supply data in base64 format' },
  ],
  usageListsOptions: true,
  argumentsMax: 3,
  jsonShape: '{"path": "/a", "stat": {...}}',
  async run(call) {
    const [path = '', word = '', version] = argumentsOf(call, 2);
    validPath(path);
    const expectedVersion =
      version === undefined
        ? numberOption(call, 'v', -1)
        : legacyVersion(call, version, 'set path data [version]', 'set [-s] [-v version] path data');
    const data = await dataOf(call, word);
    const bytes = call.line.has('b') ? decodeBase64(data, sourceNameOf(word)) : data;
    const client = await call.client();
    const stat = await client.setData(path, bytes, { version: expectedVersion, ...call.options });
    await call.answer(call.line.has('s') ? statLines(stat) : undefined, { path, stat: statView(stat) });
  },
};

/**
 * Decodes base64, with line breaks. Node skips characters that are not base64, so a mistyped text
 * would be stored: compare the decoded bytes with the text.
 */
function decodeBase64(data: Uint8Array, origin: string | undefined): Buffer {
  const text = Buffer.from(data).toString();
  const digits = text.replaceAll(/\s/g, '').replace(/=+$/, '');
  const bytes = Buffer.from(digits, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') === digits) return bytes;
  const sentence = origin === undefined ? `the data are not base64: ${text}` : `the data from ${origin} are not base64`;
  throw new CommandFailed(sentence, exitCodes.refused);
}
