import { describe, expect, it } from 'vitest';
import { editedConfig } from '../../src/config/edited-config.ts';

const file = '/conf/zoo.cfg.dynamic.100000004';

describe('zoo.cfg after a reconfiguration', () => {
  it('A58: names the dynamic file instead of the servers, and keeps comments, order and all other keys', () => {
    const text = `# The ensemble of the shop.
dataDir = /var/zookeeper
server.1=a:2888:3888;2181
 server.2 = b:2888:3888:\\
    observer
group.1=1:2
weight.1=2

# For probes.
4lw.commands.whitelist: srvr
peerType=observer
clientPort=2181
clientPortAddress=0.0.0.0
dynamicConfigFile=/conf/zoo.cfg.dynamic.1
initLimit=5`;
    const kept = (clientLines: string) => `# The ensemble of the shop.
dataDir = /var/zookeeper

# For probes.
4lw.commands.whitelist: srvr
${clientLines}initLimit=5
dynamicConfigFile=${file}
`;
    expect(editedConfig(text, file, true)).toBe(kept(''));
    expect(editedConfig(text, file, false)).toBe(kept('clientPort=2181\nclientPortAddress=0.0.0.0\n'));
  });

  it.each([
    ['', `dynamicConfigFile=${file}\n`],
    ['server.1=a:1:2', `dynamicConfigFile=${file}\n`],
    ['dataDir=/d\r\nserver.1=a:1:2\r\n', `dataDir=/d\r\ndynamicConfigFile=${file}\n`],
  ])('of %j is %j', (text, expected) => {
    expect(editedConfig(text, file, false)).toBe(expected);
  });

  it('escapes what a properties file would read otherwise', () => {
    expect(editedConfig('', 'C:\\conf\\zoo.cfg.dynamic.1', false)).toBe('dynamicConfigFile=C:\\\\conf\\\\zoo.cfg.dynamic.1\n');
  });
});
