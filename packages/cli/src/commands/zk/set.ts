import { exitCodes } from '../../exit-codes.ts';
import { argumentsOf, checkedPath, CommandFailed, numberOf, type ZkCommand } from '../../zk/command.ts';
import { statLines, statView } from '../../zk/texts.ts';

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
  jsonShape: '{"path": "/a", "stat": {...}}',
  async run(call) {
    const [path = '', data = ''] = argumentsOf(call, 2);
    checkedPath(path);
    const version = numberOf(call, 'v', -1);
    const bytes = call.line.has('b') ? decoded(data) : Buffer.from(data);
    const client = await call.client();
    const stat = await client.setData(path, bytes, { version, ...call.options });
    await call.answer(call.line.has('s') ? statLines(stat) : undefined, { path, stat: statView(stat) });
  },
};

/** Node passes over what is no base64; an operator's slip must not become data. */
function decoded(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')) {
    throw new CommandFailed(`the data are not base64: ${text}`, exitCodes.refused);
  }
  return bytes;
}
