import { ownVersion } from '../../own-version.ts';
import { usageError, type ZkCommand } from '../../zk/command.ts';

export const version: ZkCommand = {
  name: 'version',
  usage: '',
  summary: 'print the version of this program',
  options: [],
  argumentsMax: Infinity,
  jsonShape: '{"version": "0.1.0"}',
  async run(call) {
    if (call.line.args.length > 0) throw usageError(this);
    await call.answer(`tskeeper CLI version: ${ownVersion()}`, { version: ownVersion() });
  },
};
